"""Finds reworded questions in training data, by shared word n-grams or by their numbers.

Only questions of at least LONG words are searched for. There are three kinds of matches:

- `similar`: a text holds at least SHARE of the weight of the question's n-grams. An n-gram spans
  three words, numbers are masked, and an n-gram that few questions share weighs more. This finds
  typos, changed names, another order, and a sentence more or less;
- `renumbered`: a `similar` text that has less than half of the question's numbers;
- `numbers`: a whole text or line has exactly the numbers of the question, in order, and that
  sequence is so rare among the questions that its chance probability is below 2**-BITS. This
  finds translations.

Overlaps are counted exactly. MinHash would estimate the overlap relative to the union, which is
small for a text that goes on after the question, as a chat does.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import log, log2

import numpy as np
from numpy.typing import NDArray

from eval.sets.problem import Problem
from eval.sets.tokens import Tokens, count_words, is_character_word, numbers, tokens

REWORDED = ("similar", "renumbered", "numbers")
LONG = 12  # words; shorter questions resemble each other by chance
SHARE = 0.4  # of the weight of a question's n-grams
BITS = 18
NGRAM_SIZE = 6  # a word counts for two, a character of a script without spaces for one
NUMBER = "#"  # masks a number in an n-gram


class RewordedIndex:
    """An index of long questions by their n-grams and by their number sequences."""

    def __init__(self, problems: Sequence[Problem]):
        question_tokens = [(problem, tokens(problem.question)) for problem in problems]
        long = [(problem, text) for problem, text in question_tokens if count_words(text) >= LONG]
        self.problems = [problem for problem, _ in long]
        self.numbers = [numbers(text) for _, text in long]
        self.weighted_holders = weigh_ngrams([ngrams(text) for _, text in long])
        totals = [
            sum(self.weighted_holders[ngram][0] for ngram in ngrams(text)) for _, text in long
        ]
        self.thresholds = SHARE * np.array(totals)
        self.rare_numbers: dict[Tokens, list[Problem]] = defaultdict(list)
        for problem, sequence in rare_sequences(self.problems, self.numbers):
            self.rare_numbers[sequence].append(problem)

    def overlaps(self, text: Tokens) -> NDArray[np.float64]:
        """Return the weight of the n-grams that a text shares with each question, shape (Q,)."""
        shared_weights = np.zeros(len(self.problems))
        for ngram in ngrams(text):
            if ngram in self.weighted_holders:
                weight, indices = self.weighted_holders[ngram]
                shared_weights[indices] += weight
        return shared_weights

    def matches_in(self, text: Tokens, parts: Iterable[Tokens]) -> Iterator[tuple[Problem, str]]:
        """Yield each problem that a text holds in other words, with the kind of the match.

        `parts` are the lines of the text and the text itself.
        """
        present = set(numbers(text))
        for index in np.flatnonzero(self.overlaps(text) >= self.thresholds):
            expected = set(self.numbers[index])
            kind = "renumbered" if 2 * len(expected & present) < len(expected) else "similar"
            yield self.problems[index], kind
        for part in parts:
            for problem in self.rare_numbers.get(numbers(part), ()):
                yield problem, "numbers"


def weigh_ngrams(
    questions: Sequence[Sequence[Tokens]],
) -> dict[Tokens, tuple[float, NDArray[np.int64]]]:
    """Return, for each n-gram, its weight and the indices of the questions that have it.

    The weight is log(1 + number of questions / number of questions with the n-gram).
    """
    holders: dict[Tokens, list[int]] = defaultdict(list)
    for index, question in enumerate(questions):
        for ngram in question:
            holders[ngram].append(index)
    return {
        ngram: (log(1 + len(questions) / len(indices)), np.array(indices))
        for ngram, indices in holders.items()
    }


def rare_sequences(
    problems: Sequence[Problem], sequences: Sequence[Tokens]
) -> Iterator[tuple[Problem, Tokens]]:
    """Yield each problem whose number sequence has at least BITS of information.

    The information of a sequence is the sum over its numbers of -log2 of their frequency.
    """
    counts = Counter(number for sequence in sequences for number in sequence)
    for problem, sequence in zip(problems, sequences, strict=True):
        if sum(log2(counts.total() / counts[number]) for number in sequence) >= BITS:
            yield problem, sequence


def ngrams(text: Tokens) -> list[Tokens]:
    """Return the distinct n-grams of three words, or of six characters without spaces.

    Numbers are masked by NUMBER.
    """
    masked = [NUMBER if token[0].isdigit() else token for token in text]
    sizes = [1 if is_character_word(token) else 2 for token in masked]
    distinct: dict[Tokens, None] = {}
    end = size = 0
    for start, first in enumerate(sizes):
        while size < NGRAM_SIZE and end < len(masked):
            size += sizes[end]
            end += 1
        if size >= NGRAM_SIZE:
            distinct[tuple(masked[start:end])] = None
        size -= first
    return list(distinct)
