"""Applies the rules of grading within a limit of processor time, in any thread.

In the main thread, a timer interrupts a rule; ordinary texts take no extra time. In other threads,
the rules run in a worker process, which its own timer ends.
"""

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from eval.grading.worker import CPU_S, Json, ask_all
from eval.time_limit import can_interrupt, each_within

Result = TypeVar("Result")
Undecided = Literal["timeout", "error"]


def each_limited(
    rule: Callable[..., Result],
    items: Sequence[tuple[object, ...]],
    decode: Callable[[Json], Result],
) -> list[Result | Undecided]:
    """Apply a rule to the arguments in each item; return its results, or why there is none.

    The rule must be one of those in `serve`, and its result never a text. `decode` converts a
    worker's answer; the answer None stays None.
    """
    if can_interrupt():
        return each_within(CPU_S, lambda item: rule(*item), items, "timeout")
    answers = ask_all(items, rule.__name__)
    results: list[Json] = [
        answer if answer is None or isinstance(answer, str) else decode(answer)
        for answer in answers
    ]
    return results
