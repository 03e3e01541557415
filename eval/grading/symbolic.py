"""Compares two values with math-verify, exactly: decimals are turned into fractions first."""

import logging
import re
from dataclasses import replace
from importlib import import_module
from typing import Any  # math-verify has no types

from eval.grading.numerals import LABEL, read_number, same_number, unlabelled
from eval.grading.structure import same_answer

DECIMAL = re.compile(r"(?<![\w.])(\d*)\.(\d+)(?![\d.])")
PROSE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{25,}")  # no formula has such a word
COMMAND = re.compile(r"\\text\s*\{[^{}]*\}|\\[A-Za-z]+")
VARIABLE = re.compile(r"[A-Za-z]")
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def compare(gold: str, given: str) -> bool:
    """Are they the same answer? Runs in the worker, which has a deadline."""
    return same_answer(gold, given, same_value)


def same_value(gold: str, given: str) -> bool:
    """Same text, same number, or equal to math-verify, which would drop half of `2x = 5`."""
    if gold.replace(" ", "") == given.replace(" ", ""):
        return True
    value = given if "=" in gold else unlabelled(given, asked_for)
    a, b = read_number(gold), read_number(value)
    if a is not None and b is not None:
        return same_number(a, b)
    if PROSE.search(value) or any(mark in value and mark not in gold for mark in ("=", r"\text")):
        return False
    return verified(exact(gold), exact(value))


def asked_for(text: str) -> bool:
    r"""Can the first side of it be what a question asks for, and not an equation to be solved?

    A name can, a sum of variables and what depends on a point's or an angle's letter; but `2x`,
    `|x|` and `x^2` have another value than x.
    """
    first = text.split("=")[0].strip()
    variables = set(VARIABLE.findall(COMMAND.sub("", first)))
    one = variables.pop() if len(variables) == 1 else ""
    return bool(LABEL.fullmatch(first)) or not (one.islower() or re.search(r"\d\s*[A-Z]", first))


def exact(text: str) -> str:
    """The text with each decimal as a fraction, so that a rounded value is never close enough."""
    return DECIMAL.sub(as_fraction, THOUSANDS.sub("", text)).replace(r"\%", "").replace(":", "/")


def as_fraction(match: re.Match[str]) -> str:
    r"""1.25 as `\frac{125}{100}`."""
    return rf"\frac{{{int(match[1] + match[2])}}}{{{10 ** len(match[2])}}}"


def verified(gold: str, given: str) -> bool:
    """math-verify's verdict on two formulas, without its SIGALRM timeouts."""
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    library: Any = import_module("math_verify")  # slow, and only the worker needs it
    parse, verify = library.parse, library.verify
    default = library.LatexExtractionConfig(boxed_match_priority=0)
    # units are stripped before, where `2s` is known to be a formula
    spelled = replace(default.normalization_config, units=False)
    config = [replace(default, normalization_config=spelled)]
    parsed = [
        parse(rf"\boxed{{{text}}}", config, parsing_timeout=None, fallback_mode="no_fallback")
        for text in (gold, given)
    ]
    return bool(parsed[0] and parsed[1] and verify(*parsed, timeout_seconds=None))
