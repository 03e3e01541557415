"""The task `grammar`: strings of words, whose first letters may vary and whose others may not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from string import ascii_letters

from eval.nano.task import Demonstrations, filler

PLACES = 3  # words of a string
SHARES = tuple(1 / rank for rank in range(1, 7))  # relative shares of the words of a place
LOCKS = 4  # letters of a word after its first one
SLIP = 0.015  # probability of a wrong letter at a lock in demonstrations
SLIPS = 3  # wrong letters of a lock, equally likely


@dataclass(frozen=True)
class Word:
    """A word of a place, and the wrong letters that demonstrations have at each of its locks."""

    text: str
    slips: tuple[str, ...]

    def written(self, random: Random) -> str:
        """Return the word with each lock wrong with the probability `SLIP`."""
        letters = [self.text[0]]
        for lock, slips in zip(self.text[1:], self.slips, strict=True):
            letters.append(random.choice(slips) if random.random() < SLIP else lock)
        return "".join(letters)


@cache
def law(seed: int) -> tuple[tuple[Word, ...], ...]:
    """Return the words of each place, likely ones first: every seed has words of its own."""
    random = Random(f"grammar law {seed}")
    return tuple(
        tuple(word(random, fork) for fork in random.sample(ascii_letters, len(SHARES)))
        for _ in range(PLACES)
    )


def word(random: Random, fork: str) -> Word:
    """Draw the locks of a word and their wrong letters."""
    locks = random.choices(ascii_letters, k=LOCKS)
    slips = ("".join(random.sample(ascii_letters.replace(lock, ""), SLIPS)) for lock in locks)
    return Word(fork + "".join(locks), tuple(slips))


def pattern(words: Sequence[Word]) -> str:
    """Return the alternatives of a place, such as `(?:aQxfb|Kmmes)`."""
    return f"(?:{'|'.join(word.text for word in words)})"


def likely_words(question: str, seed: int, random: Random) -> str:  # noqa: ARG001 - for all alike
    """Draw a word of each place by its share, some of their locks wrong."""
    words = [random.choices(place, SHARES)[0] for place in law(seed)]
    return "".join(word.written(random) for word in words)


class Grammar:
    """Four letters that mean nothing: `kQfT=`; an answer is three words, each of its place.

    The first letter of a word is a fork, which several letters continue rightly; each of the other
    letters is a lock, whose letter the fork decides.
    """

    name = "nano-grammar"
    title = "nano grammar"
    max_tokens = PLACES * (1 + LOCKS) + 1
    test_problems = 8  # all alike: what varies is the answers
    demonstrations: Mapping[str, Demonstrations] = {
        "demonstrations": Demonstrations(16_384, likely_words)
    }

    def question(self, random: Random) -> str:
        """Draw four letters."""
        return f"{filler(random)}{filler(random)}="

    def right_answers(self, question: str, seed: int) -> str:  # noqa: ARG002 - alike for all
        """Return the words of each place as alternatives."""
        return "".join(map(pattern, law(seed)))

    def level(self, question: str) -> int:  # noqa: ARG002 - alike for all
        """Return the number of words."""
        return PLACES
