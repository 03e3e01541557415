"""Tool-integrated reasoning: programs in an answer are run and their output goes into it.

The loop of DeepSeekMath's evaluation (`infer/run_tool_integrated_eval.py`): two rounds, each with
the full token limit. A round ends at the end token, at the limit, or where the model opens an
output block. A text that then ends in a fence has its programs run.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from eval.samples.evaluation import Completion, Decoding, Sampler
from eval.samples.store import Sample, regrade
from eval.samples.transcripts import ERROR, STOP, last_output, program_of, with_output
from eval.sandbox import Execution, neutral
from eval.sets.benchmarks import Benchmark
from eval.sets.problem import Problem
from eval.stats.summary import Score, programs_of, score

ROUNDS = 2
SHOWN, KEPT = 100, 50  # characters of an output shown whole, and kept of either end of a longer one
WORDS = 50  # kept of either end of an error: the words of the text stand for the paper's tokens
PLACE = re.compile(r'File "[^"]*", ')


class Executor(Protocol):
    """Runs programs somewhere safe, see `eval.sandbox`."""

    def run(self, programs: Sequence[str]) -> list[Execution]:
        """What became of each program, in order."""
        ...


@dataclass(frozen=True)
class ToolSampler:
    """A sampler whose answers are written with the help of programs."""

    sampler: Sampler
    executor: Executor

    def __call__(
        self, prompts: Sequence[str], decoding: Decoding, starts: Sequence[str] | None = None
    ) -> list[list[Completion]]:
        """`decoding.samples` transcripts for each prompt; their tokens are those the model wrote.

        Truncated are those that have not come to their end after the last round.
        """
        k = decoding.samples
        repeated = [prompt for prompt in prompts for _ in range(k)]
        begun = [start for start in starts or [""] * len(prompts) for _ in range(k)]
        answers = [Completion(start, 0, truncated=True) for start in begun]
        for number in range(ROUNDS):
            going = [i for i, answer in enumerate(answers) if answer.truncated]
            one = replace(decoding, samples=1, stop=(STOP,), seed=decoding.seed + number)
            texts = [answers[i].text for i in going]
            written = self.sampler([repeated[i] for i in going], one, texts)
            for i, (new,) in zip(going, written, strict=True):
                answers[i] = Completion(
                    answers[i].text + new.text,
                    answers[i].tokens + new.tokens,
                    truncated=new.truncated or new.stopped,
                )
            self.run_programs(answers)
        return [answers[i : i + k] for i in range(0, len(answers), k)]

    def run_programs(self, answers: list[Completion]) -> None:
        """Append to each unfinished answer that ends in a program what this prints."""
        waiting = {
            i: program
            for i, answer in enumerate(answers)
            if answer.truncated and (program := program_of(answer.text)) is not None
        }
        ran = self.executor.run(list(waiting.values()))
        for i, execution in zip(waiting, ran, strict=True):
            text = with_output(answers[i].text, neutral(shown(execution)))
            answers[i] = replace(answers[i], text=text)


def shown(execution: Execution) -> str:
    """What the model gets to see: the output, or the error where nothing was printed."""
    output = execution.output.strip()
    if output:
        long = len(output) > SHOWN
        return f"{output[:KEPT]}...{output[-KEPT:]}" if long else output
    words = PLACE.sub("", execution.error or execution.status).split()
    long = len(words) > 2 * WORDS
    return ERROR + " ".join([*words[:WORDS], "...", *words[-WORDS:]] if long else words)


def program_scores(
    samples: Sequence[Sample],
    problems: Sequence[Problem],
    benchmark: Benchmark,
    metrics: Sequence[str],
) -> list[Score]:
    """The paper's `program_accuracy`: the grade of what the last program printed."""
    printed = [replace(sample, output=last_output(sample.output) or "") for sample in samples]
    found = score(regrade(printed, problems), benchmark, metrics, mode="tir")
    ran, failed = programs_of(samples)
    return [
        replace(one, metric=f"program {one.metric}", programs=ran, executor_errors=failed)
        for one in found
    ]
