"""Keywords of generation beside the settings of sampling, and which engine takes them."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, Protocol, TypeAlias

from core.configs.engines import ENGINES, RolloutEngine
from eval.errors import BadValue
from eval.json_lines import JsonFields, JsonObject

Keywords: TypeAlias = JsonFields  # numbers, texts, and lists of either
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


class SamplingSettings(Protocol):
    """A config with the fields of `SETTINGS`."""

    @property
    def generation_keywords(self) -> Keywords:
        """Keywords of generation that are given beside the fields."""
        ...


def sampling_settings(config: SamplingSettings) -> JsonObject:
    """Return the options of decoding under transformers' names.

    `generation_kwargs` override fields. End tokens and stop strings are included if they are given.
    """
    fields = {name: getattr(config, field) for name, field in SETTINGS.items()}
    names = (*SETTINGS, ENDS, STOPS)
    keywords = {k: v for k, v in config.generation_keywords.items() if k in names and v is not None}
    return {**fields, **keywords}


def engine_keywords(engine: str, keywords: Keywords) -> tuple[tuple[str, object], ...]:
    """Return the keywords that an engine passes on unchanged."""
    return tuple((name, keywords[name]) for name in ENGINES[engine].keywords if name in keywords)


def check_keywords(engine: str, keywords: Keywords) -> None:
    """Refuse keywords that an engine does not take, unless they have no effect.

    Raises:
        BadValue: there is such a keyword, or end tokens or stop strings are of the wrong type.
    """
    row = ENGINES[engine]
    for name, value in keywords.items():
        idle = value is None or NEUTRAL.get(name) == value
        if not (idle or name in accepted_keywords(row)):
            takers = [
                key for key, row_of_key in ENGINES.items() if name in accepted_keywords(row_of_key)
            ]
            advice = f"; rollout_engine={takers[0]!r} takes it" if takers else ""
            raise BadValue(
                f"generation_kwargs={{{name!r}: {value!r}}} is not supported by rollout_engine="
                f"{engine!r}: expected some of {', '.join(accepted_keywords(row))}{advice}"
            )
    check_stops(keywords)


def check_stops(keywords: Keywords) -> None:
    """Refuse end tokens that are no integers, and stop strings that are no strings.

    Raises:
        BadValue: there are such.
    """
    for name, kind in ((ENDS, int), (STOPS, str)):
        value = keywords.get(name)
        if value is not None and not all(isinstance(item, kind) for item in as_list(value)):
            raise BadValue(
                f"generation_kwargs={{{name!r}: {value!r}}}: expected one or several of type "
                f"{kind.__name__}"
            )


def accepted_keywords(row: RolloutEngine) -> tuple[str, ...]:
    """Return the names of all keywords that an engine takes."""
    return (*SETTINGS, ENDS, *((STOPS,) if row.stops_at_strings else ()), *row.keywords)


def as_list(value: Any) -> Sequence[Any]:  # Any: one value, or several
    """Return several values unchanged; wrap a single one in a list."""
    return value if isinstance(value, list | tuple) else [value]


def check_sampling(values: Keywords) -> None:
    """Refuse sampling parameters that leave no distribution to sample from.

    Raises:
        BadValue: one is out of range.
    """
    bounds: Mapping[str, tuple[Callable[[Any], bool], str]] = {  # Any: a number, or None
        "temperature": (lambda x: 0 < x < inf, "above 0 and finite, completions are sampled"),
        "top_p": (lambda x: 0 < x <= 1, "above 0 and at most 1"),
        "top_k": (lambda x: x == int(x) and x >= 0, "an integer of at least 0"),
        "min_p": (lambda x: x is None or 0 <= x <= 1, "0 to 1"),
        "repetition_penalty": (lambda x: 0 < x < inf, "above 0 and finite"),
        MAX_TOKENS: (lambda x: x == int(x) and x >= 1, "an integer of at least 1"),
    }
    for name, (is_valid, expected) in bounds.items():
        value = values[name]
        number = value is None or isinstance(value, int | float)
        if not number or (value is None and name != "min_p") or not is_valid(value):
            raise BadValue(f"{name}={value!r}: expected {expected}")
