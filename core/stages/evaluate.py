"""The evaluation stage: the graded answers of a policy to one suite."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from core.samplers.journal import Journal
from core.settings.resolved import Resolved
from core.stages.answer_logps import with_logps
from core.stages.answering import Answering
from core.stages.loading import scoring_of
from core.stages.questions import PLAIN_MODE, Question, questions
from core.stages.sources import source_of
from core.stages.stage import Outputs, Policy, Stage
from core.stages.tools import tools
from core.stages.watch.meter import open_meter
from eval.grading import GRADER_VERSION
from eval.samples.evaluation import run_benchmark
from eval.samples.parts import score_parts
from eval.samples.store import Sample, read_samples, write_samples
from eval.sets.benchmarks import Benchmark, find_benchmark
from eval.stats.summary import curve, metrics, score
from eval.terminal import say

SAMPLES = "samples.jsonl.gz"
JOURNAL = "journal"
PLAIN = "float32 on cpu"  # how numbers are computed that say nothing else


@dataclass(frozen=True, kw_only=True)
class Evaluate(Stage):
    """The graded samples of one policy on one suite."""

    name = "eval"
    answering: Answering
    question: Question

    @property
    def inputs(self) -> Mapping[str, object]:
        """The policy, the question, and how answers are computed and graded."""
        return {
            "policy": self.answering.policy.key,
            "suite": self.question.suite,
            "mode": self.question.mode,
            "source": source_of(self.question.suite, self.question.mode),
            "decoding": asdict(self.question.decoding),
            "limit": self.question.limit,
            "dtype": self.answering.loading.dtype,
            **self.answering.loading.record_fields,
            "threads": self.answering.threads,
            "grader": GRADER_VERSION,
            **({"draw": draw} if (draw := self.question.benchmark.draw) else {}),
            **({"logps": True} if self.question.has_weights else {}),
        }

    @property
    def subject(self) -> str:
        """The name of the suite, with the mode unless it is step by step."""
        mode = self.question.mode
        return self.question.suite if mode == PLAIN_MODE else f"{self.question.suite} {mode}"

    def work(self, folder: Path) -> Mapping[str, object]:
        """Draw the samples that are not in the journal yet, grade all, and return their digest."""
        how, question = str(self.answering.loading), self.question
        note = {"stage": self.key, "computed": how}
        k = question.decoding.samples
        title = f"eval: {self.answering.policy.subject} on {question.suite}, {question.mode}"
        title += f", {k} samples each" if k > 1 else ""
        with (
            Journal(folder / JOURNAL, note) as journal,
            tools(question.mode) as with_tools,
            open_meter(title) as watch,
        ):
            sampler = self.answering.answerer.with_journal(journal).with_progress(watch)
            samples = run_benchmark(
                with_tools(sampler, journal),
                question.benchmark,
                limit=question.limit,
                mode=question.mode,
                decoding=question.decoding,
            )
        if question.has_weights:
            self.answering.release()  # makes room for the policy as a model
            prompts, system = question.prompts, question.decoding.system
            samples = with_logps(samples, self.answering.sampler, prompts, system)
        right = sum(sample.correct is True for sample in samples)
        say(f"{title}: {right} right of {len(samples)} answers")
        digest = write_samples(folder / SAMPLES, samples)
        (folder / JOURNAL).unlink()
        return {"digest": digest, **({} if how == PLAIN else {"computed": how})}


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The scores of one policy, its curves at K, and the files of its samples by digest."""

    scores: list[Outputs] = field(default_factory=list[Outputs])
    at_k: dict[str, Outputs] = field(default_factory=dict[str, Outputs])
    files: dict[str, Path] = field(default_factory=dict[str, Path])


def evaluate(stages: Iterable[Evaluate], *, force: bool = False) -> Scored:
    """Return the scores of one policy; its model is loaded only if a sample is missing."""
    scored, stages = Scored(), list(stages)
    for stage in stages:
        outputs, question = stage.run(force=force), stage.question
        digest = outputs["digest"]
        samples = list(read_samples(stage.folder / SAMPLES, digest))
        scored.files[digest] = stage.folder / SAMPLES
        fields = {"mirrors": question.mirrors, **outputs}
        if question.curves:
            scored.at_k[question.suite] = {**at_k_curve(samples, question), **fields}
        else:
            scored.scores.extend({**row, **fields} for row in score_rows(samples, question))
    for stage in stages:
        stage.answering.release()
    return scored


def evaluations(resolved: Resolved, policy: Policy, seed: int) -> list[Evaluate]:
    """Return the evaluation stages of a policy, which all share one loaded model."""
    answering = Answering(policy, scoring_of(resolved), resolved.run.threads)
    draws = [
        replace(question, draw=find_benchmark(question.suite).draw_of(seed))
        for question in questions(resolved)
    ]
    return [Evaluate(answering=answering, question=question) for question in draws]


def score_rows(samples: list[Sample], question: Question) -> list[dict[str, object]]:
    """Return the scores of a suite with their intervals, and sampling options if drawn."""
    benchmark, decoding = question.benchmark, question.decoding
    names = dict.fromkeys((*metrics(decoding.samples, question.mode), *question.metrics))
    rows = score(samples, benchmark, metrics=[*names], mode=question.mode)
    sampling = {"temperature": decoding.temperature, "top_p": decoding.top_p}
    sampling |= {} if decoding.top_k is None else {"top_k": decoding.top_k}
    fields = {**question.part, **(sampling if decoding.temperature else {})}
    return [
        asdict(row) | fields | by_parts(samples, benchmark, row.metric, question.by) for row in rows
    ]


def by_parts(
    samples: list[Sample], benchmark: Benchmark, metric: str, fields: tuple[str, ...]
) -> dict[str, object]:
    """Return the scores split by fields of the problems; empty without fields."""
    scores = {field: score_parts(samples, benchmark, metric, field) for field in fields}
    return {"by": scores} if scores else {}


def at_k_curve(samples: list[Sample], question: Question) -> dict[str, object]:
    """Return Maj@K and Pass@K with intervals at K = 1, 2, 4, ... up to the number of samples.

    Raises:
        BadValue: there are no samples, or not `question.decoding.samples` of each problem.
    """
    samples_per_problem = question.decoding.samples
    ks = [
        *(2**i for i in range(samples_per_problem.bit_length()) if 2**i < samples_per_problem),
        samples_per_problem,
    ]
    points = curve(samples, ks)
    sampling = {"samples": samples_per_problem, "temperature": question.decoding.temperature}
    problems = len({sample.id for sample in samples})
    return {**points, "n": problems, **question.part, **sampling}
