"""Generates word problems: an opening gives a number of things, which events then change."""

from dataclasses import dataclass
from functools import partial
from random import Random
from typing import NamedTuple

from eval.pocket.draft import Draft
from eval.pocket.integers import draw_integer
from eval.pocket.phrases import EVENTS, PHRASES, RELATIONS, Phrases
from eval.pocket.plan import APPLY, Distractor, Plan, Step, StepResult

KINDS = len(PHRASES["en"].distractors)  # of sentences with an irrelevant number


@dataclass(frozen=True, kw_only=True)
class Difficulty:
    """The range of a story's length, the bounds of its numbers, and its share of distractors."""

    events: tuple[int, int] = (3, 4)
    start: int = 30  # largest first number
    amount: int = 9  # largest number added or taken
    factor: int = 3  # largest multiplier and divisor
    bound: int = 80  # largest value of a step
    units: float = 0.25  # share of amounts in pairs or sets of three
    distractors: float = 0.4  # share of stories with a number that is not needed


class Event(NamedTuple):
    """An event: the index of its phrase and its amount, in pairs or sets if `unit` is 2 or 3."""

    phrase: int
    amount: int
    unit: int = 1


@dataclass(frozen=True, kw_only=True)
class Skeleton:
    """A story without its words: its opening, the numbers of that, and its events.

    `distractors` are irrelevant numbers, each with the index of the event that it precedes.
    """

    opening: str
    numbers: tuple[int, ...]
    events: tuple[Event, ...]
    distractors: tuple[tuple[int, Distractor], ...] = ()

    @property
    def plan(self) -> Plan:
        """The steps of the story."""
        steps = opening_steps(self.opening, self.numbers)
        compared = self.opening == "compared"
        operators = RELATIONS if compared else EVENTS
        before = -1
        for place, event in enumerate(self.events):
            step = Step(
                StepResult(len(steps) - 1) if steps else self.numbers[0],
                operators[event.phrase],
                event.amount,
                cue=("compared" if compared else "event", event.phrase, before),
                unit=event.unit,
                distractor=next(iter(self.distractors_at(place)), None),
                may_skip=not compared,
            )
            steps.append(step)
            before = event.phrase
        if compared:
            steps.append(Step(self.numbers[0], "+", StepResult(len(steps) - 1)))
        return Plan(tuple(steps))

    def distractors_at(self, place: int) -> list[Distractor]:
        """Return the distractors before the event at a place."""
        return [distractor for at, distractor in self.distractors if at == place]


def opening_steps(opening: str, n: tuple[int, ...]) -> list[Step]:
    """Return the steps to the number that the events start from; none if the opening states it."""
    if opening == "rate":
        return [Step(n[0], "*", n[1])]
    if opening == "basket":
        return [
            Step(n[0], "*", n[1]),
            Step(n[2], "*", n[3]),
            Step(StepResult(0), "+", StepResult(1)),
        ]
    if opening == "share":
        return [Step(n[0], "/", n[2]), Step(StepResult(0), "*", n[1])]
    return []


def opening_numbers(random: Random, opening: str, d: Difficulty) -> tuple[tuple[int, ...], int]:
    """Draw the numbers of an opening; return them and the value that the events start from."""
    if opening in ("rate", "basket"):
        n = [draw_integer(random, 2, 3 * d.factor) for _ in range(2 if opening == "rate" else 4)]
        return tuple(n), n[0] * n[1] + (n[2] * n[3] if opening == "basket" else 0)
    if opening == "share":
        denominator = draw_integer(random, 2, 6)
        numerator = draw_integer(random, 1, denominator - 1)
        unit_share = draw_integer(random, 2, 8)
        return (unit_share * denominator, numerator, denominator), unit_share * numerator
    start = draw_integer(random, 2, d.start)
    return (start,), start


