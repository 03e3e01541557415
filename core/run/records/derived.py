"""What records say that follows from others and from the paper's module, derived again.

It is asked of the records that tables and reports show. Others, those that newer ones supersede and
those of worlds that are gone, are only held against their digests.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

from core.paper import Paper
from core.run.files import canonical, digest_of
from core.run.records.answers import seal_of
from core.run.records.judged import judged_runs, other_verdicts
from core.run.records.passed import code_digest
from core.run.records.record import Record, standard
from core.run.records.regrade import rows_of
from core.run.records.schema import ClaimsRecord, RunRecord, claims_of, place_of, runs_of
from core.run.resolve import resolve
from core.run.settings import HELD_OUT
from core.run.stages.chain import Chain
from core.run.stages.record import request_of, size_of
from core.run.stages.sources import model_folder, model_version
from eval.errors import ReproError


def derived_problems(paper: Paper, records: Sequence[Record]) -> Iterator[str]:
    """All that the shown records say otherwise than what they follow from."""
    shown = standard(records)
    runs = runs_of(shown)
    for run in runs:
        try:
            yield from (f"{place_of(run)}: {line}" for line in asked_problems(paper, run))
        except ReproError as error:  # as of an arm that the module no longer has
            yield f"{place_of(run)}: {error}"
    yield from one_start(runs)
    yield from twins(paper, runs)
    for scale in sorted({record["scale"] for record in shown}):
        for claims in claims_of(shown, scale):
            found = verdict_problems(paper, claims, runs_of(records, scale))
            yield from (f"{place_of(claims)}: {line}" for line in found)


def asked_problems(paper: Paper, run: RunRecord) -> Iterator[str]:
    """What a run says of its settings, model and length that its paper's module does not."""
    resolved = resolve(paper, arm=run["arm"], scale=run["scale"])
    chain = Chain(resolved, run["seed"])
    now = cast(dict[str, Any], canonical(request_of(resolved)["config"]))
    for name in sorted(now.keys() | run["config"].keys()):
        if (found := run["config"].get(name)) != now.get(name):
            yield f"{name} is {found}, its arm asks for {now.get(name)}: run it again"
    expected = {
        "main": run["arm"] == paper.main_arm,
        "start_model": chain.start.chosen.name,
        "size": size_of(run["model"]["parameters"]),
    }
    for name, value in expected.items():
        if run[name] != value:
            yield f"{name} is {run[name]}, expected {value}"
    yield from start_problems(chain, run)
    yield from question_problems(chain, run)
    if resolved.family.trains:
        yield from length_problems(resolved.config.get("max_steps"), run)


def start_problems(chain: Chain, run: RunRecord) -> Iterator[str]:
    """That a run began with another model than the one that is here, if this one is here."""
    name = chain.start.model
    if chain.start.chosen.trained is None and model_folder(name) is not None:
        found, here = run["model"]["digest"], version_here(name)
        if found != here:
            yield f"it began with {chain.start.of} of the digest {found}, which is now {here}"


def question_problems(chain: Chain, run: RunRecord) -> Iterator[str]:
    """Scores and Maj@K that a run holds and its arm is not asked for."""
    asked = [stage.question for stage in chain.evaluations(chain.policy)]
    draws = {one.suite: one.part.get("draw") for one in asked}
    for suite, _, row in rows_of(run):
        if suite in draws and row.get("draw") != draws[suite]:
            said = f"{suite} is of draw {row.get('draw')}, its seed asks for {draws[suite]}"
            yield f"{said}: run it again"
    scored = {one.mirrors for one in asked if not one.curves}
    drawn = {one.mirrors for one in asked if one.curves}
    if more := {row["mirrors"] for row in run["scores"]} - scored:
        yield f"scores on {', '.join(sorted(more))}, which its arm is not asked for"
    if more := {change["mirrors"] for change in run["sampling"].values()} - drawn:
        yield f"Maj@K on {', '.join(sorted(more))}, which its arm is not asked for"


@cache
def version_here(name: str) -> str:
    """The digest of a model's files as they lie here."""
    return model_version(name)


def length_problems(steps: object, run: RunRecord) -> Iterator[str]:
    """Steps or curves that are longer or shorter than what was asked for."""
    made = run["train"]["steps"]
    if isinstance(steps, int) and steps > 0 and made != steps:
        yield f"{made} steps, its arm asks for {steps}"
    for name, points in run["curves"].items():
        places = [step for step, _ in points]
        if places != sorted(set(places)) or (places and places[-1] > made):
            yield f"the curve {name} goes to step {places[-1]}, in training's {made} steps"


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
            "samples": [row["digest"] for row in run["scores"]],
            "curves": run["curves"],
        }
        arm = paper.same_as(run["arm"], run["scale"]) or run["arm"]
        for name, part in parts.items():
            other = first.setdefault((run["scale"], name, digest_of(part)), run)
            there = paper.same_as(other["arm"], other["scale"]) or other["arm"]
            if (there, other["seed"]) != (arm, run["seed"]):
                yield f"{place_of(run)}: its {name} are those of {place_of(other)}"


def unmoved(run: RunRecord) -> Iterator[str]:
    """Sampled answers of a trained policy that are, to the letter, those of its starting model."""
    for suite, change in run["sampling"].items():
        if change["before"]["digest"] == change["after"]["digest"]:
            yield f"{place_of(run)}: its samples on {suite} are those of its starting model"


def verdict_problems(
    paper: Paper, claims: ClaimsRecord, runs: Sequence[RunRecord]
) -> Iterator[str]:
    """Verdicts that the runs which a record names do not give, and runs that are not there."""
    there = {run["digest"]: run for run in runs}
    named = judged_runs(claims)
    if gone := [digest for digest in named if digest not in there]:
        yield f"judges runs that are not there: {', '.join(gone)}; restore them"
        return
    used = [there[digest] for digest in named]
    newer = {run["supersedes"] for run in runs}
    if old := [digest for digest in named if digest in newer]:
        yield f"judges runs that newer ones supersede: {', '.join(old)}; run `repro report`"
    seeds = sorted({run["seed"] for run in used})
    if used and seeds != sorted(claims["seeds"]):
        yield f"says that it is over seeds {claims['seeds']}, its runs are of {seeds}"
    if found := other_verdicts(paper, claims, cast(list[Record], used)):
        yield f"has other verdicts than its runs give now ({', '.join(found)}): run `repro report`"


def derived_from(records: Sequence[Record]) -> dict[str, object]:
    """All but the paper's module that says whether records are what follows from others."""
    models = {run["model"].get("build", run["start_model"]) for run in runs_of(records)}
    return {
        "records": [seal_of(record) for record in records],
        "models": {name: version_here(name) for name in sorted(models) if model_folder(name)},
        "code": code_digest(("core", "eval"), ("numpy", "scipy", "torch")),
    }
