"""Word problems: a number of things that is given or worked out, and then changes."""

from dataclasses import dataclass
from functools import partial
from random import Random

from eval.pocket.draft import Draft
from eval.pocket.phrases import EVENTS, PHRASES, RELATIONS
from eval.pocket.plan import APPLY, Lure, Of, Plan, Step


@dataclass(frozen=True, kw_only=True)
class Difficulty:
    """How long a story is, how large its numbers get, and what stands beside its events."""

    events: tuple[int, int] = (3, 4)
    start: int = 30  # largest first number
    amount: int = 9  # largest number added or taken
    factor: int = 3  # largest multiplier and divisor
    bound: int = 80  # largest value on the way
    units: float = 0.25  # share of amounts in pairs or sets of three
    distractors: float = 0.4  # share of stories with a number that is not needed


@dataclass(frozen=True, kw_only=True)
class Event:
    """A phrase with its amount, in pairs or sets if its `unit` is 2 or 3."""

    phrase: int
    amount: int
    unit: int = 1


@dataclass(frozen=True, kw_only=True)
class Skeleton:
    """A story without its words: what it opens with, what happens, what distracts and where."""

    opening: str
    numbers: tuple[int, ...]
    events: tuple[Event, ...]
    distractor: tuple[int, Lure] | None = None

    @property
    def plan(self) -> Plan:
        """The steps of the story."""
        steps = opening_steps(self.opening, self.numbers)
        compared = self.opening == "compared"
        operators = RELATIONS if compared else EVENTS
        before = -1
        for place, event in enumerate(self.events):
            left = Of(len(steps) - 1) if steps else self.numbers[0]
            lured = self.distractor is not None and self.distractor[0] == place
            step = Step(
                left,
                operators[event.phrase],
                event.amount,
                cue=("compared" if compared else "event", event.phrase, before),
                unit=event.unit,
                lure=self.distractor[1] if lured and self.distractor else None,
                may_skip=not compared,
            )
            steps.append(step)
            before = event.phrase
        if compared:
            steps.append(Step(self.numbers[0], "+", Of(len(steps) - 1)))
        return Plan(tuple(steps))


def opening_steps(opening: str, n: tuple[int, ...]) -> list[Step]:
    """The steps to the number with which the events begin; none where it is given."""
    if opening == "rate":
        return [Step(n[0], "*", n[1])]
    if opening == "basket":
        return [Step(n[0], "*", n[1]), Step(n[2], "*", n[3]), Step(Of(0), "+", Of(1))]
    if opening == "share":
        return [Step(n[0], "/", n[2]), Step(Of(0), "*", n[1])]
    return []


def opening_numbers(random: Random, opening: str, d: Difficulty) -> tuple[tuple[int, ...], int]:
    """The numbers of an opening, and the value that they come to."""
    if opening in ("rate", "basket"):
        n = [random.randint(2, 3 * d.factor) for _ in range(2 if opening == "rate" else 4)]
        return tuple(n), n[0] * n[1] + (n[2] * n[3] if opening == "basket" else 0)
    if opening == "share":
        below = random.randint(2, 6)
        above = random.randint(1, below - 1)
        one = random.randint(2, 8)
        return (one * below, above, below), one * above
    first = random.randint(2, d.start)
    return (first,), first


def skeleton(random: Random, opening: str, events: int, d: Difficulty) -> Skeleton | None:
    """A story with so many events; None where the numbers drawn leave the bounds."""
    numbers, value = opening_numbers(random, opening, d)
    operators = RELATIONS if opening == "compared" else EVENTS
    told: list[Event] = []
    for _ in range(events):
        phrase = random.randrange(len(operators))
        operator = operators[phrase]
        many = operator in "*/"
        amount = random.randint(2, d.factor if many else d.amount)
        unit = 1
        if not many and opening != "compared" and amount <= 4 and random.random() < 2 * d.units:
            unit = random.randint(2, 3)
        if operator == "/" and value % amount:
            return None
        value = APPLY[operator](value, amount * unit)
        if not 1 <= value <= d.bound:
            return None
        told.append(Event(phrase=phrase, amount=amount, unit=unit))
    distractor = None
    if opening != "compared" and random.random() < d.distractors:
        lure = Lure(random.randrange(4), random.randint(2, d.amount))
        distractor = (random.randrange(events), lure)
    return Skeleton(opening=opening, numbers=numbers, events=tuple(told), distractor=distractor)


def story(random: Random, opening: str, events: int, d: Difficulty, language: str) -> Draft:
    """A story in one language; what leaves the bounds is drawn again."""
    while (made := skeleton(random, opening, events, d)) is None:
        pass
    words = partial(told_in, made, language, random.getrandbits(32))
    return Draft(kind="story", asked=words, plan=made.plan, language=language)


def told_in(made: Skeleton, language: str, words: int) -> str:
    """The story in the words of a language, which `words` draws."""
    random, said = Random(words), PHRASES[language]
    people = random.sample(said.names, min(len(said.names), 1 + len(made.events)))
    name, other, thing = people[0], people[-1], random.choice(said.things)
    opening = said.openings[made.opening].format(name=name, n=made.numbers, thing=thing)
    sentences = [opening]
    for place, event in enumerate(made.events):
        if made.distractor is not None and made.distractor[0] == place:
            kind, lure = made.distractor[1].kind, made.distractor[1].amount
            sentences.append(
                said.distractors[kind].format(name=name, other=other, thing=thing, d=lure)
            )
        if made.opening == "compared":
            pair = {"name": people[place], "other": people[place + 1]}
            sentence = said.relations[event.phrase].format(a=event.amount, thing=thing, **pair)
        else:
            amount = said.units[event.unit].format(a=event.amount)
            sentence = said.events[event.phrase].format(name=name, a=amount, k=event.amount)
        sentences.append(sentence)
    if made.opening == "compared":
        sentences.append(said.together.format(name=name, other=other, thing=thing))
    else:
        sentences.append(random.choice(said.now).format(name=name, thing=thing))
    return said.joint.join(sentences)
