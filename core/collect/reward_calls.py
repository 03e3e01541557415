"""Calls of reward functions, with checks of what they return that name function and sample."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from decimal import Decimal
from functools import partial
from inspect import Parameter, iscoroutinefunction, signature
from itertools import count
from numbers import Real
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar, cast

from core.collect.event_loop import AsyncLoop
from core.collect.reward_time import report_overrun, time_limit_s
from core.errors import RewardError
from core.rewards.completions import Completion, completion_text
from eval.errors import BadValue
from eval.time_limit import each_within

if TYPE_CHECKING:  # transformers, which the plan of a run must not wait for
    from core.data.conversations import Row

UncheckedReward: TypeAlias = Callable[..., object]  # whose output `read_values` checks
Part = TypeVar("Part")
Step = tuple[int, float]  # (offset just after the step in the text, its reward)
Value = float | None | list[Step]
UNORDERED = (Mapping, Set)  # what has no order, or other things than its values in it
SHORT = 60  # characters of a prompt in an error
RAISED = "raised this on"
# Keywords of every reward function: those with a value per completion, and those without.
SAMPLED = ("prompts", "completions", "completion_ids")
SHARED = ("trainer_state", "log_extra", "log_metric")
PROMPT_TEXTS = "prompt_texts"  # keyword of functions with the attribute `reads_prompt_texts`
NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def unwrap_partial(function: UncheckedReward) -> UncheckedReward:
    """Return the function inside nested partials."""
    while isinstance(function, partial):
        function = function.func
    return function


def reads_prompt_texts(call: object) -> bool:
    """Return whether a reward function, or one in its dataclass fields, reads prompts as text."""
    wrapped = fields(call) if is_dataclass(call) and not isinstance(call, type) else ()
    parts = (getattr(call, field.name) for field in wrapped)
    return bool(getattr(call, "reads_prompt_texts", False)) or any(map(reads_prompt_texts, parts))


@dataclass(frozen=True, kw_only=True)
class RewardFunction:
    """A reward function with the name of its metric."""

    name: str
    call: UncheckedReward

    @classmethod
    def of(cls, call: UncheckedReward) -> Self:
        """Wrap a reward function under its own name, or that of its class."""
        function = unwrap_partial(call)
        return cls(name=getattr(function, "__name__", None) or type(function).__name__, call=call)

    @property
    def columns(self) -> tuple[str, ...]:
        """Dataset columns that are required parameters of the function, or that it names itself."""
        stated: tuple[str, ...] | None = getattr(self.call, "required_columns", None)
        if stated is not None:
            return stated
        parameters = signature(self.call).parameters.values()
        required = [p.name for p in parameters if p.default is p.empty and p.kind in NAMED]
        return tuple(name for name in required if name not in (*SAMPLED, *SHARED, PROMPT_TEXTS))

    @property
    def reads_prompt_texts(self) -> bool:
        """True if this reward, or one within it, reads prompts as text, as reward models do."""
        return reads_prompt_texts(unwrap_partial(self.call))

    @property
    def per_step(self) -> bool:
        """True if the function returns a list of steps for each completion."""
        return bool(getattr(self.call, "per_step", False))

    @property
    def per_token(self) -> Callable[[Sequence[int]], Sequence[float]] | None:
        """Function from token ids to rewards of tokens, None if the reward has no such part."""
        return getattr(self.call, "per_token", None)

    @property
    def is_async(self) -> bool:
        """True if calling the function returns a coroutine."""
        call = unwrap_partial(self.call)
        return iscoroutinefunction(call) or iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004 - the method


def with_unique_names(functions: Sequence[RewardFunction]) -> list[RewardFunction]:
    """Return the functions with unique names: equal names get the suffixes `_1`, `_2`."""
    names = [f.name for f in functions]
    names_in_use = set(names)
    renamed: list[RewardFunction] = []
    for f in functions:
        free = (name for n in count(1) if (name := f"{f.name}_{n}") not in names_in_use)
        name = f.name if names.count(f.name) == 1 else next(free)
        names_in_use.add(name)
        renamed.append(replace(f, name=name))
    return renamed


def copy_lists(value: Part) -> Part:
    """Copy lists and mappings recursively; other values are not copied."""
    if isinstance(value, list):
        copied = [copy_lists(part) if isinstance(part, list | dict) else part for part in value]
        return cast(Part, copied)
    if isinstance(value, dict):
        return cast(Part, {key: copy_lists(part) for key, part in value.items()})
    return value


def reward_index(name: str, functions: Sequence[RewardFunction]) -> int:
    """Return the index of the reward function with this name.

    Raises:
        BadValue: there is not exactly one function with the name.
    """
    names = [f.name for f in functions]
    if names.count(name) != 1:
        available = ", ".join(names) or "none"
        raise BadValue(f"selection_reward={name!r}: expected the name of one reward of {available}")
    return names.index(name)


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Keywords of a reward call that have one value per completion.

    `prompt_texts` are the prompts as the model reads them, for functions that read them.
    """

    columns: dict[str, list[object]]
    prompt_texts: list[str] | None = None

    @staticmethod
    def of(
        rows: "Sequence[Row]",
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        prompt_texts: list[str] | None = None,
    ) -> "Samples":
        """Collect prompts, completions and all other columns of the rows."""
        reserved = ("prompt", "completion", "completion_ids")
        columns = {key: [row[key] for row in rows] for key in rows[0] if key not in reserved}
        columns["prompts"] = [row["prompt"] for row in rows]
        columns |= {"completions": [*completions], "completion_ids": [*completion_ids]}
        return Samples(columns=columns, prompt_texts=prompt_texts)

    def keywords(self, f: RewardFunction) -> Mapping[str, Sequence[object]]:
        """Return the keywords for a function, as lists that the function may change.

        A dataset column with the name of the prompt texts takes precedence over them.
        """
        if self.prompt_texts is None or not f.reads_prompt_texts:
            return copy_lists(self.columns)
        return copy_lists({PROMPT_TEXTS: self.prompt_texts, **self.columns})

    def __len__(self) -> int:
        return len(self.columns["prompts"])

    def describe(self, i: int) -> str:
        """Describe sample `i` by its index and the start of its prompt."""
        return f"sample {i} ({self.prompt(i)})"

    def prompt(self, i: int) -> str:
        """Return the start of the prompt of sample `i`, on one line."""
        text = " ".join(completion_text(cast(Completion, self.columns["prompts"][i])).split())
        return text[:SHORT] + "..." if len(text) > SHORT else text


