"""Recognises answers that name another variable, or another half of the day, than the reference."""

import re

RELATION = re.compile(r"[=<>≤≥≠∈]|\\(?:l|g|n)(?:t|eq?)(?![A-Za-z])|\\in(?![A-Za-z])")
BOUND = re.compile(r"\{\s*+[A-Za-z]\s*+(?:\||:|∈|\\(?:mid|in)(?![A-Za-z]))")  # in a set builder
COMMAND = re.compile(r"\\text\s*+\{[^{}]*+\}|\\[A-Za-z]++")
VARIABLE = re.compile(r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])")
HALF = re.compile(r"\d\s*+(?:\\[a-z]+\s*+\{\s*+)?([ap])\.?\s?m\b", re.IGNORECASE)


def contradict(gold: str, prediction: str) -> bool:
    """Return whether each of two answers names a variable or a half of the day the other does not.

    `x > 2` contradicts `y > 2`, and 9 a.m. contradicts 9 p.m.; neither contradicts 9.
    """
    return any(
        names(gold) - names(prediction) and names(prediction) - names(gold)
        for names in (free_variables, halves_of_day)
    )


def free_variables(text: str) -> set[str]:
    """Return the variables of an equation or inequality; empty for a set builder or a value."""
    if not RELATION.search(text) or BOUND.search(text):
        return set()
    return variables(text)


def variables(text: str) -> set[str]:
    """Return the letters of a formula that stand alone, without units and words."""
    return set(VARIABLE.findall(COMMAND.sub(" ", text)))


def halves_of_day(text: str) -> set[str]:
    """Return which halves of the day a text names: "a" for a.m., "p" for p.m."""
    return {half.lower() for half in HALF.findall(text)}
