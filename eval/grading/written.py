r"""Tells whether two equal answers are written alike, which some questions ask for.

2/3 is the lowest terms of 8/12: equal, but written with other numbers. MATH's own grading compares
answers as strings and refuses the second (arXiv 2103.03874, `is_equiv`); here `\dfrac23`, 2/3 and
`x = \frac{2}{3}` stay one answer.
"""

import re
from fractions import Fraction

from eval.grading.cleaning import clean
from eval.grading.numerals import unlabelled

DIGITS = re.compile(r"\d+(?:\.\d+)?")
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
BARE = re.compile(r"\\frac\s*(\d)")  # \frac23 has two numbers


def written_alike(gold: str, given: str) -> bool:
    """Are the numbers that the two write the same, in any order?"""
    return numbers(gold) == numbers(given)


def numbers(text: str) -> list[Fraction]:
    """The numbers that an answer writes, sorted, without those of a label before a last `=`."""
    bare = THOUSANDS.sub("", BARE.sub(r"\\frac \1 ", unlabelled(clean(text))))
    return sorted(Fraction(digits) for digits in DIGITS.findall(bare))
