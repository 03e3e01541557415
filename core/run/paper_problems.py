"""Problems of a paper's module that can be found before anything runs."""

from collections.abc import Iterator, Sequence

from core.claims import START, Need, problems
from core.families.profiles import SCALES
from core.families.worlds import SCALE
from core.paper import Evaluation, Paper
from core.paper.registry import Entry, lineage
from core.settings.differences import index_problems
from core.settings.refusals import arms, check_arm, check_names, same_trainings
from core.settings.resolve import resolve
from core.settings.resolved import Resolved
from core.settings.run_settings import RunSettings
from core.stages.questions import requested_evaluations
from core.verdicts.trials import compared_arms, same_trials, untried_rates
from eval.errors import ReproError
from eval.stats.summary import metrics

TO_FILL = "TODO"  # what `repro new` leaves to whoever writes the paper's module


def module_problems(entry: Entry, paper: Paper) -> Iterator[str]:
    """Yield the problems of a paper's module: slug, missing texts, settings and claims."""
    yield from slug_problems(entry, paper)
    yield from text_problems(entry, paper)
    yield from passage_problems(paper)
    runs = runs_in_worlds(paper)
    benchmarks, scores = given_benchmarks(paper, runs), given_scores(paper, runs)
    for claim in paper.claims:
        for problem in problems(claim, paper.arms, benchmarks, scores):
            yield f"claim {claim.slug}: {problem}"
    settings = [line for scale in SCALES for line in settings_problems(paper, scale)]
    yield from settings
    if not settings and (paper.trl_index or paper.trl_reasons):  # needs settings that resolve
        yield from index_problems(paper)


def slug_problems(entry: Entry, paper: Paper) -> Iterator[str]:
    """Yield a line if the slug differs from the entry point, or from the file of one of ours."""
    expected = entry.module.rpartition(".")[2].replace("_", "-")
    if paper.slug != entry.slug or (entry.module.startswith("papers.") and paper.slug != expected):
        yield f"{entry.module} has the slug {paper.slug!r}, expected {entry.slug!r}"
    if entry.slug == paper.slug:
        lineage(paper)


def text_problems(entry: Entry, paper: Paper) -> Iterator[str]:
    """Yield the texts that still hold the mark of `repro new`."""
    texts = {
        "docstring": entry.text(),
        "title": paper.title,
        "model": paper.model,
        "url": paper.url,
    }
    for name, text in texts.items():
        if TO_FILL in text:
            yield f"{name}: still holds a {TO_FILL} ({text.splitlines()[0]!r}): fill it in"


def passage_problems(paper: Paper) -> Iterator[str]:
    """Yield the printed numbers, settings and evaluations without a passage of the paper."""
    for number in paper.reported:
        if not number.passage:
            yield f"{number.system}, {number.benchmark}: a reported number without a passage"
    for setting in paper.settings:
        if not setting.passage:
            yield f"{setting.name}: a setting without a passage"
    for evaluation in paper.evaluations:
        if evaluation != Evaluation() and not evaluation.passage:
            yield f"evaluation {evaluation}: without a passage"


def runs_in_worlds(paper: Paper) -> list[RunSettings]:
    """Return the settings of the arms in worlds that bring their own benchmarks."""
    return [arm.run for arm in arms(paper, SCALE) if arm.world.is_bare]


def given_benchmarks(paper: Paper, runs: Sequence[RunSettings]) -> set[str]:
    """Return the benchmarks of a paper and of its `runs_in_worlds`."""
    return {*paper.benchmarks, *(name for run in runs for name in run.benchmarks)}


def given_scores(paper: Paper, runs: Sequence[RunSettings]) -> set[Need]:
    """Return every score that the evaluations of a paper and of its `runs_in_worlds` yield."""
    pairs = [(evaluation, paper.benchmarks) for evaluation in paper.evaluations]
    for run in runs:
        pairs += [(each, run.benchmarks) for each in requested_evaluations(paper, run, SCALE)]
    return {
        Need("score", name, (metric, evaluation.mode, evaluation.temperature), by)
        for evaluation, benchmarks in pairs
        for name in evaluation.benchmarks or benchmarks
        for metric in (*metrics(evaluation.samples, evaluation.mode), *evaluation.metrics)
        for by in ("", *evaluation.by)
    }


def settings_problems(paper: Paper, scale: str) -> Iterator[str]:
    """Yield the problems of the arms' settings at a scale; one line for those that arms share."""
    arms_by_error: dict[str, list[str]] = {}
    for arm in (*(paper.arms or (paper.main_arm,)), *paper.preparations):
        if not paper.exists_at(arm, scale):
            continue
        try:
            resolved = resolve(paper, arm=arm, scale=scale)
            resolved.preview()
            check_names(resolved)
            if arm not in paper.preparations:
                check_arm(resolved)
        except ReproError as error:
            arms_by_error.setdefault(str(error), []).append(arm)
    for error, names in arms_by_error.items():
        yield f"arm {', '.join(names)} at {scale}: {error}"
    built = arms(paper, scale)
    compared = [arm for arm in built if arm.arm in compared_arms(paper)]
    among_arms = (*same_trainings(built), *same_trials(compared))
    for line in (*among_arms, *start_problems(paper, built), *untried_rates(paper, built)):
        yield f"at {scale}: {line}"


def start_problems(paper: Paper, built: Sequence[Resolved]) -> Iterator[str]:
    """Yield the claims that compare with the starting model though their arms have several."""
    models = {arm.arm: arm.run.model for arm in built}
    for claim in paper.claims:
        begun = {models[arm] for arm in claim.arms if arm in models}
        if len(begun) > 1 and START in {arm for arm, _ in claim.needs}:
            yield (
                f"claim {claim.slug} compares with the starting model, and its arms begin with "
                f"{' and '.join(sorted(begun))}: let it read arms of one of them"
            )
