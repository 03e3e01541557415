"""The eval stage: what a policy answers to one suite, graded."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from core.claims.measures import GainAtK
from core.paper import Paper
from core.rollout.samplers.journal import Journal
from core.rollout.samplers.policy import PolicySampler
from core.run.resolve import Resolved
from core.run.settings import RunSettings
from core.run.stages.loading import Loading, loading_of
from core.run.stages.sources import model_folder, source_of
from core.run.stages.stage import Policy, Stage, say
from core.run.stages.train import prepare_torch
from eval.grading import GRADER_VERSION
from eval.samples.evaluation import Decoding, run_benchmark
from eval.samples.store import Sample, read_samples, write_samples
from eval.sets.benchmarks import find_benchmark
from eval.stats.summary import curve, score

SAMPLES = "samples.jsonl.gz"
JOURNAL = "journal"
PLAIN = "float32 on cpu"  # how numbers are computed that say nothing else


@dataclass(frozen=True, kw_only=True)
class Question:
    """What one eval stage asks of a policy: a suite, how many problems, and how to decode."""

    suite: str
    mirrors: str
    limit: int | None
    decoding: Decoding


class Answering:
    """A policy that answers, loaded when its first sample is needed."""

    def __init__(self, policy: Policy, loading: Loading, threads: int | None):
        self.policy = policy
        self.loading = loading
        self.threads = threads

    @cached_property
    def sampler(self) -> PolicySampler:
        """The policy as a sampler of the eval floor."""
        prepare_torch(self.threads)
        folder = model_folder(self.policy.model)
        return self.loading.sampler(str(folder) if folder else self.policy.model)


@dataclass(frozen=True, kw_only=True)
class Evaluate(Stage):
    """The graded samples of one policy on one suite."""

    name = "eval"
    answering: Answering
    question: Question

    @property
    def inputs(self) -> Mapping[str, object]:
        """The policy, the question, and how answers are computed and judged."""
        return {
            "policy": self.answering.policy.key,
            "suite": self.question.suite,
            "source": source_of(self.question.suite),
            "decoding": asdict(self.question.decoding),
            "limit": self.question.limit,
            "dtype": self.answering.loading.dtype,
            "threads": self.answering.threads,
            "grader": GRADER_VERSION,
        }

    @property
    def of(self) -> str:
        """The suite."""
        return self.question.suite

    def work(self, folder: Path) -> Mapping[str, object]:
        """Draw the samples that are not in the journal yet, and grade all."""
        how = str(self.answering.loading)
        with Journal(folder / JOURNAL, {"stage": self.key, "computed": how}) as journal:
            samples = run_benchmark(
                self.answering.sampler.journaled(journal),
                find_benchmark(self.question.suite),
                limit=self.question.limit,
                decoding=self.question.decoding,
            )
        right = sum(sample.correct is True for sample in samples)
        say(f"eval: {self.question.suite}, {right} right of {len(samples)} answers")
        digest = write_samples(folder / SAMPLES, samples)
        (folder / JOURNAL).unlink()
        return {"digest": digest, **({} if how == PLAIN else {"computed": how})}


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The scores of one policy: greedy ones, samples at K, and where the samples lie by digest."""

    scores: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])  # Any: a Score's
    at_k: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    files: dict[str, Path] = field(default_factory=dict[str, Path])


def evaluate(stages: Iterable[Evaluate], *, force: bool = False) -> Scored:
    """The scores of one policy, whose model is loaded only if a sample is missing."""
    scored = Scored()
    for stage in stages:
        found, question = stage.run(force=force), stage.question
        samples = list(read_samples(stage.folder / SAMPLES, found["digest"]))
        scored.files[found["digest"]] = stage.folder / SAMPLES
        named = {"mirrors": question.mirrors, **found}
        if question.decoding.samples > 1:
            scored.at_k[question.suite] = {**at_k_curve(samples, question), **named}
        else:
            scored.scores.extend({**row, **named} for row in top1(samples, question))
    return scored


def evaluations(resolved: Resolved, policy: Policy) -> list[Evaluate]:
    """All that is asked of a run's policy, which is loaded once for all of it."""
    answering = Answering(policy, loading_of(resolved), resolved.run.threads)
    return [Evaluate(answering=answering, question=each) for each in questions(resolved)]


def questions(resolved: Resolved) -> list[Question]:
    """Every question; samples only where a claim compares Maj@K or Pass@K."""
    sampled = at_k_questions(resolved.run) if resolved.arm in sampled_arms(resolved.paper) else []
    return greedy_questions(resolved.run) + sampled


def greedy_questions(settings: RunSettings) -> list[Question]:
    """Every suite once, greedily."""
    return [
        Question(
            suite=suite,
            mirrors=name,
            limit=settings.eval_limit,
            decoding=Decoding(max_tokens=_tokens(settings, suite)),
        )
        for name, suite in settings.suites.items()
    ]


def at_k_questions(settings: RunSettings) -> list[Question]:
    """The first suites again, with the samples for Maj@K and Pass@K."""
    limits = [n for n in (settings.eval_limit, settings.at_k_limit) if n is not None]
    return [
        Question(
            suite=suite,
            mirrors=name,
            limit=min(limits, default=None),
            decoding=Decoding(
                samples=settings.at_k_samples,
                temperature=settings.at_k_temperature,
                max_tokens=_tokens(settings, suite),
            ),
        )
        for name, suite in list(settings.suites.items())[: settings.at_k_benchmarks]
    ]


def sampled_arms(paper: Paper) -> set[str]:
    """The arms whose Maj@K or Pass@K a claim reads."""
    sides = [side for claim in paper.claims for side in (claim.left, claim.right)]
    return {side.arm for side in sides if side.arm and isinstance(side.measure, GainAtK)}


def top1(samples: list[Sample], question: Question) -> list[dict[str, Any]]:
    """The greedy score of a suite with its interval."""
    benchmark = find_benchmark(question.suite)
    rows = score(samples, benchmark, metrics=("top1",))
    return [asdict(row) | {"drawn": benchmark.drawn(question.limit)} for row in rows]


def at_k_curve(samples: list[Sample], question: Question) -> dict[str, Any]:
    """Maj@K and Pass@K with intervals at K = 1, 2, 4, ... up to the number of samples."""
    most = question.decoding.samples
    ks = [*(2**i for i in range(most.bit_length()) if 2**i < most), most]
    found = curve(samples, ks)
    asked = {"samples": most, "temperature": question.decoding.temperature}
    drawn = find_benchmark(question.suite).drawn(question.limit)
    return {**found, "n": len({sample.id for sample in samples}), "drawn": drawn, **asked}


def _tokens(settings: RunSettings, suite: str) -> int:
    """The most tokens of an answer: the run's setting, else the suite's."""
    return settings.eval_max_tokens or find_benchmark(suite).max_tokens
