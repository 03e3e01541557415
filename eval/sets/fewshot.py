"""Few-shot prompts for base models, as in DeepSeekMath's evaluation.

The frames and stop texts are the paper's. The examples in `templates/` are our own: 8 English word
problems, 4 with LaTeX, 6 Chinese; as programs, 8 and 4. Generation stops where the model begins a
next question.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from eval.sets.problem import Problem

FEW_SHOT, PAL = "few-shot", "pal"  # the modes: plain text that the model continues


@dataclass(frozen=True, kw_only=True)
class Shots:
    """A few-shot prompt: a file of worked examples and the frame of the question after them.

    `name` is the file in `templates/`, `frame` the text with {} for the question, and `stop` the
    text that ends generation.
    """

    name: str
    frame: str
    stop: str

    def prompt(self, problem: Problem) -> str:
        """Return the worked examples followed by the problem with its solution left open."""
        return examples(self.name) + self.frame.format(problem.question)


# By style of the answers and language of the request.
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
    """Return the text of a file of worked examples."""
    return files("eval.sets").joinpath("templates", f"{name}.txt").read_text(encoding="utf-8")
