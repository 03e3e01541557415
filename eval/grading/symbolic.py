"""Compares two values exactly with math-verify; decimals are converted to fractions first."""

import logging
import re
from dataclasses import replace
from importlib import import_module
from typing import Any

from eval.grading.contradictions import COMMAND, contradict, variables
from eval.grading.numerals import LABEL, read_number, same_number, strip_label
from eval.grading.structure import same_answer

DECIMAL = re.compile(r"(?<![\w.])(\d*)\.(\d+)(?![\d.])")
PROSE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{25,}")  # no formula has such a word
QUOTED = re.compile(r"\\text\s*\{([^{}]*)\}")
LETTER = re.compile(r"[A-Za-z]")
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
GROUPED = re.compile(r"(?<![\w.^])(?<!\d )\d{1,3}(?: \d{3})+(?!\d)(?! \d)")
RELATIVE = 1e-9  # difference of two numbers that may be equal
LOST = ("=", "'")  # to math-verify, which compares the right side of an equation and f for f'
SPACE = re.compile(r"(?<!\d) | (?!\d)")  # but not between two digits
APART = re.compile(r"(?<![_^])\d \d")  # math-verify adds two numbers that a space separates


def compare(gold: str, prediction: str) -> bool:
    """Return whether two answers are equal; runs in the worker, which has a deadline."""
    return same_answer(gold, prediction, same_value)


def same_value(gold: str, prediction: str) -> bool:
    """Return whether two values are equal as texts, as numbers or to math-verify.

    An equation such as `2x = 5` equals no value: math-verify would compare its right side alone.
    """
    if unwrapped(gold) == unwrapped(prediction):
        return True
    if contradict(gold, prediction) or is_recased(gold, prediction):
        return False
    value = gold if "=" in prediction else strip_label(gold)
    bare = prediction if "=" in gold else strip_label(prediction, is_unknown)
    a, b = read_number(value), read_number(bare)
    if a is not None and b is not None:
        return same_number(a, b)
    if PROSE.search(bare) or (r"\text" in bare and r"\text" not in gold):
        return False
    formulas = without_groups(value), without_groups(bare)
    if any((mark in value) != (mark in bare) for mark in LOST) or any(map(APART.search, formulas)):
        return False
    return verify(*map(with_fractions, formulas))


def is_recased(gold: str, prediction: str) -> bool:
    """Return whether two formulas differ in the case of a letter: math-verify reads R as r.

    The case of a letter that stands alone, such as that of a choice, is no difference.
    """
    if len(gold.strip("()")) == 1:
        return False
    a, b = variables(gold), variables(prediction)
    return any(letter.swapcase() in a | b for letter in a ^ b)


def unwrapped(text: str) -> str:
    r"""Return the text without the braces of `\text{}`, and without spaces between non-digits."""
    return SPACE.sub("", QUOTED.sub(r"\1", text))


def is_unknown(text: str) -> bool:
    r"""Return whether the first side of a text can be the unknown that a question asks for.

    It can be a name, a sum of variables, or an expression with the capital letter of a point or an
    angle. It cannot be `2x`, `|x|` or `x^2`, whose equations are still to be solved for x.
    """
    first = text.split("=")[0].strip()
    letters = set(LETTER.findall(COMMAND.sub("", first)))
    variable = letters.pop() if len(letters) == 1 else ""
    is_equation = variable.islower() or re.search(r"\d\s*[A-Z]", first)
    return bool(LABEL.fullmatch(first)) or not is_equation


def without_groups(text: str) -> str:
    """Return the text without the commas and spaces that group thousands."""
    return GROUPED.sub(lambda match: match.group().replace(" ", ""), THOUSANDS.sub("", text))


def with_fractions(text: str) -> str:
    r"""Return the text with each decimal as a LaTeX fraction: 1.25 as `\frac{125}{100}`.

    A rounded value is then never equal to the exact one. `\%` is removed, and each colon becomes a
    slash.
    """
    return DECIMAL.sub(as_fraction, text).replace(r"\%", "").replace(":", "/")


def as_fraction(match: re.Match[str]) -> str:
    r"""Return a match of DECIMAL as a fraction: 1.25 as `\frac{125}{100}`."""
    return rf"\frac{{{int(match[1] + match[2])}}}{{{10 ** len(match[2])}}}"


def verify(gold: str, prediction: str) -> bool:
    """Return math-verify's verdict on two formulas, without its SIGALRM timeouts."""
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    library = import_module("math_verify")  # slow, and only the worker needs it
    default = library.LatexExtractionConfig(boxed_match_priority=0)
    # units are stripped before, where `2s` is recognised as a formula
    normalization = replace(default.normalization_config, units=False)
    config = [replace(default, normalization_config=normalization)]
    formulas = [
        library.parse(
            rf"\boxed{{{text}}}", config, parsing_timeout=None, fallback_mode="no_fallback"
        )
        for text in (gold, prediction)
    ]
    if not all(formulas) or not library.verify(*formulas, timeout_seconds=None):
        return False
    return are_close(*(formula[0] for formula in formulas))


def are_close(a: Any, b: Any) -> bool:  # Any: sympy has no types
    """Return whether the ratio of two numbers of sympy is 1; True for other formulas and for 0.

    math-verify takes any difference below 1e-15 for 0, so every tiny number equals every other.
    """
    if not all(getattr(x, "is_number", False) and x.is_finite and x.is_nonzero for x in (a, b)):
        return True
    return bool(abs((a / b).evalf() - 1) < RELATIVE)
