"""The task `ledgers`: names with numbers, and questions that the beginning of a text answers."""

from collections.abc import Mapping, Sequence
from math import log
from random import Random

from eval.nano.task import Demonstrations

NAMES, FEWEST, MOST = "abcdefghij", 2, 5  # of all ledgers, and how many one has
ENTRY = 3  # signs of a name and its number
MEDIAN, SIGMA = 3, 1.0  # of the log-normal number of questions before a problem, and after it
MOST_BEFORE = 11  # so that a problem with its answer has at most 64 tokens


def entries(question: str) -> dict[str, str]:
    """Return the number of each name, from the head of a question."""
    head = question.partition(".")[0]
    return {head[place]: head[place + 1 : place + 3] for place in range(0, len(head), ENTRY)}


def count(random: Random) -> int:
    """Draw a log-normal number of questions."""
    return int(random.lognormvariate(log(MEDIAN), SIGMA))


def answered(names: Sequence[str], numbers: Mapping[str, str], size: int, random: Random) -> str:
    """Return a number of questions with their answers, such as `a=37g=82`."""
    return "".join(f"{name}={numbers[name]}" for name in random.choices(names, k=size))


def number(question: str, seed: int, random: Random) -> str:  # noqa: ARG001 - as of every task
    """Return the number of the name that a question ends with."""
    return entries(question)[question[-2]]


def rest(question: str, seed: int, random: Random) -> str:
    """Return the number, and log-normally many further questions with their answers."""
    numbers = entries(question)
    return number(question, seed, random) + answered([*numbers], numbers, count(random), random)


class Ledgers:
    """Two to five names with numbers, answered questions, and a new name: `a37g82.g=82a=`.

    The answer is the number of the last name, which only the beginning of the text tells.
    """

    name = "nano-ledgers"
    title = "nano ledgers"
    max_tokens = 3
    test_problems = 512
    demonstrations: Mapping[str, Demonstrations] = {
        "documents": Demonstrations(16_384, rest, number)
    }

    def question(self, random: Random) -> str:
        """Draw names, two digits for each, and log-normally many questions on all but one."""
        names = random.sample(NAMES, random.randint(FEWEST, MOST))
        numbers = {name: f"{random.randrange(100):02}" for name in names}
        head = "".join(name + numbers[name] for name in names)
        asked = random.choice(names)
        others = [name for name in names if name != asked]
        before = answered(others, numbers, min(count(random), MOST_BEFORE), random)
        return f"{head}.{before}{asked}="

    def right_answers(self, question: str, seed: int) -> str:
        """Return the number, after which a text may go on."""
        return f"{number(question, seed, Random())}.?"

    def level(self, question: str) -> int:
        """Return the number of names."""
        return len(entries(question))
