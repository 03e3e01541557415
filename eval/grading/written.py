r"""Compares the form of equal answers, for questions that require the form of the reference.

2/3 is the lowest terms of 8/12: equal, but written with other numbers. MATH's own grading compares
answers as strings and rejects the second (arXiv 2103.03874, `is_equiv`); here `\dfrac23`, 2/3 and
`x = \frac{2}{3}` have the same form.
"""

import re
from fractions import Fraction

from eval.grading.cleaning import clean
from eval.grading.numerals import strip_label

DIGITS = re.compile(r"\d+(?:\.\d+)?")
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
BARE = re.compile(r"\\frac\s*(\d)")  # \frac23 has two numbers


def written_alike(gold: str, prediction: str) -> bool:
    """Return whether two answers are written with the same numbers, in any order."""
    return numbers(gold) == numbers(prediction)


def numbers(text: str) -> list[Fraction]:
    """Return the sorted numbers in an answer, without those of a label before its last `=`."""
    bare = THOUSANDS.sub("", BARE.sub(r"\\frac \1 ", strip_label(clean(text))))
    return sorted(Fraction(digits) for digits in DIGITS.findall(bare))
