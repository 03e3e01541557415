"""The eval stage: greedy accuracy on every suite, and samples for Maj@K and Pass@K where needed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from core.rollout.samplers.journal import Journal
from core.rollout.samplers.policy import PolicySampler
from core.run.resolve import Resolved
from core.run.stages.inputs import Question, model_folder, questions
from core.run.stages.loading import loading_of
from core.run.stages.stage import Outputs, Stage, run_stage, say
from core.run.stages.train import prepare_torch
from eval.samples.evaluation import run_benchmark
from eval.samples.store import Sample, read_samples, write_samples
from eval.sets.benchmarks import find_benchmark
from eval.stats.summary import curve, score

SAMPLES = "samples.jsonl.gz"
JOURNAL = "journal"
PLAIN = "float32 on cpu"  # how numbers are computed that say nothing else


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The scores of one policy: greedy ones, samples at K, and where the samples lie by digest."""

    scores: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])  # Any: a Score's
    at_k: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    files: dict[str, Path] = field(default_factory=dict[str, Path])


class Policy:
    """A model that is loaded when its first sample is needed."""

    def __init__(self, name: str, resolved: Resolved):
        self.name = name
        self.threads = resolved.run.threads
        self.loading = loading_of(resolved)
        self._sampler: PolicySampler | None = None

    def sampler(self) -> PolicySampler:
        """The policy as a sampler of the eval floor."""
        if self._sampler is None:
            prepare_torch(self.threads)
            folder = model_folder(self.name)
            self._sampler = self.loading.sampler(str(folder) if folder else self.name)
        return self._sampler


def evaluate(resolved: Resolved, stage: Stage, model: str, *, force: bool = False) -> Scored:
    """Score the policy that `stage` made; `model` is its folder or name, loaded only if needed."""
    scored, policy = Scored(), Policy(model, resolved)
    for question in questions(resolved):
        asked = question.stage(resolved, stage)
        found, samples = _answers(policy, question, asked, force=force)
        scored.files[found["digest"]] = asked.folder / SAMPLES
        named = {"mirrors": question.mirrors, **found}
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
) -> tuple[Outputs, list[Sample]]:
    """The samples of one suite, drawn now or as they lie there, and what the stage says of them."""

    def work(folder: Path) -> Mapping[str, object]:
        how = str(policy.loading)
        with Journal(folder / JOURNAL, {"stage": stage.key, "computed": how}) as journal:
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
        return {"digest": digest, **({} if how == PLAIN else {"computed": how})}

    found = run_stage(stage, work, force=force)
    return found, list(read_samples(stage.folder / SAMPLES, found["digest"]))
