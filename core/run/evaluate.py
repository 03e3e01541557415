"""The eval stage: greedy accuracy on every suite, and samples for Maj@K and Pass@K where needed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from core.models.load import load_policy, load_tokenizer
from core.rollout.journal import Journal
from core.rollout.sampler import PolicySampler
from core.run.inputs import Question, model_folder, questions
from core.run.resolve import Resolved
from core.run.settings import RunSettings
from core.run.stages import Stage, run_stage, say
from core.run.train import prepare_torch
from eval.benchmarks import find_benchmark
from eval.samples import Sample, read_samples, write_samples
from eval.scoring import run_benchmark
from eval.summary import curve, score

SAMPLES = "samples.jsonl.gz"
JOURNAL = "journal"


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The scores of one policy: greedy ones, samples at K, and where the samples lie by digest."""

    scores: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])  # Any: a Score's
    at_k: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    files: dict[str, Path] = field(default_factory=dict[str, Path])


class Policy:
    """A model that is loaded when its first sample is needed."""

    def __init__(self, name: str, settings: RunSettings):
        self.name = name
        self.settings = settings
        self._sampler: PolicySampler | None = None

    def sampler(self) -> PolicySampler:
        """The policy as a sampler of the eval floor."""
        if self._sampler is None:
            prepare_torch(self.settings.threads)
            folder = model_folder(self.name)
            where = str(folder) if folder else self.name
            self._sampler = PolicySampler(load_policy(where).eval(), load_tokenizer(where))
        return self._sampler


def evaluate(resolved: Resolved, stage: Stage, model: str, *, force: bool = False) -> Scored:
    """Score the policy that `stage` made; `model` is its folder or name, loaded only if needed."""
    settings, scored = resolved.run, Scored()
    policy = Policy(model, settings)
    for question in questions(resolved):
        asked = question.stage(settings, stage)
        digest, samples = _answers(policy, question, asked, force=force)
        scored.files[digest] = asked.folder / SAMPLES
        named = {"mirrors": question.mirrors, "digest": digest}
        if question.decoding.samples > 1:
            scored.at_k[question.suite] = {**at_k_curve(samples, question), **named}
        else:
            scored.scores.extend({**row, **named} for row in top1(samples, question))
    return scored


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


def _answers(
    policy: Policy, question: Question, stage: Stage, *, force: bool
) -> tuple[str, list[Sample]]:
    """The samples of one suite and their digest: drawn now, or as they lie there."""

    def work(folder: Path) -> Mapping[str, object]:
        with Journal(folder / JOURNAL, {"stage": stage.key}) as journal:
            samples = run_benchmark(
                policy.sampler().journaled(journal),
                find_benchmark(question.suite),
                limit=question.limit,
                decoding=question.decoding,
            )
        right = sum(sample.correct is True for sample in samples)
        say(f"eval: {question.suite}, {right} right of {len(samples)} answers")
        digest = write_samples(folder / SAMPLES, samples)
        (folder / JOURNAL).unlink()
        return {"digest": digest}

    digest = str(run_stage(stage, work, force=force)["digest"])
    return digest, list(read_samples(stage.folder / SAMPLES, digest))
