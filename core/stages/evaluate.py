"""The evaluation stage: the graded answers of a policy to one suite."""

import gc
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from core.claims import START
from core.paper import Evaluation, Paper
from core.samplers.journal import Journal
from core.settings.resolved import Resolved
from core.settings.run_settings import RunSettings
from core.stages.answer_logps import with_logps
from core.stages.loading import Loading, scoring_of
from core.stages.sources import model_folder, source_of
from core.stages.stage import Outputs, Policy, Stage
from core.stages.tools import tools
from core.stages.watch.meter import open_meter
from eval.errors import BadValue, UnknownName
from eval.grading import GRADER_VERSION
from eval.samples.evaluation import Decoding, run_benchmark
from eval.samples.parts import score_parts
from eval.samples.store import Sample, read_samples, write_samples
from eval.sets.benchmarks import Benchmark, find_benchmark
from eval.stats.summary import curve, is_weighted, metrics, parse_metric, score
from eval.terminal import say

if TYPE_CHECKING:  # torch and transformers, see `core.stages.loading`
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from core.preparations.sampled_answers import AnswersConfig
    from core.samplers.policy import PolicySampler, TokenSampler

SAMPLES = "samples.jsonl.gz"
JOURNAL = "journal"
PLAIN_MODE = "cot"
PLAIN = "float32 on cpu"  # how numbers are computed that say nothing else


@dataclass(frozen=True, kw_only=True)
class Question:
    """The question of one evaluation stage: the suite, its problems, the mode and the decoding.

    Attributes:
        suite: The name of the suite.
        mirrors: The name of the paper's benchmark that the suite stands for.
        limit: The number of problems, a fixed sample; None for all.
        decoding: The settings of sampling.
        mode: The mode of answering.
        by: Fields of the problems by which scores are split too.
        metrics: Metrics that are scored besides those of every question of as many samples.
        curves: Whether Maj@K and Pass@K are computed for every K, instead of one score.
        draw: The number of the draw of test problems, of generated suites only.
    """

    suite: str
    mirrors: str
    limit: int | None
    decoding: Decoding
    mode: str = "cot"
    by: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    curves: bool = False
    draw: int = 0

    @property
    def benchmark(self) -> Benchmark:
        """The suite with the test problems of its draw.

        Raises:
            BadValue, UnknownName: see `find_benchmark`.
        """
        return find_benchmark(self.suite, self.draw)

    @property
    def prompts(self) -> dict[str, str]:
        """The prompt of each problem by its id."""
        problems = self.benchmark.load(limit=self.limit)
        return {p.id: self.benchmark.prompt(p, self.mode) for p in problems}

    @property
    def has_weights(self) -> bool:
        """True if a metric weighs samples by their log-probabilities, which are then stored."""
        return any(is_weighted(metric) for metric in self.metrics)

    @property
    def part(self) -> dict[str, object]:
        """The fields of a record that identify the sample of problems and its draw."""
        benchmark = self.benchmark
        draw = {"draw": benchmark.draw} if benchmark.is_generated else {}
        return {"drawn": benchmark.describe_sample(self.limit), **draw}


class Answering:
    """A policy as a sampler, loaded when its first sample is needed."""

    def __init__(self, policy: Policy, loading: Loading, threads: int | None):
        self.policy = policy
        self.loading = loading
        self.threads = threads

    @cached_property
    def sampler(self) -> "PolicySampler":
        """The policy in the native engine, with the loading of the run."""
        return self.load(self.loading)

    @cached_property
    def answerer(self) -> "TokenSampler[Any]":
        """The policy in the engine that answers benchmarks."""
        from core.stages.training import prepare_torch

        prepare_torch(self.threads)
        return self.loading.answerer(self.place)

    def release(self) -> None:
        """Release the engine that answers benchmarks, with its memory or its server."""
        if self.__dict__.pop("answerer", None) is not None:
            gc.collect()

    @property
    def tokenizer(self) -> "PreTrainedTokenizerBase":
        """The tokenizer of the policy."""
        return self.loading.tokenizer(self.place)

    def scorer(self, seed: int) -> "PreTrainedModel":
        """Load the model as a reward model; one without a head gets that of a training's seed."""
        from core.stages.training import prepare_torch

        prepare_torch(self.threads)
        return self.loading.scorer(self.place, seed)

    def load(self, loading: Loading) -> "PolicySampler":
        """Load the policy again with other options, and return its sampler."""
        from core.stages.training import prepare_torch

        prepare_torch(self.threads)
        return loading.sampler(self.place)

    @property
    def place(self) -> str:
        """The folder of the policy, or its name on the hub."""
        return str(model_folder(self.policy.model) or self.policy.model)


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


