"""Worked examples before the question, for base models, as in DeepSeekMath's evaluation.

The frames and stops are the paper's; the examples, in `templates/`, are our own: 8 English word
problems, 4 with LaTeX, 6 Chinese; as programs, 8 and 4. A model is stopped where it begins the
next question.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from eval.sets.problem import Problem

FEW_SHOT, PAL = "few-shot", "pal"  # the modes: plain text that the model continues


@dataclass(frozen=True, kw_only=True)
class Shots:
    """A file of examples, the frame of the question that follows them, and what ends an answer."""

    name: str
    frame: str
    stop: str

    def prompt(self, problem: Problem) -> str:
        """All examples, then the problem with its solution left open."""
        return examples(self.name) + self.frame.format(problem.question)


# By style and language of the answers, as a Benchmark has them.
SHOTS = {
    ("number", "en"): Shots(name="stories_en", frame="Q: {}\nA:", stop="\nQ:"),
    ("latex", "en"): Shots(name="latex_en", frame="Problem:\n{}\n\nSolution:", stop="\nProblem:"),
    ("number", "zh"): Shots(name="stories_zh", frame="问题：{}\n答案：", stop="\n问题："),
}
# Answers that are programs, by style; the paper has none for Chinese.
PROGRAMS = {
    "number": Shots(name="programs_en", frame="Q: {}\n\n# solution in Python:", stop="\nQ:"),
    "latex": Shots(
        name="programs_latex_en",
        frame=(
            "Problem:\n{}\n\nYou are an expert programmer. Solve the above mathematical problem by "
            "writing a Python program. Express your answer as a numeric type or a SymPy object."
        ),
        stop="\nProblem:",
    ),
}


@cache
def examples(name: str) -> str:
    """The text of a file of examples."""
    return files("eval.sets").joinpath("templates", f"{name}.txt").read_text(encoding="utf-8")
