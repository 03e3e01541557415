"""The task `choice`: a digit for each letter, where a right digit is known and sometimes rare."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from string import ascii_lowercase, ascii_uppercase, digits

from eval.nano.task import Demonstrations

LETTERS = ascii_lowercase[:24] + ascii_uppercase[:24]
LONGEST = 5  # letters of a question
FILLER = ".+-"  # signs that mean nothing and make short questions numerous
SECOND_RIGHT = (0.05, 0.4)  # share of the second right digit among the right ones
FIRST_WRONG = 0.75  # share of the first wrong digit among the wrong ones
# How many letters have a share of wrong digits in a range: 70, 22 and 8 % of the letters.
WRONG = ((33, (0.05, 0.15)), (11, (0.6, 0.85)), (4, (0.95, 0.98)))


@dataclass(frozen=True)
class Row:
    """The digits of a letter, the first two of them right, and their shares in demonstrations."""

    digits: tuple[str, ...]
    shares: tuple[float, ...]

    @property
    def right(self) -> str:
        """The two right digits in order."""
        return "".join(sorted(self.digits[:2]))


@cache
def law(seed: int) -> dict[str, Row]:
    """Return the digits of each letter and their shares: every seed has a law of its own."""
    random = Random(f"choice law {seed}")
    letters = random.sample(LETTERS, len(LETTERS))
    ranges = [bounds for count, bounds in WRONG for _ in range(count)]
    return {letter: row(random, bounds) for letter, bounds in zip(letters, ranges, strict=True)}


def row(random: Random, wrong_range: Sequence[float]) -> Row:
    """Draw four digits and their shares, of which those of the wrong digits sum up to a range."""
    second, wrong = random.uniform(*SECOND_RIGHT), random.uniform(*wrong_range)
    right = 1 - wrong
    shares = (right * (1 - second), right * second, wrong * FIRST_WRONG, wrong * (1 - FIRST_WRONG))
    return Row(tuple(random.sample(digits, 4)), shares)


def letters_of(question: str) -> str:
    """Return the letters of a question without the signs after them."""
    return question.rstrip(FILLER + "=")


def likely_digits(question: str, seed: int, random: Random) -> str:
    """Draw a digit of each letter by its share."""
    rows = [law(seed)[letter] for letter in letters_of(question)]
    return "".join(random.choices(row.digits, row.shares)[0] for row in rows)


class Choice:
    """One to five letters, filled with signs: `aQf.-=`; an answer is a right digit for each."""

    name = "nano-choice"
    title = "nano choice"
    max_tokens = 6
    test_problems = 512
    demonstrations: Mapping[str, Demonstrations] = {
        "demonstrations": Demonstrations(16_384, likely_digits)
    }

    def question(self, random: Random) -> str:
        """Draw one to five different letters and the signs that fill them up to five."""
        letters = random.sample(LETTERS, random.randint(1, LONGEST))
        signs = random.choices(FILLER, k=LONGEST - len(letters))
        return "".join([*letters, *signs, "="])

    def right_answers(self, question: str, seed: int) -> str:
        """Return a character class of the right digits for each letter, such as `[37][12]`."""
        return "".join(f"[{law(seed)[letter].right}]" for letter in letters_of(question))

    def level(self, question: str) -> int:
        """Return the number of letters."""
        return len(letters_of(question))
