import html
import re
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eval.tables.filters import align_columns, effect, format_fixed, md, probability, prose, tex


@given(st.text())
@example("↑ costs $1 and ↓ less")
def test_latex_text_has_no_active_character(text):
    escaped = tex(text)
    for command in (
        r"$\uparrow$",
        r"$\downarrow$",
        r"\textbackslash{}",
        r"\textasciitilde{}",
        r"\textasciicircum{}",
        r"\textless{}",
        r"\textgreater{}",
        r"\textbar{}",
        r"\textquotedbl{}",
        r"\{",
        r"\}",
        r"\$",
        r"\&",
        r"\%",
        r"\#",
        r"\_",
    ):
        escaped = escaped.replace(command, "")
    assert not set(escaped) & set('\\{}$&%#_~^<>|"\n')


@given(st.text())
def test_a_markdown_label_stays_one_cell(text):
    row = align_columns(f"| a | b |\n| --- | --- |\n| {md(text)} | x |\n").splitlines()[2]
    assert len(re.split(r"(?<!\\)(?:\\\\)*\|", row)) == 4


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (88.2487, "88.2"),
        (0.25, "0.3"),
        (0.35, "0.4"),
        (2.675, "2.7"),
        (88.25, "88.3"),
        (0.05, "0.1"),
        (-0.04, "0.0"),
        (-0.25, "-0.3"),
        (100, "100.0"),
        (1e-9, "0.0"),
        (99.95, "100.0"),
    ],
)
def test_one_decimal_half_up_as_the_float_prints(value, text):
    assert format_fixed(value) == text


@given(st.floats(-1e6, 1e6))
def test_a_printed_number_is_within_half_a_digit(value):
    assert abs(Decimal(format_fixed(value)) - Decimal(repr(value))) <= Decimal("0.05")


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ((10.34, 7.11, 13.5), "+10.3 [+7.1, +13.5]"),
        ((-0.00123, -0.0013, -0.0011), "-0.00123 [-0.00130, -0.00110]"),
        ((None,), "-"),
        ((0.0, 0.0, 0.0), "0.0 [0.0, 0.0]"),
        ((3.0, -40.0, 46.0), "+3.0 [-40.0, +46.0]"),
    ],
)
def test_an_effect_has_the_digits_that_its_interval_supports(args, text):
    assert effect(*args) == text


@pytest.mark.parametrize(("p", "text"), [(None, "-"), (0.0004, "< 0.001"), (0.0415, "0.042")])
def test_a_p_value_has_three_decimals(p, text):
    assert probability(p) == text


@given(st.text(alphabet="ab<>&'`_ "))
def test_prose_is_text_with_code_between_backticks_and_no_other_element(text):
    shown = str(prose(text))
    plain = re.sub("<wbr>|</?code>", "", shown)
    assert html.unescape(plain) == re.sub("`([^`]+)`", r"\1", text)
    assert shown.count("<code>") == len(re.findall("`[^`]+`", text))
    assert not re.search("[<>]", plain)
