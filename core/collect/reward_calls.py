"""Calls the reward functions once and refuses what is no reward, naming function and sample."""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from decimal import Decimal
from functools import partial
from inspect import Parameter, iscoroutinefunction, signature
from itertools import count
from numbers import Real
from typing import Any, Self

from transformers.utils import logging

from core.collect.event_loop import AsyncLoop
from core.collect.reward_time import report_overrun, time_limit_s
from core.errors import RewardError
from core.rewards.completions import Completion, completion_text
from eval.errors import BadValue
from eval.time_limit import each_within

Step = tuple[int, float]  # (offset just after the step in the text, its reward)
Value = float | None | list[Step]
SHORT = 60  # characters of a prompt in an error
RAISED = "raised this on"
# Keywords of every reward function: those with a value per completion, and those without.
SAMPLED = ("prompts", "completions", "completion_ids")
SHARED = ("trainer_state", "log_extra", "log_metric")
PROMPT_TEXTS = "prompt_texts"  # keyword of functions with the attribute `reads_prompt_texts`
logger = logging.get_logger(__name__)
NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def called(function: Any) -> Any:  # Any: whatever can be called
    """What a partial, perhaps of a partial, calls in the end."""
    while isinstance(function, partial):
        function = function.func
    return function


def reads_prompt_texts(call: Any) -> bool:  # Any: a reward function, or what one holds
    """Return whether a reward function, or one that it wraps, reads prompts as text."""
    held = fields(call) if is_dataclass(call) and not isinstance(call, type) else ()
    parts = (getattr(call, field.name) for field in held)
    return bool(getattr(call, "reads_prompt_texts", False)) or any(map(reads_prompt_texts, parts))