def call_rewards(
    functions: Sequence[RewardFunction],
    samples: Samples,
    shared: Mapping[str, object],
    loop: AsyncLoop,
) -> list[list[Value]]:
    """Return the values of each function, in the order of the functions.

    Synchronous functions are called one by one and limited by `reward_time`; asynchronous functions
    then run concurrently. Exceptions of a function are re-raised with a note that names it.

    Args:
        functions: Reward functions.
        samples: Keywords with one value per completion.
        shared: Keywords without a value per completion.
        loop: Event loop of asynchronous functions.

    Raises:
        RewardError: a value is missing, not finite or no number.
    """
    waiting = [f for f in functions if f.is_async]
    plain = {id(f): call_within_limit(f, samples, shared) for f in functions if not f.is_async}
    together = loop.run(gather_calls(waiting, samples, shared)) if waiting else []
    for f, output in zip(waiting, together, strict=True):
        if isinstance(output, BaseException):
            output.add_note(error_note(f, samples))
            raise output
    awaited = {id(f): read_values(f, samples, o) for f, o in zip(waiting, together, strict=True)}
    return [(plain | awaited)[id(f)] for f in functions]


async def gather_calls(
    functions: Sequence[RewardFunction], samples: Samples, shared: Mapping[str, object]
) -> list[object]:
    """Return the outputs of async functions, or the exceptions they raised."""
    calls = [f.call(**samples.keywords(f), **shared) for f in functions]
    return await asyncio.gather(*cast(list[Awaitable[object]], calls), return_exceptions=True)


def call_within_limit(
    f: RewardFunction, samples: Samples, shared: Mapping[str, object]
) -> list[Value]:
    """Call a synchronous function; if it exceeds its time limit, all completions get None.

    Functions of steps then give an empty list of steps.
    """
    n, limit_s = len(samples), time_limit_s(unwrap_partial(f.call), len(samples))

    def call_and_check(function: RewardFunction) -> list[Value]:
        return read_values(function, samples, call_one(function, samples, shared))

    [values] = each_within(limit_s, call_and_check, [f], None)
    if values is None:
        report_overrun(f.name, limit_s, describe_call(samples), n, shared)
        return [[] if f.per_step else None for _ in range(n)]
    return values


