"""Tool-integrated reasoning: programs in an answer are run, their output is inserted.

The loop is that of DeepSeekMath's evaluation (`infer/run_tool_integrated_eval.py`): two rounds,
each with the full token limit. A round ends at the end token, at the limit, or where the model
opens an output block. If a text then ends in a fence, its programs are run.
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
    """Runner of programs in a sandbox, see `eval.sandbox`."""

    def run(self, programs: Sequence[str]) -> list[Execution]:
        """Run programs; return the execution of each, in order."""
        ...


@dataclass(frozen=True)
class ToolSampler:
    """A sampler whose answers are written with the help of programs."""

    sampler: Sampler
    executor: Executor

    def __call__(
        self, prompts: Sequence[str], decoding: Decoding, starts: Sequence[str] | None = None
    ) -> list[list[Completion]]:
        """Return `decoding.samples` transcripts for each prompt.

        `tokens` counts the tokens that the model wrote. `truncated` is true for transcripts
        without an end token after the last round.
        """
        k = decoding.samples
        repeated = [prompt for prompt in prompts for _ in range(k)]
        begun = [start for start in starts or [""] * len(prompts) for _ in range(k)]
        answers = [Completion(start, 0, truncated=True) for start in begun]
        for number in range(ROUNDS):
            once = replace(decoding, samples=1, stop=(STOP,), seed=decoding.seed + number)
            self.continue_answers(answers, repeated, once)
            self.run_programs(answers)
        return [answers[i : i + k] for i in range(0, len(answers), k)]

    def continue_answers(
        self, answers: list[Completion], prompts: Sequence[str], decoding: Decoding
    ) -> None:
        """Continue the unfinished answers, one to each prompt, by one completion, in place."""
        unfinished = [i for i, answer in enumerate(answers) if answer.truncated]
        texts = [answers[i].text for i in unfinished]
        written = self.sampler([prompts[i] for i in unfinished], decoding, texts)
        for i, (new,) in zip(unfinished, written, strict=True):
            answers[i] = Completion(
                answers[i].text + new.text,
                answers[i].tokens + new.tokens,
                truncated=new.truncated or new.stopped,
            )

    def run_programs(self, answers: list[Completion]) -> None:
        """Run the programs of unfinished answers that end in one; append the output in place."""
        waiting = {
            i: program
            for i, answer in enumerate(answers)
            if answer.truncated and (program := program_of(answer.text)) is not None
        }
        ran = self.executor.run(list(waiting.values()))
        for i, execution in zip(waiting, ran, strict=True):
            text = with_output(answers[i].text, neutral(printed_output(execution)))
            answers[i] = replace(answers[i], text=text)


def printed_output(execution: Execution) -> str:
    """Return the shortened output of a program, or its error if it printed nothing."""
    output = execution.output.strip()
    if output:
        long = len(output) > SHOWN
        return f"{output[:KEPT]}...{output[-KEPT:]}" if long else output
    error_words = PLACE.sub("", execution.error or execution.status).split()
    long = len(error_words) > 2 * WORDS
    return ERROR + " ".join(
        [*error_words[:WORDS], "...", *error_words[-WORDS:]] if long else error_words
    )


def program_scores(
    samples: Sequence[Sample],
    problems: Sequence[Problem],
    benchmark: Benchmark,
    metrics: Sequence[str],
) -> list[Score]:
    """Return scores of the last program's output, as the paper's `program_accuracy`."""
    printed = [replace(sample, output=last_output(sample.output) or "") for sample in samples]
    scores = score(regrade(printed, problems), benchmark, metrics, mode="tir")
    ran, failed = programs_of(samples)
    return [
        replace(
            program_score,
            metric=f"program {program_score.metric}",
            programs=ran,
            executor_errors=failed,
        )
        for program_score in scores
    ]
