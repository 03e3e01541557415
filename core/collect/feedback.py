"""Calls of functions that write feedback on completions, with checks of what they return."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import cast

from core.collect.reward_calls import Samples, copy_lists, unwrap_partial
from core.errors import RewardError
from eval.errors import BadValue

# Returns a text or None for each completion; the keywords are those of a reward function.
FeedbackFunction = Callable[..., Iterable[str | None]]


def checked_functions(
    functions: FeedbackFunction | Sequence[FeedbackFunction] | None,
) -> list[FeedbackFunction]:
    """Return feedback functions as a list.

    Raises:
        BadValue: one is no function, or one whose result has to be awaited.
    """
    given = [functions] if callable(functions) else list(functions or ())
    for function in given:
        if not callable(function) or iscoroutinefunction(unwrap_partial(function)):
            raise BadValue(
                f"feedback_funcs has {function!r:.80}: expected a function that returns a list of "
                "texts"
            )
    return given


def call_feedback(
    functions: Sequence[FeedbackFunction], samples: Samples, shared: Mapping[str, object]
) -> list[str | None]:
    """Return the feedback on each completion, a line for each function; None where there is none.

    Args:
        functions: The functions.
        samples: Keywords with one value per completion.
        shared: Keywords without a value per completion.

    Raises:
        RewardError: a function returns no list, another number of values, or one that is no text.
    """
    columns = [texts_of(function, samples, shared) for function in functions]
    written = (
        [text for text in texts if text and text.strip()] for texts in zip(*columns, strict=True)
    )
    return ["\n".join(texts) or None for texts in written]


def texts_of(
    function: FeedbackFunction, samples: Samples, shared: Mapping[str, object]
) -> list[str | None]:
    """Return the feedback of one function on each completion, see `call_feedback`."""
    called = unwrap_partial(function)
    name = getattr(called, "__name__", None) or type(called).__name__
    returned: object = function(**copy_lists(samples.columns), **shared)
    if isinstance(returned, str) or not isinstance(returned, Iterable):
        raise RewardError(f"feedback {name!r} returned {returned!r:.80}: expected a list of texts")
    output = list(cast(Iterable[object], returned))
    if len(output) != len(samples):
        raise RewardError(
            f"feedback {name!r} returned {len(output)} texts, but {len(samples)} were expected: "
            f"one per completion, None where there is none; the first is {samples.describe(0)}"
        )
    for i, text in enumerate(output):
        if text is not None and not isinstance(text, str):
            raise RewardError(
                f"feedback {name!r} returned {text!r} for {samples.describe(i)}: expected a text, "
                "or None"
            )
    return cast(list[str | None], output)