@dataclass(frozen=True, kw_only=True)
class RewardFunction:
    """A reward function under its metric name."""

    name: str
    call: Callable[..., Any]

    @classmethod
    def of(cls, call: Callable[..., Any]) -> Self:
        """A reward function under its own name, or that of its class."""
        function = called(call)
        return cls(name=getattr(function, "__name__", None) or type(function).__name__, call=call)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the data that it cannot be called without."""
        parameters = signature(self.call).parameters.values()
        named = [p.name for p in parameters if p.default is p.empty and p.kind in NAMED]
        return tuple(name for name in named if name not in (*SAMPLED, *SHARED, PROMPT_TEXTS))

    @property
    def reads_prompt_texts(self) -> bool:
        """Return whether this reward, or one within it, reads prompts as text, as models do."""
        return reads_prompt_texts(called(self.call))

    @property
    def per_step(self) -> bool:
        """Whether it returns a list of steps for each completion."""
        return bool(getattr(self.call, "per_step", False))

    @property
    def per_token(self) -> Callable[[Sequence[int]], Sequence[float]] | None:
        """What each token of a completion gets of the reward, where the reward says it."""
        return getattr(self.call, "per_token", None)

    @property
    def is_async(self) -> bool:
        """Whether calling it gives a coroutine."""
        call = called(self.call)
        return iscoroutinefunction(call) or iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004 - the method


def named_apart(functions: Sequence[RewardFunction]) -> list[RewardFunction]:
    """Return the functions, numbered where several have one name: `f_1`, `f_2`."""
    names = [f.name for f in functions]
    taken = set(names)
    apart: list[RewardFunction] = []
    for f in functions:
        free = (name for n in count(1) if (name := f"{f.name}_{n}") not in taken)
        name = f.name if names.count(f.name) == 1 else next(free)
        taken.add(name)
        apart.append(replace(f, name=name))
    return apart


def copied(value: Any) -> Any:  # Any: a value of a column
    """Copy lists and mappings, also those within; everything else stays the same object."""
    if isinstance(value, list):
        return [copied(part) if isinstance(part, list | dict) else part for part in value]
    if isinstance(value, dict):
        return {key: copied(part) for key, part in value.items()}
    return value


def place_of(name: str, functions: Sequence[RewardFunction]) -> int:
    """Which of the functions `selection_reward` names.

    Raises:
        BadValue: none of them, or several.
    """
    names = [f.name for f in functions]
    if names.count(name) != 1:
        known = ", ".join(names) or "none"
        raise BadValue(f"selection_reward={name!r}: expected the name of one reward of {known}")
    return names.index(name)


@dataclass(frozen=True, kw_only=True)
class Samples:
    """The keywords of a reward call that have one value per completion.

    `prompt_texts` are the prompts as the model reads them, for the functions that read them.
    """

    columns: dict[str, list[Any]]
    prompt_texts: list[str] | None = None

    @staticmethod
    def of(
        rows: Sequence[dict[str, Any]],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        prompt_texts: list[str] | None = None,
    ) -> "Samples":
        """Collect prompts, completions and every other column of the rows."""
        reserved = ("prompt", "completion", "completion_ids")
        columns = {key: [row[key] for row in rows] for key in rows[0] if key not in reserved}
        columns["prompts"] = [row["prompt"] for row in rows]
        columns["completions"] = list(completions)
        columns["completion_ids"] = list(completion_ids)
        return Samples(columns=columns, prompt_texts=prompt_texts)

    def keywords(self, f: RewardFunction) -> dict[str, list[Any]]:
        """The keywords of a function; a column of the dataset wins over the texts of prompts.

        Their lists are copies, which the function may change.
        """
        if self.prompt_texts is None or not f.reads_prompt_texts:
            return copied(self.columns)
        return copied({PROMPT_TEXTS: self.prompt_texts, **self.columns})

    def __len__(self) -> int:
        return len(self.columns["prompts"])

    def named(self, i: int) -> str:
        """Name sample `i` by its number and the start of its prompt."""
        return f"sample {i} ({self.prompt(i)})"

    def prompt(self, i: int) -> str:
        """The start of the prompt of sample `i`, on one line."""
        text = " ".join(completion_text(self.columns["prompts"][i]).split())
        return text[:SHORT] + "..." if len(text) > SHORT else text


def call_rewards(
    functions: Sequence[RewardFunction],
    samples: Samples,
    shared: dict[str, Any],
    loop: AsyncLoop,
) -> list[list[Value]]:
    """The values of each function, in order; `shared` are the keywords without a value per sample.

    Functions run one after the other, the asynchronous ones together after them. What one raises is
    raised as it is, with a note that names the function. Plain calls are limited by `reward_time`.

    Raises:
        RewardError: a value is missing, not finite or no number.
    """
    waiting = [f for f in functions if f.is_async]
    plain = {id(f): call_within_limit(f, samples, shared) for f in functions if not f.is_async}
    together = loop.run(gather_calls(waiting, samples, shared)) if waiting else []
    for f, output in zip(waiting, together, strict=True):
        if isinstance(output, BaseException):
            output.add_note(raised_by(f, samples))
            raise output
    awaited = {id(f): checked(f, samples, o) for f, o in zip(waiting, together, strict=True)}
    return [(plain | awaited)[id(f)] for f in functions]


async def gather_calls(
    functions: Sequence[RewardFunction], samples: Samples, shared: dict[str, Any]
) -> list[Any]:
    """The outputs of async functions, or what they raised."""
    calls = (f.call(**samples.keywords(f), **shared) for f in functions)
    return await asyncio.gather(*calls, return_exceptions=True)


def call_within_limit(f: RewardFunction, samples: Samples, shared: dict[str, Any]) -> list[Value]:
    """Call a function that is not asynchronous; over its time limit no completion gets a reward."""
    n, limit_s = len(samples), time_limit_s(called(f.call), len(samples))

    def scored(one: RewardFunction) -> list[Value]:
        return checked(one, samples, call_one(one, samples, shared))

    [values] = each_within(limit_s, scored, [f], None)
    if values is None:
        report_overrun(f.name, limit_s, called_on(samples), n, shared)
        return [[] if f.per_step else None for _ in range(n)]
    return values


def call_one(f: RewardFunction, samples: Samples, shared: dict[str, Any]) -> Any:
    """Call a function that is not asynchronous on all samples."""
    try:
        return f.call(**samples.keywords(f), **shared)
    except Exception as error:  # a user's code may raise anything
        error.add_note(raised_by(f, samples))
        raise


def raised_by(f: RewardFunction, samples: Samples) -> str:
    """Say which function raised an error, and what it was called on."""
    return (
        f"reward {f.name!r} {RAISED} {called_on(samples)}: fix it and continue from the last "
        "checkpoint"
    )


def called_on(samples: Samples) -> str:
    """Say how many completions a function was called on, and to which prompt the first."""
    return f"{len(samples)} completions, the first to ({samples.prompt(0)})"


def reward_note(error: BaseException) -> str | None:
    """What `call_rewards` noted on an error, if a reward function raised it."""
    return next((note for note in getattr(error, "__notes__", ()) if RAISED in note), None)


def checked(f: RewardFunction, samples: Samples, output: Any) -> list[Value]:
    """Turn an output into one float, None or list of steps per sample."""
    try:
        values = list(output)
    except TypeError:
        raise RewardError(
            f"reward {f.name!r} returned {type(output).__name__}: expected a list of "
            f"{len(samples)} numbers or None, one per completion"
        ) from None
    if len(values) != len(samples):
        where = f"; {samples.named(len(values))} has none" if len(values) < len(samples) else ""
        raise RewardError(
            f"reward {f.name!r} returned {len(values)} values for {len(samples)} completions: "
            f"expected one per completion, None where it does not apply{where}"
        )
    if f.per_step:
        steps = [
            [(int(end), number(f, samples, i, reward)) for end, reward in given]
            for i, given in enumerate(values)
        ]
        return [[(end, r) for end, r in found if r is not None] for found in steps]
    return [number(f, samples, i, value) for i, value in enumerate(values)]


def number(f: RewardFunction, samples: Samples, i: int, value: Any) -> float | None:
    """Read a finite number, a tensor's or an array's too; NaN is None, as in TRL."""
    plain = value.item() if hasattr(value, "item") else value
    if plain is None or (isinstance(plain, Real | Decimal) and math.isnan(plain)):
        return None
    if isinstance(plain, Real | Decimal) and math.isfinite(plain):
        return float(plain)
    raise RewardError(
        f"reward {f.name!r} returned {plain!r} for {samples.named(i)}: expected a finite number, "
        "or None where it does not apply"
    )


def outcome(value: Value) -> float:
    """One number of a completion: a step function's is the mean of its steps; NaN for none."""
    if isinstance(value, list):
        return sum(reward for _, reward in value) / len(value) if value else math.nan
    return math.nan if value is None else value


def warn_of_unscored(values: Sequence[Sequence[Value]], samples: Samples) -> None:
    """Warn of the first sample that no function gave a reward, with the keywords of its call."""
    for i, row in enumerate(zip(*values, strict=True)):
        if all(math.isnan(outcome(value)) for value in row):
            keywords = {name: column[i] for name, column in samples.columns.items()}
            logger.warning(
                f"All reward functions returned None for the following kwargs: {keywords}; its "
                "advantage is 0: let at least one function return a reward"
            )
            return
