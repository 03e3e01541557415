"""Keywords of generation beside the settings of sampling: which of them each engine takes."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from core.configs.engines import ENGINES, RolloutEngine
from eval.errors import BadValue

Keywords: TypeAlias = Mapping[str, Any]  # Any: a number, a text, a list of either
MAX_TOKENS = "max_new_tokens"
# Names of transformers' `generate`, and the fields of a config that say the same.
SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "repetition_penalty": "repetition_penalty",
    MAX_TOKENS: "max_completion_length",
}
ENDS, STOPS = "eos_token_id", "stop_strings"
NEUTRAL = {"do_sample": True, "num_beams": 1, "num_return_sequences": 1, "use_cache": True}


def sampling_settings(config: Any) -> dict[str, Any]:  # Any: a config with these fields
    """Return the decoding in the words of transformers; `generation_kwargs` win over fields.

    Ends and stop strings are among them where they are given.
    """
    fields = {name: getattr(config, field) for name, field in SETTINGS.items()}
    taken = (*SETTINGS, ENDS, STOPS)
    given = {k: v for k, v in config.generation_keywords.items() if k in taken and v is not None}
    return {**fields, **given}


def passed_on(engine: str, given: Keywords) -> tuple[tuple[str, Any], ...]:
    """The keywords that an engine passes on as they are."""
    return tuple((name, given[name]) for name in ENGINES[engine].keywords if name in given)


def check_keywords(engine: str, given: Keywords) -> None:
    """Refuse keywords that an engine does not take, unless they change nothing.

    Raises:
        BadValue: there is one, or ends and stop strings are none.
    """
    row = ENGINES[engine]
    for name, value in given.items():
        idle = value is None or NEUTRAL.get(name) == value
        if not (idle or name in taken_by(row)):
            takers = [key for key, other in ENGINES.items() if name in taken_by(other)]
            there = f"; rollout_engine={takers[0]!r} takes it" if takers else ""
            raise BadValue(
                f"generation_kwargs={{{name!r}: {value!r}}} is not supported by rollout_engine="
                f"{engine!r}: expected some of {', '.join(taken_by(row))}{there}"
            )
    for name, kind in ((ENDS, int), (STOPS, str)):
        value = given.get(name)
        if value is not None and not all(isinstance(one, kind) for one in listed(value)):
            raise BadValue(
                f"generation_kwargs={{{name!r}: {value!r}}}: expected one or several of type "
                f"{kind.__name__}"
            )


def taken_by(row: RolloutEngine) -> tuple[str, ...]:
    """The names of all keywords that an engine takes."""
    return (*SETTINGS, ENDS, *((STOPS,) if row.stops_at_strings else ()), *row.keywords)


def listed(value: Any) -> Sequence[Any]:  # Any: one value, or several
    """Return several values as they are; wrap a single one."""
    return value if isinstance(value, list | tuple) else [value]


def check_sampling(values: Keywords) -> None:
    """Refuse sampling parameters that leave no distribution to sample from.

    Raises:
        BadValue: one is out of range.
    """
    bounds: Mapping[str, tuple[Any, str]] = {  # Any: a predicate of a number
        "temperature": (lambda x: x > 0, "above 0, completions are sampled"),
        "top_p": (lambda x: 0 < x <= 1, "above 0 and at most 1"),
        "top_k": (lambda x: x == int(x) and x >= 0, "an integer of at least 0"),
        "min_p": (lambda x: x is None or 0 <= x <= 1, "0 to 1"),
        "repetition_penalty": (lambda x: x > 0, "above 0"),
        MAX_TOKENS: (lambda x: x == int(x) and x >= 1, "an integer of at least 1"),
    }
    for name, (holds, expected) in bounds.items():
        value = values[name]
        number = value is None or isinstance(value, int | float)
        if not number or (value is None and name != "min_p") or not holds(value):
            raise BadValue(f"{name}={value!r}: expected {expected}")
