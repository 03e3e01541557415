"""No regular expression that meets a model's text can take exponential or quadratic time."""

import ast
import builtins
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from pattern_time import is_exponential, is_quadratic

from eval.grading.chinese import HAN

PACKAGES = ("eval.grading", "eval.samples", "core.rewards")
EXPONENTIAL = (
    # words around a number: each run of letters can be cut anywhere
    rf"(?:[{HAN}\s,.:;()¥$~=]|\\text\s*\{{|[{{}}]|[A-Za-z]{{1,3}}[²³]?)*",
    r"(a+)+b",
    r"(?:a|ab|b)*c",
    r"(?:\s*x?)*y",
    r"(?:.*,)*x",
    r"(?>(?:a|a)*b)",
    r"(?=(a*)*b)",
    r"(?:-?(?:x|-)?1)*",
    r"(?i:(?:ab|[A-B]b)+)c",
)
QUADRATIC = (
    r"```([A-Za-z]*)[^\n`]*\n",  # a fence that no line end follows
    r"\s*,?\s*and",
    r"\d+x?\d*+y",
    r"\w*.*?b",
    r"(?:ab|b)*b*c",
)
LINEAR = (
    r"a*b*c",
    r"(?:a+b)+c",
    r"(?:a*+)*+b",
    r"(?:a++|b)*c",
    r"\s*+,?\s*+and",
    r"(?:[a-z]|(?<=[a-z])[²³]|\\text\{)*+",
    r"(?:x\b|\bx|y)*z",
    r"\d{1,3}(?:,\d{3})*[.]",
    r"a*x?a*",  # the last loop may end the pattern, so that nothing fails
)


def modules() -> list[ModuleType]:
    return [
        importlib.import_module(found.name)
        for package in PACKAGES
        for found in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}.")
    ]


def compiled(value: Any) -> Iterator[re.Pattern[str]]:
    """The patterns in a variable, at any depth of tuples, lists and dictionaries."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from compiled(one)
    elif isinstance(value, dict):
        yield from compiled(list(value.values()))


def inline(module: ModuleType) -> Iterator[re.Pattern[str]]:
    """The patterns in calls such as `re.sub`, but those with a deadline of their own.

    Those that a local name makes and `re.compile` compiles are in variables, or are a user's.
    """
    for call in ast.walk(ast.parse(inspect.getsource(module))):
        match call:
            case ast.Call(func=ast.Attribute(ast.Name("re" | "regex"), name), args=[first, *_]):
                if any(one.arg == "timeout" for one in call.keywords) or name == "escape":
                    continue
                try:
                    # `eval` is a package of ours; the source is ours too
                    pattern = builtins.eval(
                        compile(ast.Expression(first), "", "eval"), vars(module)
                    )
                except NameError:
                    assert name == "compile", f"{module.__name__}:{call.lineno} is not checked"
                    continue
                yield re.compile(pattern)


def patterns() -> dict[tuple[str, int], str]:
    """Every pattern with its flags, and the module that has it."""
    return {
        (found.pattern, found.flags & ~re.DEBUG): module.__name__
        for module in modules()
        for found in (*inline(module), *compiled(dict(vars(module))))
        if isinstance(found.pattern, str)
    }


@pytest.mark.parametrize("pattern", EXPONENTIAL)
def test_nested_quantifiers_over_overlapping_classes_are_found(pattern: str):
    assert is_exponential(pattern)


@pytest.mark.parametrize("pattern", QUADRATIC)
def test_adjacent_quantifiers_over_overlapping_classes_are_found(pattern: str):
    assert is_quadratic(pattern)
    assert not is_exponential(pattern)


@pytest.mark.parametrize("pattern", LINEAR)
def test_linear_patterns_are_accepted(pattern: str):
    assert not is_exponential(pattern)
    assert not is_quadratic(pattern)


def test_patterns_of_grading_and_rewards_are_linear():
    found = patterns()
    assert len(found) > 100
    assert not {p: where for (p, flags), where in found.items() if is_exponential(p, flags)}
    assert not {p: where for (p, flags), where in found.items() if is_quadratic(p, flags)}
