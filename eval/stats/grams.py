"""The share of different grams of tokens among the texts of samples."""

import re
from collections.abc import Sequence

from eval.grading.extraction import WHOLE
from eval.samples.sealing import text_of
from eval.samples.store import Sample

TOKEN = re.compile(r"[^\W\d_]+|\d|[^\w\s]|_")  # a run of letters, a digit or another sign


def distinct_share(samples: Sequence[Sample], size: int) -> float:
    """Return how many different grams samples have, as a share of all of their grams.

    Args:
        samples: The samples, at least one.
        size: Tokens of a gram. A text of fewer tokens is one gram.

    Raises:
        BadValue: a sample is stored without its text.
    """
    grams = [gram for sample in samples for gram in grams_of(tokens_of(sample), size)]
    return len({*grams}) / len(grams)


def grams_of(tokens: Sequence[str], size: int) -> list[tuple[str, ...]]:
    """Return all runs of `size` tokens in order, or all tokens as one if there are fewer."""
    return [tuple(tokens[i : i + size]) for i in range(max(1, len(tokens) - size + 1))]


def tokens_of(sample: Sample) -> list[str]:
    """Return the tokens of a sample: runs of letters, digits and other signs.

    Of a benchmark that compares whole outputs they are characters, as the models of nano worlds
    have a token for each.

    Raises:
        BadValue: the sample is stored without its text.
    """
    text = text_of(sample)
    return [*text] if sample.rule == WHOLE else TOKEN.findall(text)