def call_one(f: RewardFunction, samples: Samples, shared: Mapping[str, object]) -> object:
    """Call a synchronous function on all samples."""
    try:
        return f.call(**samples.keywords(f), **shared)
    except Exception as error:  # a user's code may raise anything
        error.add_note(error_note(f, samples))
        raise


def error_note(f: RewardFunction, samples: Samples) -> str:
    """Return the note for an exception: which function raised it, and on which samples."""
    return (
        f"reward {f.name!r} {RAISED} {describe_call(samples)}: fix it and continue from the last "
        "checkpoint"
    )


def describe_call(samples: Samples) -> str:
    """Describe the samples of a call: their number, and the first prompt."""
    return f"{len(samples)} completions, the first to ({samples.prompt(0)})"


def reward_note(error: BaseException) -> str | None:
    """Return the note that `call_rewards` added to an exception, None if no reward raised it."""
    return next((note for note in getattr(error, "__notes__", ()) if RAISED in note), None)


def read_values(f: RewardFunction, samples: Samples, output: object) -> list[Value]:
    """Convert a function's output into one float, None or list of steps per sample.

    Raises:
        RewardError: the output is no list of numbers with one value per sample.
    """
    try:
        values = None if isinstance(output, UNORDERED) else list(cast(Iterable[object], output))
    except TypeError:
        values = None
    if values is None:
        raise RewardError(
            f"reward {f.name!r} returned {type(output).__name__}: expected a list of "
            f"{len(samples)} numbers or None, one per completion"
        )
    if len(values) != len(samples):
        where = f"; {samples.describe(len(values))} has none" if len(values) < len(samples) else ""
        raise RewardError(
            f"reward {f.name!r} returned {len(values)} rewards, but {len(samples)} were expected: "
            f"one per completion, None where it does not apply{where}"
        )
    if f.per_step:
        return [read_steps(f, samples, i, steps) for i, steps in enumerate(values)]
    return [read_number(f, samples, i, value) for i, value in enumerate(values)]


def read_steps(f: RewardFunction, samples: Samples, i: int, steps: object) -> list[Step]:
    """Return the (end, reward) pairs of sample `i` whose reward is not None."""
    pairs_of_steps = cast(Iterable[tuple[int, object]], steps)
    pairs = [(int(end), read_number(f, samples, i, reward)) for end, reward in pairs_of_steps]
    return [(end, reward) for end, reward in pairs if reward is not None]


def read_number(f: RewardFunction, samples: Samples, i: int, value: object) -> float | None:
    """Convert a value, also a tensor or array, to a finite float; NaN becomes None, as in TRL.

    Raises:
        RewardError: the value is not finite or no number.
    """
    plain = plain_value(value)
    if plain is None or plain != plain:  # None or NaN
        return None
    with suppress(OverflowError):  # a huge integer
        if isinstance(plain, Real | Decimal) and math.isfinite(plain):
            return float(plain)
    raise RewardError(
        f"reward {f.name!r} returned {plain!r:.{SHORT}} for {samples.describe(i)}: expected a "
        "finite number, or None where it does not apply"
    )


def plain_value(value: object) -> object:
    """Return the only item of a tensor or array, the text of a larger one; else the value."""
    item: Callable[[], object] | None = getattr(value, "item", None)  # of numpy or torch
    try:
        return value if item is None else item()
    except (ValueError, RuntimeError):  # it has several items
        return f"{value}"


def outcome_reward(value: Value) -> float:
    """Return one number per completion: the mean of a list of steps; NaN for None or no steps."""
    if isinstance(value, list):
        return sum(reward for _, reward in value) / len(value) if value else math.nan
    return math.nan if value is None else value


def warn_of_unscored(values: Sequence[Sequence[Value]], samples: Samples) -> None:
    """Warn of the first sample that no function scored, with the keywords of its call."""
    from transformers.utils import logging

    for i, row in enumerate(zip(*values, strict=True)):
        if all(math.isnan(outcome_reward(value)) for value in row):
            keywords = {name: column[i] for name, column in samples.columns.items()}
            logging.get_logger(__name__).warning(
                f"All reward functions returned None for the following kwargs: {keywords}; its "
                "advantage is 0: let at least one function return a reward"
            )
            return
