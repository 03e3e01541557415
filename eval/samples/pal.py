"""Program-aided answers (PAL): each answer is a program, whose value is graded.

The value is that of `solution()`, else of `ans`, else of `answer`, else the last printed line.
DeepSeekMath's evaluation (`infer/run_pal_eval.py`) reads `solution()` on GSM8K and `answer` on
MATH; Program of Thoughts reads `ans`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

from eval.samples.evaluation import Completion, Decoding, Sampler
from eval.samples.tir import Executor, printed_output
from eval.samples.transcripts import OUTPUT, with_output
from eval.sandbox import Execution, neutral

BLOCK = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)
IMPORTS = re.compile(r"\s*+(?:(?:import|from)\s[^\n]*+\s*+)*+")
VALUE = files("eval.samples").joinpath("templates", "value_of.py").read_text(encoding="utf-8")


@dataclass(frozen=True)
class ProgramSampler:
    """A sampler whose answers are programs, each followed by its value in an output block."""

    sampler: Sampler
    executor: Executor

    def __call__(
        self, prompts: Sequence[str], decoding: Decoding, starts: Sequence[str] | None = None
    ) -> list[list[Completion]]:
        """Return `decoding.samples` programs for each prompt, each with its output block."""
        programs = self.sampler(prompts, decoding, starts)
        ran = iter(execute_programs([c.text for row in programs for c in row], self.executor))
        return [[replace(completion, text=next(ran)) for completion in row] for row in programs]


def execute_programs(outputs: Sequence[str], executor: Executor) -> list[str]:
    """Run the program of each output, and return the outputs with an output block each.

    The block holds the value or the error of the program. Output blocks that the model wrote are
    removed first. An output without a code fence is a program as a whole, and is fenced.
    """
    texts = [OUTPUT.sub("", output) for output in outputs]  # a model may write one of its own
    ran = executor.run([with_value_printed(program_in(text)) for text in texts])
    return [
        with_output(
            text if "```" in text else f"```python\n{text.strip()}\n```", value_or_error(execution)
        )
        for text, execution in zip(texts, ran, strict=True)
    ]


def program_in(text: str) -> str:
    """Return an output's fenced blocks joined, imports first; without blocks, the whole text."""
    blocks = BLOCK.findall(text)
    return "\n".join(sorted(blocks, key=lambda b: not IMPORTS.fullmatch(b))) if blocks else text


def with_value_printed(program: str) -> str:
    """Return a program with code appended that prints the program's value."""
    return f"{program}\n__import__('builtins').exec({VALUE!r}, {{'program': globals()}})\n"


def value_or_error(execution: Execution) -> str:
    """Return the value of a program, empty if it has none, or the error that ended it."""
    if execution.status != "ok":
        return neutral(printed_output(replace(execution, output="")))
    return neutral((execution.output.strip().splitlines() or [""])[-1])
