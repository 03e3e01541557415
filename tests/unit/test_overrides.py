"""`name=value` arguments: read as the field's type, or refused with that type."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.paper.overrides import BadOverride, UnknownField, checked, describe, fits, parse_overrides


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Config:
    num_generations: int | None = 8
    beta: float = 0.0
    use_cpu: bool = False
    loss_type: str = "grpo"
    level: Literal["token", "sequence"] = "token"
    weights: list[float] | None = None
    names: tuple[str, ...] = ()
    twins: Mapping[str, str] | None = None
    colour: Colour | str = "red"
    anything: Any = None


def parse(argument):
    return next(iter(parse_overrides([argument], Config).values()))


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("num_generations=16", 16),
        ("num_generations=none", None),
        ("beta=1e-3", 0.001),
        ("beta=1", 1.0),
        ("use_cpu=true", True),
        ("use_cpu=False", False),
        ("loss_type=dapo", "dapo"),
        ("loss_type=16", "16"),
        ("loss_type=", ""),
        ("level=sequence", "sequence"),
        ("weights=[1, 0.5]", [1, 0.5]),
        ("names=('a', 'b')", ("a", "b")),
        ("names=a,b", ("a", "b")),
        ("names=a", ("a",)),
        ("twins={'a': 'b'}", {"a": "b"}),
        ("colour=blue", "blue"),
        ("loss_type=a=b", "a=b"),
    ],
)
def test_a_value_is_read_as_its_field(argument, value):
    found = parse(argument)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("num_generations=8.5", "num_generations=8.5: expected int | None, got float"),
        ("num_generations=true", "num_generations=True: expected int | None, got bool"),
        ("beta=lots", "beta=lots: expected float, got str"),
        ("beta=none", "beta=None: expected float, got None"),
        ("use_cpu=1", "use_cpu=1: expected bool, got int"),
        ("level=word", "level=word: expected 'token' or 'sequence', got str"),
        ("weights=['a']", "weights=['a']: expected list[float] | None, got list"),
        ("beta", "'beta': expected name=value, e.g. learning_rate=1e-5"),
        ("=3", "'=3': expected name=value, e.g. learning_rate=1e-5"),
    ],
)
def test_a_bad_value_names_the_type_that_was_expected(argument, message):
    with pytest.raises(BadOverride) as caught:
        parse_overrides([argument], Config)
    assert str(caught.value) == f"BadOverride: {message}"


def test_an_unknown_field_names_the_nearest():
    with pytest.raises(UnknownField, match=r"no field 'betta': did you mean beta\?"):
        parse_overrides(["betta=1"], Config)


def test_the_last_of_several_values_wins():
    assert parse_overrides(["beta=1", "beta=2"], Config) == {"beta": 2.0}


@given(st.integers(-(10**6), 10**6))
def test_whole_numbers_survive_where_both_fit(number):
    assert checked("x", number, int | float) == number
    assert type(checked("x", number, int | float)) is int
    assert type(checked("x", number, float | None)) is float


@given(st.text(max_size=40))
def test_any_text_is_a_string_or_a_clear_error(text):
    assert parse_overrides([f"loss_type={text}"], Config) == {"loss_type": text.strip()}
    with suppress(BadOverride):
        assert type(parse_overrides([f"beta={text}"], Config)["beta"]) is float


def test_types_are_described_as_they_are_written():
    assert describe(int | None) == "int | None"
    assert describe(list[float]) == "list[float]"
    assert describe(Colour | str) == "one of red, blue | str"
    assert describe(tuple[str, ...]) == "tuple[str, ...]"


def test_keys_and_values_of_a_mapping_have_their_types():
    assert fits({"a": "b"}, Mapping[str, str])
    assert fits({"a": [1]}, dict[str, Any])
    assert not fits({1: "b"}, Mapping[str, str])
    assert not fits({"a": 2}, dict[str, str])
    assert not fits("a", Mapping[str, str])
