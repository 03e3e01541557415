"""What records say that follows from others and from the paper's module, derived again.

It is asked of the records that tables and reports show. Others, those that newer ones supersede and
those of worlds that are gone, are only held against their digests.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, cast

from core.paper import Paper
from core.records.answers import seal_of, with_texts
from core.records.fair import is_tuned
from core.records.passed import code_digest
from core.records.record import Record, latest
from core.records.schema import (
    ClaimsRecord,
    RunRecord,
    claims_of,
    place_of,
    runs_of,
    tunings_of,
)
from core.settings.canonical import digest_of
from core.settings.run_settings import HELD_OUT
from core.stages.sources import model_folder, version_here
from core.verdicts.up_to_date import asked_problems, factor_of, tuning_problems
from core.verdicts.verdict_records import at_other_settings, judged_runs, other_verdicts
from eval.errors import ReproError


def derived_problems(paper: Paper, records: Sequence[Record]) -> Iterator[str]:
    """All that the shown records say otherwise than what they follow from."""
    shown = latest(records)
    runs, tunings = runs_of(shown), tunings_of(shown)
    chosen = {(tuning["scale"], tuning["arm"]): tuning["best"] for tuning in tunings}
    found = [(run, asked_problems(paper, run, factor_of(run, chosen))) for run in runs]
    found += [(tuning, tuning_problems(paper, tuning)) for tuning in tunings]
    for record, lines in found:
        try:
            yield from (f"{place_of(record)}: {line}" for line in lines)
        except ReproError as error:  # as of an arm that the module no longer has
            yield f"{place_of(record)}: {error}"
    yield from one_start(runs)
    yield from twins(paper, runs)
    for scale in sorted({record["scale"] for record in shown}):
        for claims in claims_of([*shown, *at_other_settings(records)], scale):
            lines = verdict_problems(paper, claims, records)
            yield from (f"{place_of(claims)}: {line}" for line in lines)


def one_start(runs: Sequence[RunRecord]) -> Iterator[str]:
    """What two runs that began with one model say otherwise of it."""
    first: dict[Hashable, tuple[object, RunRecord]] = {}
    for run in runs:
        for asked, answered in of_start(run):
            other, there = first.setdefault((run["model"]["digest"], *asked), (answered, run))
            if other != answered:
                said = f"says {answered} of its starting model, {place_of(there)} says {other}"
                yield f"{place_of(run)}: {asked[0]}: {said}"


def of_start(run: RunRecord) -> Iterator[tuple[tuple[str, ...], object]]:
    """What a run asked its starting model, and what it answered: digests, and held-out accuracy."""
    rows: list[Mapping[str, Any]] = [*run["start_scores"]]
    rows += [{"benchmark": suite, **change["before"]} for suite, change in run["sampling"].items()]
    for row in rows:
        yield (row["benchmark"], digest_of(question(row))), row["digest"]
    curve = run["curves"].get(HELD_OUT)
    if curve and curve[0][0] == 0:
        names = ("data", "heldout_problems", "eval_max_tokens", "threads")
        asked = {name: run["config"].get(name) for name in names}
        yield (HELD_OUT, digest_of(asked)), curve[0][1]


def question(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row of scores or curves asked, without what came out."""
    names = ("mode", "metric", "n", "samples", "seed", "temperature", "top_p", "draw")
    return {name: row.get(name) or None for name in names}


def twins(paper: Paper, runs: Sequence[RunRecord]) -> Iterator[str]:
    """Trainings of other arms or seeds that came to the very same weights, answers or curves."""
    first: dict[Hashable, RunRecord] = {}
    for run in runs:
        if "weights" not in run["train"]:
            continue  # of a model as it is, each seed may ask the same
        yield from unmoved(run)
        parts = {
            "weights": run["train"]["weights"],
            "samples": [with_texts(row)["digest"] for row in run["scores"]],
            "curves": run["curves"],
        }
        arm = paper.same_as(run["arm"], run["scale"]) or run["arm"]
        for name, part in parts.items():
            other = first.setdefault((run["scale"], name, digest_of(part)), run)
            there = paper.same_as(other["arm"], other["scale"]) or other["arm"]
            rates = (is_tuned(other), is_tuned(run))
            if (there, other["seed"]) != (arm, run["seed"]) or len({*rates}) > 1:
                yield f"{place_of(run)}: its {name} are those of {place_of(other)}"


def unmoved(run: RunRecord) -> Iterator[str]:
    """Sampled answers of a trained policy that are, to the letter, those of its starting model."""
    for suite, change in run["sampling"].items():
        before, after = (with_texts(change[when])["digest"] for when in ("before", "after"))
        if before == after:
            yield f"{place_of(run)}: its samples on {suite} are those of its starting model"


def verdict_problems(
    paper: Paper, claims: ClaimsRecord, records: Sequence[Record]
) -> Iterator[str]:
    """Verdicts that the runs which a record names do not give, and runs that are not there."""
    runs = runs_of(records, claims["scale"])
    there = {run["digest"]: run for run in runs}
    tried = {tuning["digest"]: tuning for tuning in tunings_of(records, claims["scale"])}
    named, tunings = judged_runs(claims), claims.get("tunings", [])
    if gone := [digest for digest in (*named, *tunings) if digest not in there.keys() | tried]:
        yield f"judges runs that are not there: {', '.join(gone)}; restore them"
        return
    used = [there[digest] for digest in named]
    newer = {one["supersedes"] for one in (*runs, *tried.values())}
    if old := [digest for digest in (*named, *tunings) if digest in newer]:
        yield f"judges runs that newer ones supersede: {', '.join(old)}; run `repro publish`"
    seeds = sorted({run["seed"] for run in used})
    if used and seeds != sorted(claims["seeds"]):
        yield f"says that it is over seeds {claims['seeds']}, its runs are of {seeds}"
    chosen = cast(list[Record], [tried[digest] for digest in tunings])
    if found := other_verdicts(paper, claims, cast(list[Record], used), chosen):
        yield f"has other verdicts than its runs give now ({', '.join(found)}): run `repro publish`"


def derived_from(records: Sequence[Record]) -> dict[str, object]:
    """All but the paper's module that says whether records are what follows from others."""
    models = {run["model"].get("build", run["start_model"]) for run in runs_of(records)}
    return {
        "records": [seal_of(record) for record in records],
        "models": {name: version_here(name) for name in sorted(models) if model_folder(name)},
        "code": code_digest(("core", "eval"), ("numpy", "scipy", "torch")),
    }
