"""Answers that are programs (PAL): each is run, and what it gives is the answer.

The value of `solution()` counts, else what was last assigned to `ans` or `answer`, else the last
line that was printed. DeepSeekMath's evaluation (`infer/run_pal_eval.py`) reads the first on GSM8K
and `answer` on MATH; Program of Thoughts reads `ans`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

from eval.samples.evaluation import Completion, Decoding, Sampler
from eval.samples.tir import Executor, shown
from eval.samples.transcripts import OUTPUT, with_output
from eval.sandbox import Execution, neutral

BLOCK = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)
IMPORTS = re.compile(r"\s*+(?:(?:import|from)\s[^\n]*+\s*+)*+")
VALUE = files("eval.samples").joinpath("templates", "value_of.py").read_text(encoding="utf-8")


@dataclass(frozen=True)
class ProgramSampler:
    """A sampler whose answers are programs, with what each gave behind it."""

    sampler: Sampler
    executor: Executor

    def __call__(
        self, prompts: Sequence[str], decoding: Decoding, starts: Sequence[str] | None = None
    ) -> list[list[Completion]]:
        """`decoding.samples` programs for each prompt, run."""
        written = self.sampler(prompts, decoding, starts)
        ran = iter(executed([c.text for row in written for c in row], self.executor))
        return [[replace(one, text=next(ran)) for one in row] for row in written]


def executed(outputs: Sequence[str], executor: Executor) -> list[str]:
    """Each output with an output block that holds what its program gave, or its error."""
    texts = [OUTPUT.sub("", output) for output in outputs]  # a model may write one of its own
    ran = executor.run([valued(program_in(text)) for text in texts])
    return [
        with_output(text if "```" in text else f"```python\n{text.strip()}\n```", given(done))
        for text, done in zip(texts, ran, strict=True)
    ]


def program_in(text: str) -> str:
    """The program of an output: its fenced blocks, those of imports first, or all of it."""
    blocks = BLOCK.findall(text)
    return "\n".join(sorted(blocks, key=lambda b: not IMPORTS.fullmatch(b))) if blocks else text


def valued(program: str) -> str:
    """A program that prints its value at its end, whatever names it gave to other things."""
    return f"{program}\n__import__('builtins').exec({VALUE!r}, {{'program': globals()}})\n"


def given(done: Execution) -> str:
    """The value of a program, empty without one, or the error that it ended in."""
    if done.status != "ok":
        return neutral(shown(replace(done, output="")))
    return neutral((done.output.strip().splitlines() or [""])[-1])
