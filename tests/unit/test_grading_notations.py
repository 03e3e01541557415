r"""Answers in the notations that models use, and answers that these notations must not accept."""

import pytest

from eval.grading import grade


@pytest.mark.parametrize(
    ("answer", "box"),
    [
        ("10", r"\textcolor{red}{10}"),
        ("10", r"\color{blue}10"),
        ("10", r"\underline{10}"),
        ("10", r"\boldsymbol{10}"),
        ("10", r"\bf 10"),
        ("10", r"\Large{10}"),
        ("10", r"10{\rm cm}"),
        ("10", r"10\ \rm{cm}"),
        ("10", r"\ 10\ "),
        ("10", r"\qty{10}{cm}"),
        ("10", r"\num{10}"),
        ("60", r"60\frac{\text{km}}{\text{h}}"),
        ("37", r"37^\circ C"),
        ("37", "37℃"),
        ("-7", r"\text{-}7"),
        ("-7", "﹣7"),
        ("1200", "1.2 × 10³"),
        (r"2\sqrt3", "√12"),
        (r"2\sqrt3", "√(12)"),
        ("(1,2)", r"\bigl(1,2\bigr)"),
        (r"[3,\infty)", "[3, inf)"),
        (r"\varnothing", r"\emptyset"),
        (r"\emptyset", r"\{\}"),
        ("-3,-1", r"-2 \mp 1"),
        (
            r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}",
            r"\left(\begin{array}{c}1\\2\end{array}\right)",
        ),
        ("June 20", r"\text{June 20}"),
        (r"(2,\frac{\pi}{3})", r"(r,\theta)=(2,\frac{\pi}{3})"),
        ("42", "Answer: 42"),
        ("42", r"\text{The answer is } 42"),
        ("42", r"\textbf{Answer: } 42"),
        ("42", r"\text{\$}42"),
        ("42", r"\pounds 42"),
        ("42", r"\text{Rs. } 42"),
        ("42", r"\text{USD } 42"),
        ("42", "R$42"),
        ("42", "42 (apples)"),
        ("42", r"\sim 42"),
        ("11/2", "5又1/2"),
    ],
)
def test_notation_of_a_box_changes_no_value(answer: str, box: str):
    assert grade(rf"So \boxed{{{box}}}.", answer).correct is True


@pytest.mark.parametrize(
    ("answer", "output", "language"),
    [
        ("1500000", "The answer is $1.5M.", "en"),
        ("15000", "The answer is $15K.", "en"),
        ("50", "The answer is 50¢", "en"),
        ("42", "The answer is Rs. 42", "en"),
        ("42.50", "The answer is 42 dollars and 50 cents", "en"),
        ("42", "The answer is 42, not 41.", "en"),
        ("42", "I think the answer is 42, but I'm not 100% sure.", "en"),
        ("42", "The answer is 42 apples (39 + 3).", "en"),
        ("42", "The answer is <<6*7=42>>42.", "en"),
        ("42", "The answer is <b>42</b>", "en"),
        ("42", "The answer is 42 ✅", "en"),
        ("42", "Answer:\n```\n42\n```", "en"),
        ("42", '```json\n{"answer": 42, "confidence": 0.9}\n```', "en"),
        ("42", '{"answer": "42 apples", "steps": 3}', "en"),
        ("1/2", '{"answer": "\\\\frac{1}{2}", "steps": 3}', "en"),
        ("3.5", "The answer is ٣٫٥", "en"),
        ("1500", "The answer is ١٬٥٠٠", "en"),
        ("42", "Ответ равен 42. Всего 3 дня.", "ru"),
        ("42", "Jibu la mwisho ni 42. Siku ni 3.", "sw"),
        ("1/2", "答えは半分です。", "ja"),
        ("3.5", "答案是3元5角", "zh"),
        ("3.05", "答案是3元0角5分", "zh"),
        ("42", r"<think>\boxed{41}<\think> 42", "en"),
        ("42", r"< think >\boxed{41}</ think >42", "en"),
        ("42", "<plan>The answer is 41</plan> 42", "en"),
        ("42", "<unused94>thought\n\\boxed{41}<unused95>42", "en"),
    ],
)
def test_notation_of_an_output_changes_no_value(answer: str, output: str, language: str):
    assert grade(output, answer, language).correct is True


@pytest.mark.parametrize(
    "output",
    [
        "The answer is B) 42",
        "The answer is (B) 42",
        "**B**",
        "The correct option is (B).",
        "The correct choice is B",
        "option B",
        "So the answer is choice (B)",
        "B",
        "(B)",
        "B. 42",
        "答案选B",
        "故选：B",
        "选（B）",
        r"\boxed{\textbf{(B)}\ 42}",
        r"\boxed{\text{(B) 42}}",
        r"\boxed{B: 42}",
        r"\boxed{\text{Option B}}",
        "(A) is 40, so it is wrong; the answer is (B).",
    ],
)
def test_a_choice_is_read_with_its_content_or_alone(output: str):
    assert grade(output, "B").correct is True
    assert grade(output, r"\text{(B)}").correct is True
    assert grade(output, "C").correct is False


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        ("B", "The answer is (A) or (B)."),
        ("A", "The answer is (A) or (B)."),
        ("A", r"\boxed{A, B}"),
        ("A", r"\boxed{(A) and (B)}"),
        ("B", "Bob has 3."),
        ("5", "The answer is $5k"),
        ("0.5", "The answer is 50¢"),
        ("3", "The answer is 3 dollars and 50 cents"),
        ("41", "The answer is 42, not 41."),
        ("42", '{"answer": "41", "before": 42}'),
        ("42", r"<think>\boxed{42}<\think> 41"),
        ("5", r"\boxed{5 (million)}"),
        ("3", r"\boxed{3\frac{\text{km}}{2}}"),
        ("1", r"\boxed{<<1=1>>2}"),
        (r"\emptyset", r"\boxed{\{0\}}"),
        (r"\sqrt{12}", r"\boxed{√1}"),
    ],
)
def test_notations_accept_no_other_answer(answer: str, output: str):
    assert grade(output, answer).correct is False
