"""Problems of a paper's module that can be found before anything runs."""

from collections.abc import Iterator, Sequence

from core.claims import START, Need, problems
from core.families.profiles import SCALES
from core.paper import Evaluation, Paper
from core.paper.registry import Entry, lineage
from core.settings.differences import index_problems
from core.settings.refusals import arms, check_arm, check_names, same_trainings
from core.settings.resolve import Resolved, resolve
from core.verdicts.trials import compared_arms, same_trials
from eval.errors import ReproError
from eval.stats.summary import metrics

TO_FILL = "TODO"  # what `repro new` leaves to whoever writes the paper's module


def module_problems(entry: Entry, paper: Paper) -> Iterator[str]:
    """Yield the problems of a paper's module: slug, missing texts, settings and claims."""
    expected = entry.module.rpartition(".")[2].replace("_", "-")
    if paper.slug != entry.slug or (entry.module.startswith("papers.") and paper.slug != expected):
        yield f"{entry.module} has the slug {paper.slug!r}, expected {entry.slug!r}"
    if entry.slug == paper.slug:
        lineage(paper)
    told = {"docstring": entry.text(), "title": paper.title, "model": paper.model, "url": paper.url}
    for name, text in told.items():
        if TO_FILL in text:
            yield f"{name}: still holds a {TO_FILL} ({text.splitlines()[0]!r}): fill it in"
    for number in paper.reported:
        if not number.passage:
            yield f"{number.system}, {number.benchmark}: a reported number without a passage"
    yield from (
        f"{setting.name}: a setting without a passage"
        for setting in paper.settings
        if not setting.passage
    )
    for asked in paper.evaluations:
        if asked != Evaluation() and not asked.passage:
            yield f"evaluation {asked}: without a passage"
    for claim in paper.claims:
        found = problems(claim, paper.arms, paper.benchmarks, given_scores(paper))
        yield from (f"claim {claim.slug}: {line}" for line in found)
    settings = [line for scale in SCALES for line in settings_problems(paper, scale)]
    yield from settings
    if not settings and (paper.trl_index or paper.trl_reasons):  # they are held against them
        yield from index_problems(paper)


def given_scores(paper: Paper) -> set[Need]:
    """Return every score that the evaluations of a paper yield."""
    return {
        Need("score", name, (metric, asked.mode, asked.temperature), by)
        for asked in paper.evaluations
        for name in asked.benchmarks or paper.benchmarks
        for metric in metrics(asked.samples)
        for by in ("", *asked.by)
    }


def settings_problems(paper: Paper, scale: str) -> Iterator[str]:
    """Yield the problems of the arms' settings at a scale; one line for those that arms share."""
    found: dict[str, list[str]] = {}
    for arm in (*(paper.arms or (paper.main_arm,)), *paper.preparations):
        try:
            resolved = resolve(paper, arm=arm, scale=scale)
            resolved.preview()
            check_names(resolved)
            if arm not in paper.preparations:
                check_arm(resolved)
        except ReproError as error:
            found.setdefault(str(error), []).append(arm)
    for error, named in found.items():
        yield f"arm {', '.join(named)} at {scale}: {error}"
    built = arms(paper, scale)
    compared = [arm for arm in built if arm.arm in compared_arms(paper)]
    for line in (*same_trainings(built), *same_trials(compared), *start_problems(paper, built)):
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
