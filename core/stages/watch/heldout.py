"""Accuracies during a training, of greedy answers to held-out rows and to benchmarks."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

from accelerate.utils import gather_object  # pyright: ignore[reportMissingTypeStubs]
from torch import nn
from transformers import (
    PreTrainedModel,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from core.data.sources import Row
from core.forward.logps import evaluating
from core.forward.own_answers import answers_of_both
from core.forward.quantities import completion_logps
from core.models.load import load_policy
from core.rewards.verifiers import problem_of
from core.samplers.policy import PolicySampler
from core.settings.run_settings import BENCHMARK, HELD_OUT, HELD_OUT_KL, HELD_OUT_NLL, RunSettings
from core.shards.sharding import gather_weights
from core.stages.held_out import FOLDER
from core.stages.tools import tools
from eval.errors import BadValue
from eval.samples.evaluation import Completion, Decoding, answer_problems
from eval.samples.store import Sample, grade_outputs, read_content, write_samples
from eval.sets.benchmarks import Benchmark, find_benchmark
from eval.sets.problem import Problem

FILE = ".jsonl.gz"  # of the graded answers at a step


@dataclass(frozen=True, kw_only=True)
class Watched:
    """Problems that are answered during a training, with the function that answers and grades.

    `metric` is the name of their accuracy's curve. `folder` holds the graded answers, one file for
    each step.
    """

    metric: str
    folder: Path
    problems: Sequence[Any]  # Any: rows of the data, or a benchmark's problems
    answer: Callable[[PolicySampler, Sequence[Any]], list[Sample]]


@dataclass(frozen=True, kw_only=True)
class Drift:
    """The divergence of a policy from the model that its training began with.

    Attributes:
        begun: Folder or name of the starting model.
        rows: Held-out rows, each of which the policy answers once at temperature 1.
        tokens: Largest length of an answer.
        trust_code: Whether code of the model's folder may run.
    """

    begun: str
    rows: Sequence[Row]
    tokens: int
    trust_code: bool

    @cached_property
    def start(self) -> PreTrainedModel:
        """The starting model, in evaluation mode."""
        return load_policy(self.begun, trust_code=self.trust_code).eval()

    def log_ratios(self, sampler: PolicySampler, shares: slice) -> list[tuple[float, int]]:
        """Return the log-ratio of each of the policy's answers to some rows, and its length."""
        start = cast(nn.Module, self.start)
        start.to(sampler.model.device)
        with evaluating(sampler.model):
            both = answers_of_both(sampler, self.start, self.rows[shares], self.tokens)
        start.to("cpu")  # so that training has a device's memory to itself
        pairs = zip(both.policy, both.start, strict=True)
        return [((a.logps - b.logps).sum().item(), len(a.logps)) for a, b in pairs]


class HeldOutCallback(TrainerCallback):
    """Callback that logs accuracies in percent before the first step and every `every` steps.

    With a `drift` it also logs the divergence from the start, and with `completed` rows the
    negative log-likelihood of their completions, both in nats per token. All of it joins the
    trainer's own metrics, in the line of the same step. Decoding has random numbers of its own if
    it needs any, so the training is not affected. It ends once the accuracy on held-out rows is at
    least the `target`, if there is one.
    """

    def __init__(
        self,
        watched: Sequence[Watched],
        *,
        every: int,
        target: float | None = None,
        drift: Drift | None = None,
        completed: Sequence[Row] = (),
    ):
        self.watched = watched
        self.drift = drift
        self.completed = completed
        self.every = every
        self.target = target
        self.trainer: Any = None  # Any: a transformers.Trainer, known only after it took callbacks

    def on_train_begin(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        **_: object,
    ) -> None:
        """Log what holds of the starting model, unless the run is resumed."""
        if state.global_step == 0:
            self.trainer.log(self.measured(0))

    def on_step_end(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,
        control: TrainerControl,
        **_: object,
    ) -> None:
        """Add what is measured to the trainer's metrics of this step; stop at the target.

        Raises:
            BadValue: the last step does not reach the target.
        """
        if state.global_step % self.every and state.global_step != state.max_steps:
            return
        measured = self.measured(state.global_step)
        for metric, value in measured.items():
            self.trainer._metrics["train"][metric].append(value)
        control.should_log = True  # at this step, whichever others are logged
        if self.target is not None:
            self.stop_at_target(measured[HELD_OUT], self.target, state, control)

    def stop_at_target(
        self, accuracy: float, target: float, state: TrainerState, control: TrainerControl
    ) -> None:
        """Stop the training, and log its last step, if the accuracy is at least the target.

        Raises:
            BadValue: the last step does not reach the target.
        """
        if accuracy >= target:
            control.should_training_stop = control.should_log = True
        elif state.global_step == state.max_steps:
            raise BadValue(
                f"heldout_target={target:g}: {accuracy:.1f} % are right after {state.max_steps} "
                "steps; raise max_steps or lower the target"
            )

    def measured(self, step: int) -> dict[str, float]:
        """Return the percentage of problems that are solved, by metric, and the divergence.

        The processes of a launch divide the problems, and each returns all numbers.
        """
        processes = self.trainer.accelerator
        rank, count = processes.process_index, processes.num_processes
        frame, measured = getattr(self.trainer, "frame", None), dict[str, float]()
        with (
            processes.autocast(),
            gather_weights(self.trainer.model, frame) as model,
        ):  # as in training
            sampler = PolicySampler(model, self.trainer.processing_class)
            shares = [
                watched.answer(sampler, watched.problems[rank::count]) for watched in self.watched
            ]
            ratios = self.drift.log_ratios(sampler, slice(rank, None, count)) if self.drift else []
            logps = row_logps(sampler, self.completed[rank::count])
        for watched, share in zip(self.watched, shares, strict=True):
            samples = cast("list[Sample]", gather_object(share))
            if processes.is_main_process:
                order = sorted(samples, key=lambda sample: sample.id)
                write_samples(watched.folder / f"{step}{FILE}", order)
            right = sum(sample.correct is True for sample in samples)
            measured[watched.metric] = 100 * right / len(watched.problems)
        if self.drift:
            measured[HELD_OUT_KL] = mean_of_all(ratios)
        if self.completed:
            measured[HELD_OUT_NLL] = -mean_of_all(logps)
        return measured


