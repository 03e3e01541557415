"""Finds questions that come again in other words: by their runs of words, or by their numbers.

Questions of at least LONG words are looked for, in three kinds:

- `similar`: a text holds SHARE of the question's runs of three words, numbers left out, a run
  counting the more the fewer questions have it: so are found typos, other names, another order, a
  sentence more or less;
- `renumbered`: such a text that has less than half of the question's numbers;
- `numbers`: a whole text or line has the very numbers of the question in their order, which are so
  rare among the questions that chance gives them with a probability below 2**-BITS: so are found
  translations.

The runs of a text are counted exactly: MinHash estimates their overlap, and a text that goes on
after the question, as a chat does, has a small one.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import log, log2

import numpy as np
from numpy.typing import NDArray

from eval.sets.problem import Problem
from eval.sets.tokens import Tokens, is_character_word, numbers, tokens, words

REWORDED = ("similar", "renumbered", "numbers")
LONG = 12  # words of a question; a shorter one may by chance be like another
SHARE = 0.4  # of the weight of a question's runs
BITS = 18
RUN = 6  # characters' worth of a run: a word counts for two, a character without spaces for one
NUMBER = "#"


class Reworded:
    """The long questions by their runs of words and by their numbers."""

    def __init__(self, problems: Sequence[Problem]):
        spelled = [(problem, tokens(problem.question)) for problem in problems]
        long = [(problem, text) for problem, text in spelled if words(text) >= LONG]
        self.problems = [problem for problem, _ in long]
        self.numbers = [numbers(text) for _, text in long]
        holders: dict[Tokens, list[int]] = defaultdict(list)
        for place, (_, text) in enumerate(long):
            for run in runs(text):
                holders[run].append(place)
        # how much a run counts, and the places of the questions that have it
        self.held = {
            run: (log(1 + len(long) / len(places)), np.array(places))
            for run, places in holders.items()
        }
        totals = [sum(self.held[run][0] for run in runs(text)) for _, text in long]
        self.least = SHARE * np.array(totals)
        counts = Counter(number for found in self.numbers for number in found)
        self.rare: dict[Tokens, list[Problem]] = defaultdict(list)
        for problem, found in zip(self.problems, self.numbers, strict=True):
            if sum(log2(counts.total() / counts[number]) for number in found) >= BITS:
                self.rare[found].append(problem)

    def weights(self, text: Tokens) -> NDArray[np.float64]:
        """For each question the weight of its runs in a text."""
        found = np.zeros(len(self.problems))
        for run in runs(text):
            if run in self.held:
                weight, places = self.held[run]
                found[places] += weight
        return found

    def found_in(self, whole: Tokens, parts: Iterable[Tokens]) -> Iterator[tuple[Problem, str]]:
        """Each problem that a text holds, and how; its parts are its lines and itself."""
        present = set(numbers(whole))
        for place in np.flatnonzero(self.weights(whole) >= self.least):
            wanted = set(self.numbers[place])
            kind = "renumbered" if 2 * len(wanted & present) < len(wanted) else "similar"
            yield self.problems[place], kind
        for part in parts:
            for problem in self.rare.get(numbers(part), ()):
                yield problem, "numbers"


def runs(text: Tokens) -> list[Tokens]:
    """Every run of three words or six characters without spaces, once, with numbers masked."""
    masked = [NUMBER if token[0].isdigit() else token for token in text]
    sizes = [1 if is_character_word(token) else 2 for token in masked]
    found: dict[Tokens, None] = {}
    end = size = 0
    for start, first in enumerate(sizes):
        while size < RUN and end < len(masked):
            size += sizes[end]
            end += 1
        if size >= RUN:
            found[tuple(masked[start:end])] = None
        size -= first
    return list(found)
