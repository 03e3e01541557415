"""The part of DeepSeekMath's equality that parses formulas; it runs in the worker alone."""

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from math import isclose
from typing import Any, TypeAlias

from eval.grading.paper_rules import TOLERANCE, same_lists

Expression: TypeAlias = Any  # Any: sympy's grammar has no types
NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def compare_as_paper(golds: Sequence[str], predictions: Sequence[str]) -> bool:
    """Return whether two lists of formulas match by `same_lists`, pairs compared by `same_formula`.

    It is called in the worker process, whose calls have a deadline.
    """
    return same_lists(golds, predictions, same_formula)


def same_formula(prediction: str, gold: str) -> bool:
    """Return whether the difference simplifies to 0 or the values are within 0.001."""
    sympy = import_module("sympy")
    try:
        a, b = parse_prefix(prediction), parse_prefix(gold)
    except Exception:  # no formula; the grammar's actions raise many kinds
        return False
    tests = (
        lambda: sympy.simplify(a - b) == 0,
        lambda: isclose(sympy.N(a), sympy.N(b), abs_tol=TOLERANCE),
    )
    return any(is_true(test) for test in tests)


def is_true(test: Callable[[], object]) -> bool:
    """Return whether a test is true; an error counts as false.

    Formulas without a difference or a value raise many kinds of errors.
    """
    try:
        return bool(test())
    except Exception:  # as above
        return False


def parse_prefix(text: str) -> Expression:
    r"""Parse the longest prefix of a text that is a formula to sympy's grammar; `\pi` is a letter.

    This is `sympy.parsing.latex.parse_latex` without its check of the ANTLR version: math-verify
    needs a newer one. A plain number is not parsed, as the grammar takes a second for 1,000 digits.
    """
    if NUMBER.fullmatch(text):
        return import_module("sympy").Number(text)
    antlr = import_module("antlr4")
    grammar = import_module("sympy.parsing.latex._parse_latex_antlr")
    listener = grammar.MathErrorListener(text)
    lexer = grammar.LaTeXLexer(antlr.InputStream(text))
    parser = grammar.LaTeXParser(antlr.CommonTokenStream(lexer))
    for recogniser in (lexer, parser):
        recogniser.removeErrorListeners()
        recogniser.addErrorListener(listener)
    return grammar.convert_relation(parser.math().relation())
