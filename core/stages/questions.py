"""Questions of a run: the suites that its policy is asked, with mode and decoding."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from core.claims import START
from core.paper import Evaluation, Paper
from core.settings.resolved import Resolved
from core.settings.run_settings import RunSettings
from eval.errors import BadValue, UnknownName
from eval.samples.evaluation import Decoding
from eval.sets.benchmarks import Benchmark, find_benchmark
from eval.stats.summary import is_rated, is_weighted, parse_metric

if TYPE_CHECKING:  # torch and transformers, see `core.stages.loading`
    from core.preparations.sampled_answers import AnswersConfig

PLAIN_MODE = "cot"


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
        """True if a metric reads log-probabilities of samples, which are then stored."""
        return any(is_weighted(metric) for metric in self.metrics)

    @property
    def part(self) -> dict[str, object]:
        """The fields of a record that identify the sample of problems and its draw."""
        benchmark = self.benchmark
        draw = {"draw": benchmark.draw} if benchmark.is_generated else {}
        return {"drawn": benchmark.describe_sample(self.limit), **draw}


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
        BadValue: they do not; or a metric reads ratings, which they have none of; or it reads the
            probabilities of texts that the policy has not written alone.
    """
    for metric in evaluation.metrics:
        parse_metric(metric, evaluation.samples)
        if is_rated(metric):
            raise BadValue(
                f"{metric}: the samples of a run have no ratings; leave the metric out, or give "
                "rated samples to `repro score`"
            )
        if is_weighted(metric) and evaluation.mode != PLAIN_MODE:
            raise BadValue(
                f"{metric} in the mode {evaluation.mode}: log-probabilities are those of answers "
                f"in the mode {PLAIN_MODE} only; leave the metric out"
            )


def at_k_questions(settings: RunSettings) -> list[Question]:
    """Return the questions of the samples for Maj@K and Pass@K, on the first suites."""
    limits = [n for n in (settings.eval_limit, settings.at_k_limit) if n is not None]
    return [
        Question(
            suite=suite,
            mirrors=name,
            limit=min(limits, default=None),
            curves=True,
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


def _tokens(settings: RunSettings, suite: str) -> int:
    """Return the largest number of tokens of an answer: the run's setting, else the suite's."""
    return settings.eval_max_tokens or find_benchmark(suite).max_tokens