def mean_of_all(sums: list[tuple[float, int]]) -> float:
    """Return the mean over tokens, from the sum and the tokens of each row of all processes."""
    of_all = cast("list[tuple[float, int]]", gather_object(sums))
    values, lengths = zip(*of_all, strict=True)
    return sum(values) / sum(lengths)


def row_logps(sampler: PolicySampler, rows: Sequence[Row]) -> list[tuple[float, int]]:
    """Return the summed log-probability of each row's completion, and its number of tokens."""
    if not rows:
        return []
    with evaluating(sampler.model):
        logps = completion_logps(sampler.model, sampler.tokenizer, rows)
    return [(row.sum().item(), len(row)) for row in logps]


def completed_rows(rows: Sequence[Row]) -> Sequence[Row]:
    """Return held-out rows, whose completions are to be scored.

    Raises:
        BadValue: the rows have no column of completions.
    """
    if rows and "completion" not in rows[0]:
        raise BadValue(
            f"heldout_nll=True: the held-out rows have no column completion, only "
            f"{', '.join(rows[0])}; leave it out"
        )
    return rows


def watched_rows(rows: Sequence[Row], decoding: Decoding, folder: Path) -> Watched:
    """Return the held-out rows of the data as watched problems.

    Raises:
        BadValue: the rows have no column of answers.
    """
    if rows and "answer" not in rows[0]:
        raise BadValue(
            f"heldout_problems={len(rows)}: the data has no column answer to judge by, only "
            f"{', '.join(rows[0])}; ask for heldout_problems=0"
        )

    def answer(sampler: PolicySampler, share: Sequence[Row]) -> list[Sample]:
        answers = sampler([row["prompt"] for row in share], decoding)
        return grade_rows([completions[0] for completions in answers], share)

    return Watched(metric=HELD_OUT, folder=folder, problems=rows, answer=answer)


def watched_benchmarks(settings: RunSettings, seed: int, folder: Path) -> Iterator[Watched]:
    """Yield the benchmarks that a run watches, each with the problems of this seed's draw."""
    for suite in settings.watched_suites:
        benchmark = find_benchmark(suite, find_benchmark(suite).draw_of(seed))
        limit = settings.eval_max_tokens or benchmark.max_tokens
        yield Watched(
            metric=f"{BENCHMARK}{suite}",
            folder=folder / suite,
            problems=benchmark.load(limit=settings.heldout_limit),
            answer=partial(
                in_mode,
                benchmark=benchmark,
                mode=settings.heldout_mode,
                decoding=Decoding(max_tokens=limit, system=settings.system_prompt),
            ),
        )


def in_mode(
    sampler: PolicySampler,
    problems: Sequence[Problem],
    *,
    benchmark: Benchmark,
    mode: str,
    decoding: Decoding,
) -> list[Sample]:
    """Return graded answers to problems of a benchmark, with the tools of the mode."""
    with tools(mode) as with_tools:
        answering = with_tools(sampler, None)
        return answer_problems(answering, benchmark, problems, mode=mode, decoding=decoding)


def grade_rows(answers: Sequence[Completion], rows: Sequence[Row]) -> list[Sample]:
    """Return one graded answer for each row, graded as an evaluation grades its benchmark."""
    problems = [problem_of(row) for row in rows]
    verdicts = grade_outputs([answer.text for answer in answers], problems)
    return [
        Sample(
            benchmark=FOLDER,
            id=problem.id,
            sample=0,
            output=answer.text,
            tokens=answer.tokens,
            truncated=answer.truncated,
            extracted=verdict.extracted,
            correct=verdict.correct,
            rule=verdict.rule,
            reason=verdict.reason,
        )
        for problem, answer, verdict in zip(problems, answers, verdicts, strict=True)
    ]


def digests(watched: Sequence[Watched], folder: Path) -> dict[str, str]:
    """Return the digests of all held-out answers by step, and of benchmarks by `<suite>/<step>`."""
    files = [
        path
        for problems in watched
        for path in sorted(problems.folder.glob(f"*{FILE}"), key=step_of)
    ]
    return {
        path.relative_to(folder).as_posix().removesuffix(FILE): hashlib.sha256(
            read_content(path)
        ).hexdigest()
        for path in files
    }


def step_of(path: Path) -> int:
    """Return the step in the name of a file of answers."""
    return int(path.name.removesuffix(FILE))