def draw_skeleton(random: Random, opening: str, events: int, d: Difficulty) -> Skeleton | None:
    """Draw a story with a number of events; return None if a value leaves the bounds."""
    numbers, value = opening_numbers(random, opening, d)
    drawn_events: list[Event] = []
    for _ in range(events):
        event, operator = draw_event(random, opening == "compared", d)
        if operator == "/" and value % event.amount:
            return None
        value = APPLY[operator](value, event.amount * event.unit)
        if not 1 <= value <= d.bound:
            return None
        drawn_events.append(event)
    distractors: tuple[tuple[int, Distractor], ...] = ()
    if opening != "compared" and random.random() < d.distractors:
        number = Distractor(draw_integer(random, 0, 3), draw_integer(random, 2, d.amount))
        distractors = ((draw_integer(random, 0, events - 1), number),)
    return Skeleton(
        opening=opening, numbers=numbers, events=tuple(drawn_events), distractors=distractors
    )


def draw_distractors(
    random: Random, events: int, d: Difficulty
) -> tuple[tuple[int, Distractor], ...]:
    """Draw one distractor of each kind of sentence, in an order and at places that are drawn."""
    kinds = random.sample(range(KINDS), KINDS)
    return tuple(
        (draw_integer(random, 0, events - 1), Distractor(kind, draw_integer(random, 2, d.amount)))
        for kind in kinds
    )


def draw_event(random: Random, compared: bool, d: Difficulty) -> tuple[Event, str]:
    """Draw an event, or a relation of a `compared` story; return it and its operator."""
    operators = RELATIONS if compared else EVENTS
    phrase = draw_integer(random, 0, len(operators) - 1)
    operator = operators[phrase]
    multiplies = operator in "*/"
    amount = draw_integer(random, 2, d.factor if multiplies else d.amount)
    may_have_unit = not multiplies and not compared and amount <= 4
    has_unit = may_have_unit and random.random() < 2 * d.units
    unit = draw_integer(random, 2, 3) if has_unit else 1
    return Event(phrase=phrase, amount=amount, unit=unit), operator


def story(random: Random, opening: str, events: int, d: Difficulty, language: str) -> Draft:
    """Draw a story in one language whose values are all within the bounds."""
    return story_of(draw_within(random, opening, events, d), random.getrandbits(32), language)


def draw_within(random: Random, opening: str, events: int, d: Difficulty) -> Skeleton:
    """Draw a story whose values are all within the bounds."""
    while (skeleton := draw_skeleton(random, opening, events, d)) is None:
        pass
    return skeleton


def story_of(skeleton: Skeleton, seed: int, language: str) -> Draft:
    """Return the draft of a story in a language, with words drawn by `seed`."""
    write_question = partial(write_story, skeleton, language, seed)
    return Draft(kind="story", write_question=write_question, plan=skeleton.plan, language=language)


def write_story(skeleton: Skeleton, language: str, seed: int) -> str:
    """Return a story in a language, with words drawn by `seed`."""
    random, phrases = Random(seed), PHRASES[language]
    people = random.sample(phrases.names, min(len(phrases.names), 1 + len(skeleton.events)))
    names = {"name": people[0], "other": people[-1], "thing": random.choice(phrases.things)}
    sentences = [phrases.openings[skeleton.opening].format(n=skeleton.numbers, **names)]
    for place, event in enumerate(skeleton.events):
        for distractor in skeleton.distractors_at(place):
            phrase = phrases.distractors[distractor.kind]
            sentences.append(phrase.format(d=distractor.amount, **names))
        if skeleton.opening == "compared":
            pair = names | {"name": people[place], "other": people[place + 1]}
            sentences.append(phrases.relations[event.phrase].format(a=event.amount, **pair))
        else:
            sentences.append(event_sentence(phrases, event, names["name"]))
    is_compared = skeleton.opening == "compared"
    question = phrases.together if is_compared else random.choice(phrases.now)
    return phrases.joint.join([*sentences, question.format(**names)])


def event_sentence(phrases: Phrases, event: Event, name: str) -> str:
    """Return the sentence of an event of one person."""
    amount = phrases.units[event.unit].format(a=event.amount)
    return phrases.events[event.phrase].format(name=name, a=amount, k=event.amount)
