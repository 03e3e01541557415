"""Applies the rules of grading within a limit of processor time, in any thread.

In the main thread a timer interrupts them, which costs an ordinary text nothing; in another thread
they are a worker's, which its own timer ends.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from eval.grading.worker import CPU_S, ask_all
from eval.time_limit import can_interrupt, each_within

Result = TypeVar("Result")
Undecided = Literal["timeout", "error"]


def each_limited(
    rule: Callable[..., Result],
    items: Sequence[tuple[Any, ...]],  # Any: the arguments of the rule
    decode: Callable[[Any], Result],  # Any: from JSON
) -> list[Result | Undecided]:
    """Return what a rule says of the arguments in each item, or why it says nothing.

    `serve` has the rule under its name. Its result is no text, and None or what `decode` makes of a
    worker's answer.
    """
    if can_interrupt():
        return each_within(CPU_S, lambda item: rule(*item), items, "timeout")
    answers: list[Any] = ask_all(items, rule.__name__)
    results: list[Any] = [a if a is None or isinstance(a, str) else decode(a) for a in answers]
    return results
