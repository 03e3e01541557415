r"""Laws of the grader: each holds for all numbers, variables and brackets of a kind of answer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.grading import grade

few = settings(deadline=None, max_examples=25)
whole = st.integers(1, 999)
letters = st.permutations("abmnrtxyz")


def right(answer: str, box: str, language: str = "en") -> bool | None:
    return grade(rf"\boxed{{{box}}}", answer, language).correct


PLACES = (
    "{}", "x + {}", r"\sqrt{{{}}}", "({}, 5)", "x > {}", r"\frac{{{}}}{{7}}", r"x^{{{}}}", "{}x",
    "x = {}", r"\{{{}, 5\}}", "{}:7",
)  # fmt: skip


@given(st.integers(10, 10**7), st.sampled_from(PLACES), st.data())
@few
def test_a_space_joins_no_digits_but_groups_of_three(number: int, place: str, data):
    digits = str(number)
    at = data.draw(st.integers(1, len(digits) - 1).filter(lambda i: (len(digits) - i) % 3))
    apart = f"{digits[:at]} {digits[at:]}"
    total = int(digits[:at]) + int(digits[at:])
    assert right(place.format(number), place.format(apart)) is False
    assert right(place.format(total), place.format(apart)) is False
    assert right(place.format(number), place.format(f"{number:,}".replace(",", " "))) is True


STATEMENTS = (
    "{v} = {n}", "{v} > {n}", "{n} \\le {v}", "{n} < {v} < {m}", r"{v} \in [{n}, {m})",
    r"{v} \ne {n}", "{v} = {n}, {v} = {m}", "{v} = {n}{w}", r"{v} = \frac{{{n}}}{{{w}}} + {m}",
)  # fmt: skip


@given(whole, whole, letters, st.sampled_from(STATEMENTS))
@few
def test_a_statement_about_another_variable_is_an_error(n: int, more: int, names, statement: str):
    v, w, other, *_ = names
    values = {"n": n, "m": n + more, "w": w}
    answer = statement.format(v=v, **values)
    assert right(answer, answer) is True
    assert right(answer, statement.format(v=other, **values)) is False


@given(whole, whole, letters)
@few
def test_values_belong_to_their_variables(n: int, more: int, names):
    a, b, m = names[0], names[1], n + more
    answer = f"{a} = {n}, {b} = {m}"
    assert right(answer, f"{b} = {m}, {a} = {n}") is True
    assert right(answer, f"{a} = {m}, {b} = {n}") is False


@given(whole, whole, whole, letters)
@few
def test_a_side_of_an_equation_is_not_the_equation(a: int, b: int, c: int, names):
    x, y, *_ = names
    for left in (f"{x} + {y}", f"{a + 1}{x} - {b}{y}", f"{x}^2 + {y}^2"):
        answer = f"{left} = {c}"
        assert right(answer, f"{c} = {left}") is True
        assert right(answer, str(c)) is False
        assert right(answer, left) is False


@given(st.integers(20, 60), whole, st.integers(2, 7))
@few
def test_tiny_numbers_differ_as_others_do(power: int, n: int, root: int):
    answer = rf"\frac{{\sqrt{{{root}}}}}{{{n} \cdot 10^{{{power}}}}}"
    for other in (root + 4, root + 11):
        assert right(answer, answer.replace(rf"\sqrt{{{root}}}", rf"\sqrt{{{other}}}")) is False
    assert right(answer, f"-{answer}") is False
    assert right(answer, "0") is False
    assert right(answer, rf"\frac{{1}}{{{n}}} \cdot \sqrt{{{root}}} \cdot 10^{{-{power}}}") is True
    assert right(rf"\frac{{1}}{{{power}!}}", rf"\frac{{1}}{{{power + 1}!}}") is False


@given(whole, st.sampled_from("abmnrtxyz"))
@few
def test_the_case_of_a_letter_in_a_formula_is_part_of_it(n: int, name: str):
    for formula in (f"{n}{name}^2", f"{name} + {n}", rf"\frac{{{name}}}{{{n + 1}}}"):
        answer = formula.replace(name, name.upper())
        assert right(answer, answer) is True
        assert right(answer, formula) is False
        assert right(formula, answer) is False
        assert right(f"{formula} + {name}", f"{formula} + {name.upper()}") is False


@given(st.integers(1, 12), st.sampled_from(["", ":05", ":30"]))
@few
def test_the_halves_of_the_day_differ(hour: int, minutes: str):
    time = f"{hour}{minutes}"
    shapes = ("{}{} {}.m.", r"{}{}\text{{ {}.m.}}", "{}{} {}m")
    for answer in (shape.format(hour, minutes, "a") for shape in shapes):
        for shape in shapes:
            assert right(answer, shape.format(hour, minutes, "a")) is True
            assert right(answer, shape.format(hour, minutes, "p")) is False
        assert right(answer, time) is True


@given(whole, st.integers(0, 4))
@few
def test_two_minus_signs_cancel(n: int, signs: int):
    box = "-" * (signs % 3) + str(n)
    assert right(str(n), box) is (signs % 3 != 1)
    assert right(str(-n), box) is (signs % 3 == 1)


OUTWARD = {"(": "]", "[": "[", ")": "[", "]": "]"}


@given(st.integers(-99, 99), whole, st.sampled_from("(["), st.sampled_from(")]"))
@few
def test_brackets_that_open_outward_exclude_an_end(low: int, size: int, left: str, end: str):
    intervals = [
        (f"{a}{low}{comma} {low + size}{b}", f"{OUTWARD[a]}{low}{comma} {low + size}{OUTWARD[b]}")
        for comma in ",;"
        for a in "(["
        for b in ")]"
    ]
    answer = f"{left}{low},{low + size}{end}"
    for inward, outward in intervals:
        is_equal = inward[0] == left and inward[-1] == end
        assert right(answer, outward) is is_equal
        assert right(rf"{answer} \cup [5000,\infty)", rf"{outward} \cup [5000,\infty[") is is_equal


NAMES = {2: "two", 3: "three", 5: "five", 8: "eight", 9: "nine", 12: "twelve", 16: "sixteen"}
BASES = (
    "{d}_{{{b}}}", r"{d}_{{\text{{{w}}}}}", "{d}_{{{w}}}", "{d}_{{({b})}}", "({d})_{b}",
    r"{d}\text{{ base }}{b}", "{d} (base {b})", r"{d}\text{{ in base {w}}}", r"\text{{{d}}}_{b}",
    r"{d}_{{\text{{base }}{b}}}",
)  # fmt: skip


@given(st.from_regex(r"-?[1-9][0-9A]{1,5}", fullmatch=True), st.sampled_from([*NAMES]), st.data())
@few
def test_a_base_has_many_notations_and_is_part_of_the_number(digits: str, base: int, data):
    other = data.draw(st.sampled_from([b for b in NAMES if b != base]))
    for shape in BASES:
        assert right(f"{digits}_{base}", shape.format(d=digits, b=base, w=NAMES[base])) is True
        assert right(f"{digits}_{base}", shape.format(d=digits, b=other, w=NAMES[other])) is False
        more = f"{digits}1"
        assert right(f"{digits}_{base}", shape.format(d=more, b=base, w=NAMES[base])) is False


@given(st.integers(0, 99), st.integers(0, 99), st.integers(1, 8), st.integers(3, 9))
@few
def test_a_repeated_digit_and_dots_are_a_repeating_decimal(n: int, once: int, digit: int, times):
    answer = f"{9 * (100 * n + once) + digit}/900"
    decimal = f"{n}.{once:02}"
    for dots in (r"\ldots", "...", "…", r"\dots"):
        assert right(answer, f"{decimal}{str(digit) * times}{dots}") is True
        assert right(answer, f"{decimal}{str(digit) * times}{dots}{digit + 1}") is False
    for bar in (r"\overline{{{}}}", r"\overline{}", r"\dot{}", "({})"):
        assert right(answer, decimal + bar.format(digit)) is True
    assert right(answer, f"{decimal}{str(digit) * times}") is False
    assert (right(f"{decimal}{digit}", f"{decimal}{digit}...") is True) == (once != 11 * digit)


@given(st.lists(whole, min_size=4, max_size=4))
@few
def test_a_determinant_is_a_number_and_no_matrix(cells: list[int]):
    a, b, c, d = cells
    rows = rf"{a} & {b} \\ {c} & {d}"
    matrix, determinant = (rf"\begin{{{k}}} {rows} \end{{{k}}}" for k in ("pmatrix", "vmatrix"))
    assert right(matrix, determinant) is False
    assert right(str(a * d - b * c), determinant) is True
    assert right(str(a * d - b * c), matrix) is False


@given(whole, st.sampled_from(["{}", "{}个", "{}千克", "{}人"]))
@few
def test_a_bound_in_chinese_is_no_number(n: int, shape: str):
    number = shape.format(n)
    assert right(str(n), number, "zh") is True
    for bound in ("大于{}", "小于{}", "超过{}", "不足{}", "{}以上", "{}以下"):
        assert right(str(n), bound.format(number), "zh") is False
    for more in (f"{n}多", f"{n}多个", f"{n}个多小时"):
        assert right(str(n), more, "zh") is False
    assert right(str(n), f"{n}个多边形", "zh") is True


@pytest.mark.parametrize(
    ("answer", "box"),
    [
        ("3+4i", r"3+4\mathrm{i}"),
        ("50%", r"50\text{ percent}"),
        (r"33\frac{1}{3}\%", r"33.\overline{3}\%"),
        ("1,2", r"1\text{, }2"),
        ("8:46", r"8\text{:}46"),
        (r"\{x : x > 2\}", r"\{y \mid y > 2\}"),
        (r"(2,\infty)", "y > 2"),
        ("3", r"\log_2 8"),
        ("3R^2", "R^2 * 3"),
        ("A", "a"),
        ("f'(x) + 1", "1 + f'(x)"),
        (r"\text{(P)}", "P"),
        ("B, E", r"\text{(B), (E)}"),
        ("(C)", r"\text{C}"),
    ],
)
def test_other_notations(answer: str, box: str):
    assert right(answer, box) is True


def test_a_derivative_is_another_function():
    assert right("f(x)", "f'(x)") is False
    assert right("f'(x) + 1", "f(x) + 1") is False
