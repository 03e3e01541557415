r"""The grader's verdicts: what is the same answer in another notation, and what is not."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.grading import Verdict, answer_key, extract, grade, grade_many
from eval.grading.worker import POOL


def right(answer: str, given: str, language: str = "en") -> bool | None:
    return grade(rf"\boxed{{{given}}}", answer, language).correct


@pytest.mark.parametrize(
    ("answer", "given"),
    [
        ("5", "5.000000000000002"),
        ("803", "803.0000000000001"),
        ("40", r"40\%"),
        ("40", r"40.0\%"),
        ("27.3%", "27.3"),
        ("20%", "0.2"),
        ("1/4", r"25\%"),
        ("5", "5."),
        ("1000", r"1\,000"),
        ("1234", "1,234"),
        ("1/3", "1÷3"),
        ("8/46", "4/23"),
        (r"1\frac{12}{13}", r"\frac{25}{13}"),
        (r"\frac 34", "0.75"),
        (r"\frac{1}{2}", r"\\frac{1}{2}"),
        (r"\frac{12}{5,\!525}", "12/5525"),
        (r"11,\! 111,\! 111,\! 100", "11111111100"),
        (r"-\$0.50", "-0.5"),
        (r"15\mbox{ cm}^2", "15"),
        (r"118 \text{ dollars}", r"\$118"),
        (r"90^\circ", "90"),
        ("2000000", "2 million"),
        ("8", "3 + 5 = 8"),
        ("5", "x = 5"),
        (r"x \in [-2,7]", r"-2 \le x \le 7"),
        (r"(-\infty,3)", "x < 3"),
        (r"[3,\infty)", r"3 \leqslant x"),
        (r"\left( 3, \frac{\pi}{2} \right)", r"(3,\frac{\pi}{2})"),
        ("2,3", "3 and 2"),
        (r"\{1,2\}", "2, 1"),
        (r"3 \pm 2 \sqrt{2}", r"3-2\sqrt{2}, 3+2\sqrt{2}"),
        (r"(-\infty,-7) \cup (1,2)", r"(1,2) \cup (-\infty,-7)"),
        (r"\text{(C)}", "C"),
        ("C", "(C)"),
        ("C", r"\textbf{C}"),
        ("60", "60 km/h"),
        ("18", "18 m"),
        ("5", r"5 \text{ cm}^2"),
        (r"\frac{\pi}{2}", "pi/2"),
        (r"\ln 2", "ln(2)"),
        ("x^{10}+1", "x**10 + 1"),
        ("1000000", r"1 \text{ million dollars}"),
        ("5", "5 = x"),
        ("18", r"x \approx 18"),
        ("(1,2)", "(x,y) = (1,2)"),
        ("1,2", "{1,2}"),
        (r"\frac{1}{3}", r"0.\overline{3}"),
        (r"-\frac{7}{6}", "-1.1(6)"),
        (r"(\text{E})", r"\text{E}"),
        (r"\mbox{Saturday}", "Saturday"),
        ("B, C", r"\text{B,C}"),
        (
            r"\begin{pmatrix} 1/5 \\ -3 \end{pmatrix}",
            "\\begin{pmatrix}\n0.2 \\\\\n-3\n\\end{pmatrix}",
        ),
        (r"\frac{\sqrt{3}}{4}", r"\dfrac{1}{4}\sqrt3"),
        ("6+9i", "9i + 6"),
        ("y = 2x+1", "y=1+2x"),
        ("5x - 7y + 4 = 0", "-5x + 7y - 4 = 0"),
        ("2516_8", "2516_{8}"),
        ("664_7", "664"),
    ],
)
def test_another_notation_is_no_error(answer: str, given: str):
    assert right(answer, given) is True


@pytest.mark.parametrize(
    ("answer", "given"),
    [
        ("25", "2500"),
        ("245", "24500 cents"),
        ("12", r"1200\%"),
        ("0.5", r"0.5\%"),
        ("3", "3:1"),
        ("6:30", "6"),
        ("7", "(7, 7)"),
        ("1,2", "(1,2)"),
        ("(1,2)", "(2,1)"),
        ("(1,2)", "1,2"),
        ("-2,1", "1"),
        ("4", r"4 \text{ or } 5"),
        (r"(-\infty, 0]", r"(-\infty, 0)"),
        ("[1,2)", r"1 \le x \le 2"),
        ("10", "10_2"),
        ("10_2", "10_3"),
        ("10", "1000(26)"),
        ("3.5", "35"),
        ("-5", "5"),
        ("1/3", "0.333333333333333333"),
        ("0.3", r"0.\overline{3}"),
        ("C", r"\text{CD}"),
        ("x+y", r"\text{xy}"),
        ("3/50", "1/16"),
        ("1/144", "0.0098"),
        (".0000672", "0.000992"),
        (r"\sqrt{2}", "1.414214"),
        (r"2\pi", "6.283185"),
        ("326.5", "326.53"),
        ("5", "5 million"),
        ("1", r"1 \text{ million}"),
        ("5", "5^2"),
        ("5", "5 = x + 1"),
        ("10/3", r"\approx 3.33"),
        ("18", "18 n"),
        ("5", "5x"),
        ("2s", "2"),
        ("3", "3!!"),
        (r"\text{even}", "odd"),
        ("y = 2x+1", "y = 2x-1"),
        ("2x - y + 3z + 8 = 0", "2x - y + 3z + 9 = 0"),
        ("3", "__import__('os').system('false')"),
    ],
)
def test_another_value_or_form_is_an_error(answer: str, given: str):
    assert right(answer, given) is False


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        ("18", "答案是18。"),
        ("18", "所以一共需要18小包茶叶。"),
        ("20", r"\boxed{20元}"),
        ("20", r"\boxed{20\text{元}}"),
        ("8", r"\boxed{8个}"),
        ("12", r"\boxed{１２}"),
        ("1234", r"\boxed{1，234}"),
        ("3/4", "答案是四分之三"),
        ("3/4", r"\boxed{\frac{3}{4}千米}"),
        ("20%", "答案是百分之二十。"),
        ("20%", "所以是百分之二十"),
        ("305", r"\boxed{三百零五}"),
        ("3.5", r"\boxed{三点五元}"),
        ("-3", r"\boxed{－３}"),
        ("40%", r"\boxed{40％}"),
        ("18", r"\boxed{18千克}"),
        ("3.5", r"\boxed{三点五千克}"),
        ("18", r"\boxed{十八千克}"),
        ("5000", r"\boxed{五千米}"),
        ("1200", r"\boxed{一千二}"),
        ("1002", r"\boxed{一千零二}"),
        ("12000", r"\boxed{1.2万元}"),
        ("1/2", r"\boxed{一半}"),
        ("1.5", r"\boxed{一个半小时}"),
        ("3:4", r"\boxed{3比4}"),
    ],
)
def test_chinese_notation(answer: str, output: str):
    assert grade(output, answer, "zh").correct is True


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        ("5", r"\boxed{5元6角}"),
        ("3", r"\boxed{3或4}"),
        ("5", r"\boxed{5万}"),
        ("1.2", r"\boxed{1.2万}"),
        ("-1.2", r"\boxed{-1.2万}"),
        ("2", r"\boxed{2个半}"),
        ("8010", r"\boxed{十八千克}"),
        ("5", r"\boxed{5千元}"),
        ("4/3", "答案是四分之三"),
        ("35", r"\boxed{3.5}"),
    ],
)
def test_chinese_errors(answer: str, output: str):
    assert grade(output, answer, "zh").correct is False


@pytest.mark.parametrize(
    ("output", "text", "rule"),
    [
        (r"so \boxed{5}, no: \boxed{\frac{1}{2}}.", r"\frac{1}{2}", "boxed"),
        (r"\fbox{7}", "7", "boxed"),
        (r"\boxed 9", "9", "boxed"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}", "boxed"),
        (r"\boxed{5} and then \boxed{6", None, "boxed"),
        (r"\boxed{}", None, "boxed"),
        ("The answer is 16 hours.", "16 hours", "phrase"),
        ("The answer is $\\$10$. I hope it is correct.", r"\$10", "phrase"),
        ("She has 26.\n#### 26", "26", "phrase"),
        ("The answer is 5.\n\nQ: How many?\nThe answer is 7.", "5", "phrase"),
        (r"\boxed{5}" + "\nProblem: next\n" + r"\boxed{7}", "5", "boxed"),
        ("It costs 1,250.50 dollars", "1,250.50", "last number"),
        ("So $(1+2i)6-3i=6+12i-3i=6+9i$.", "6+9i", "last formula"),
        (r"so its area is \(A = \frac{3}{4}\)", r"\frac{3}{4}", "last formula"),
        ("There are 20, for all $n$.", "20", "last number"),
        ("Simplify $2 + 3$.", "3", "last number"),
        ("Ann has 3 apples. How many has she?", None, "none"),
        ("小明有3个苹果，他有多少个？", None, "none"),
        ("It is 4 m. It is 2 km there. It is 16. " * 20 + "It is 4", "4", "last number"),
        ("nothing here", None, "none"),
        ("again 5^3 and so on to 7, " * 20, None, "none"),
        ("```python\nprint(1)\n```\n```output\n\\boxed{1}\n42\n```\n", "42", "output"),
        ("```python\nprint(1)\n```\n```output\n4\n```\nso \\boxed{5}.", "5", "boxed"),
    ],
)
def test_extraction(output: str, text: str | None, rule: str):
    found = extract(output)
    assert (found.text, found.rule) == (text, rule)


fractions = st.fractions(min_value=-1000, max_value=1000, max_denominator=60)
integers = st.integers(-(10**9), 10**9)
WRAPS = [
    "{}", " {} ", "${}$", r"\({}\)", "{}.", "**{}**", r"{}\text{{ apples}}", "{} dollars",
    r"{}^\circ", "x = {}", r"\text{{{}}}",
]  # fmt: skip


@given(integers, st.sampled_from(WRAPS), st.sampled_from(["{}", "{:,}", "{}.0", "{}.00"]))
def test_format_changes_no_verdict(value: int, wrap: str, digits: str):
    assert right(str(value), wrap.format(digits.format(value))) is True
    assert right(str(value), wrap.format(digits.format(value + 1))) is False


@given(
    fractions,
    st.sampled_from(["{s}{n}/{d}", r"{s}\frac{{{n}}}{{{d}}}", r"{s}\dfrac {{{n}}} {{{d}}}"]),
)
def test_fractions_are_compared_by_value(value: Fraction, shape: str):
    sign = "-" if value < 0 else ""
    written = shape.format(s=sign, n=3 * abs(value.numerator), d=3 * value.denominator)
    assert right(str(value), written) is True
    assert right(str(value + 1), written) is False


@given(st.decimals(-10_000, 10_000, places=3).filter(bool), st.sampled_from([100, 10, 1000]))
def test_a_power_of_ten_is_an_error(value, factor: int):
    assert right(str(value), str(value)) is True
    assert right(str(value), f"{value * factor:f}") is False
    assert right(f"{value * factor:f}", str(value)) is False


@given(st.integers(1, 10**6), st.integers(1, 99))
def test_a_rounded_decimal_is_an_error_unless_it_is_exact(n: int, d: int):
    exact = 10**9 % Fraction(n, d).denominator == 0
    assert right(f"{n}/{d}", f"{n / d:.9f}") is exact


@given(st.text(max_size=80))
@settings(deadline=None, max_examples=60)
def test_any_text_gets_a_verdict(text: str):
    verdict = grade(text, "12345678")
    assert verdict.correct in (True, False)
    assert isinstance(verdict, Verdict)


@given(integers)
def test_votes_group_by_value(value: int):
    assert answer_key(f"{value:,} apples") == answer_key(f"${value}.0$")
    assert answer_key(str(value)) != answer_key(str(value + 1))


def test_a_hanging_expression_is_undecided_and_the_next_one_is_graded():
    verdict = grade(r"\boxed{9^{9^{9^9}}}", "3")
    assert (verdict.correct, verdict.rule) == (None, "timeout")
    assert right("9", r"\sqrt{81}") is True


def test_a_killed_worker_costs_one_verdict():
    assert right("9", r"\sqrt{81}") is True
    for worker in POOL:
        if worker.process:
            worker.process.kill()
            worker.process.wait()
    right("16", r"\sqrt{256}")
    assert right("9", r"\sqrt{81}") is True


def test_an_interrupted_call_leaves_no_answer_behind():
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    assert right("9", r"\sqrt{81}") is True
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    with pytest.raises(KeyboardInterrupt):
        grade(r"\boxed{9^{9^{9^9}}}", "3")
    signal.signal(signal.SIGALRM, before)
    assert right("9", r"\sqrt{81}") is True
    assert right("9", r"\sqrt{80}") is False


def test_threads_get_their_own_verdicts():
    roots = range(2, 26)
    with ThreadPoolExecutor(4) as threads:
        verdicts = list(threads.map(lambda r: right(str(r), rf"\sqrt{{{r * r}}}"), roots))
    assert verdicts == [True] * len(roots)


def test_many_are_graded_like_one():
    pairs = [(str(r), rf"\boxed{{\sqrt{{{r * r + r % 2}}}}}") for r in range(2, 22)]
    together = grade_many([o for _, o in pairs], [a for a, _ in pairs])
    assert together == [grade(o, a) for a, o in pairs]
    assert [v.correct for v in together] == [r % 2 == 0 for r in range(2, 22)]


@pytest.mark.parametrize(
    "hostile",
    [
        "(" * 3000,
        "5 " + "m" * 400 + "!",
        "a" * 400 + "=5!",
        "x=" * 200 + "!",
        "$" * 450,
        "1," * 240,
        r"\text{" * 80,
        "\\boxed{" * 5000,
        "\\boxed{1}, " * 5000,
        "\\boxed{1}" + " " * 50_000 + "\\boxed{2",
        "\\boxed{1}" + " " * 50_000 + "\\boxed{2}",
        "$1=" * 3000 + " " * 50_000 + "$",
        "5" * 480,
        "9" * 4000 + "%",
        "answer is " * 3000,
        "The answer is " + "not " * 50_000 + "5",
        "Answer: " + "5 and " * 20_000,
        "so \\(" * 20_000 + " 5",
        "1.000." * 30_000,
        "```\n" * 3000,
    ],
)
def test_hostile_text_is_refused_quickly(hostile: str):
    started = time.process_time()
    grade(hostile, "3")
    grade(rf"\boxed{{{hostile}}}", "3")
    assert time.process_time() - started < 2  # of this process: parsers have their own deadline