def questions(resolved: Resolved) -> list[Question]:
    """Return every question of a run, without duplicates.

    Samples at K are asked only if a claim compares Maj@K or Pass@K of the arm.
    """
    run, paper = resolved.run, resolved.paper
    requested = [
        question
        for evaluation in requested_evaluations(paper, run, resolved.scale)
        for question in questions_of(evaluation, run)
    ]
    distinct = [*dict.fromkeys(requested)]  # an evaluation in another mode may equal another one
    return distinct + (at_k_questions(run) if resolved.arm in sampled_arms(paper) else [])


def requested_evaluations(paper: Paper, settings: RunSettings, scale: str) -> list[Evaluation]:
    """Return the paper's evaluations at a scale, or one at the temperature that the settings name.

    If the settings name modes, it is done in each of these.
    """
    modes, evaluations = settings.eval_modes, paper.evaluations_at(scale)
    if settings.eval_temperature is not None:
        evaluations = (Evaluation(temperature=settings.eval_temperature),)
    if not modes:
        return [*evaluations]
    return [replace(evaluation, mode=mode) for mode in modes for evaluation in evaluations]


def modes_of(resolved: Resolved) -> frozenset[str]:
    """Return the modes in which the model of a run or preparation answers."""
    watched = {resolved.run.heldout_mode} if resolved.run.heldout_benchmarks else set[str]()
    made = set[str]()
    if resolved.family.gives:
        made = {cast("AnswersConfig", resolved.preview()).answer_mode}
    return frozenset(watched | made | {question.mode for question in questions(resolved)})


def questions_of(evaluation: Evaluation, settings: RunSettings) -> list[Question]:
    """Return the questions of one evaluation, on the suites that stand for its benchmarks.

    Raises:
        UnknownName: a benchmark is not among those that are scored.
        BadValue: a metric that its samples cannot give, or a weighted one of another mode.
    """
    check_metrics(evaluation)
    names = evaluation.benchmarks or tuple(settings.suites)
    for name in names:
        if name not in settings.suites:
            raise UnknownName("benchmark of an evaluation", name, settings.suites)
    return [
        Question(
            suite=settings.suites[name],
            mirrors=name,
            limit=settings.eval_limit,
            mode=evaluation.mode,
            by=evaluation.by,
            metrics=evaluation.metrics,
            decoding=Decoding(
                samples=evaluation.samples,
                temperature=evaluation.temperature,
                top_p=evaluation.top_p,
                top_k=evaluation.top_k,
                max_tokens=_tokens(settings, settings.suites[name]),
                system=settings.system_prompt,
            ),
        )
        for name in names
    ]


def check_metrics(evaluation: Evaluation) -> None:
    """Check that the samples of an evaluation give its metrics.

    Raises:
        BadValue: they do not; or a vote is to be weighted by the probabilities of texts that the
            policy has not written alone.
    """
    for metric in evaluation.metrics:
        parse_metric(metric, evaluation.samples)
        if is_weighted(metric) and evaluation.mode != PLAIN_MODE:
            raise BadValue(
                f"{metric} in the mode {evaluation.mode}: votes are weighted in the mode "
                f"{PLAIN_MODE} only; leave the metric out"
            )


def at_k_questions(settings: RunSettings) -> list[Question]:
    """Return the questions of the samples for Maj@K and Pass@K, on the first suites.

    They are asked in the first of the `eval_modes`.
    """
    limits = [n for n in (settings.eval_limit, settings.at_k_limit) if n is not None]
    return [
        Question(
            suite=suite,
            mirrors=name,
            limit=min(limits, default=None),
            curves=True,
            mode=next(iter(settings.eval_modes), PLAIN_MODE),
            decoding=Decoding(
                samples=settings.at_k_samples,
                temperature=settings.at_k_temperature,
                max_tokens=_tokens(settings, suite),
                system=settings.system_prompt,
            ),
        )
        for name, suite in list(settings.suites.items())[: settings.at_k_benchmarks]
    ]


def sampled_arms(paper: Paper) -> set[str]:
    """Return the arms of which a claim reads samples.

    Those of the starting model are recorded with the first arm of the claim, or the main arm.
    """
    claimed = [(claim.arms, *need) for claim in paper.claims for need in claim.needs]
    return {
        next(iter(arms), paper.main_arm) if arm == START else arm
        for arms, arm, need in claimed
        if need.kind == "samples"
    }


def score_rows(samples: list[Sample], question: Question) -> list[dict[str, object]]:
    """Return the scores of a suite with their intervals, and sampling options if drawn."""
    benchmark, decoding = question.benchmark, question.decoding
    names = dict.fromkeys((*metrics(decoding.samples), *question.metrics))
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


def _tokens(settings: RunSettings, suite: str) -> int:
    """Return the largest number of tokens of an answer: the run's setting, else the suite's."""
    return settings.eval_max_tokens or find_benchmark(suite).max_tokens
