"""`name=value` arguments: read as the field's type, or refused with that type."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.paper.overrides import (
    LARGEST,
    BadOverride,
    UnknownField,
    check_type,
    describe,
    fits,
    named_texts,
    parse_override,
)


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
    ((name, text),) = named_texts([argument]).items()
    return parse_override(name, text, Config)


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
        parse(argument)
    assert str(caught.value) == f"BadOverride: {message}"


def test_an_unknown_field_names_the_nearest():
    with pytest.raises(UnknownField, match=r"no field 'betta': did you mean beta\?"):
        parse("betta=1")


@pytest.mark.parametrize("texts", [("1", "2"), ("1", "1"), ("1", "")])
def test_a_name_that_occurs_twice_is_refused(texts):
    arguments = [f"beta={texts[0]}", "loss_type=dapo", f" beta = {texts[1]}"]
    with pytest.raises(BadOverride) as caught:
        named_texts(arguments)
    said = f"beta={texts[0]} and beta={texts[1]}: leave one of them out"
    assert str(caught.value) == f"BadOverride: {said}"


@given(st.integers(min_value=LARGEST + 1) | st.integers(max_value=-LARGEST - 1))
@pytest.mark.parametrize("field", ["num_generations", "beta", "weights", "anything", "use_cpu"])
def test_an_integer_beyond_64_bits_is_refused_whatever_the_field(field, number):
    text = f"[1, {number}]" if field == "weights" else str(number)
    with pytest.raises(BadOverride, match=rf"{field}: found an integer of \d+ bits, expected at"):
        parse(f"{field}={text}")
    assert not fits(number, float)


@pytest.mark.parametrize("text", ["1e999", "-1e999", "[1e999]", "{1: (2, -1e999)}"])
@pytest.mark.parametrize("field", ["num_generations", "beta", "weights", "anything"])
def test_an_infinite_number_is_refused_whatever_the_field(field, text):
    with pytest.raises(BadOverride, match=rf"{field}=.*inf.*: expected a finite number"):
        parse(f"{field}={text}")


@pytest.mark.parametrize("number", [LARGEST, -LARGEST])
def test_the_largest_integers_of_64_bits_are_taken(number):
    assert parse(f"num_generations={number}") == number


@given(st.integers(-(10**6), 10**6))
def test_whole_numbers_survive_where_both_fit(number):
    assert check_type("x", number, int | float) == number
    assert type(check_type("x", number, int | float)) is int
    assert type(check_type("x", number, float | None)) is float


@given(st.text(max_size=40))
def test_any_text_is_a_string_or_a_clear_error(text):
    assert parse(f"loss_type={text}") == text.strip()
    with suppress(BadOverride):
        assert type(parse(f"beta={text}")) is float


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
