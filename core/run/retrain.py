"""Trains recorded runs again in a scratch folder, and compares the outcome with their records."""

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias, cast

from core.claims.needs import PREPARED
from core.paper import Paper
from core.paper.registry import Entry
from core.records.agreement import EXACT, agree
from core.records.answers import ANY, NEAR, answers, said
from core.records.record import read_records, standard
from core.records.schema import Record, RunRecord, ScoreRow, place_of, runs_of, tunings_of
from core.run.check import whole_records
from core.run.request import Order
from core.run.units import chain_command, label_of
from core.settings.resolve import resolve
from core.spread.pool import FailedUnit, Unit, run_units
from core.stages.chain import Chain
from core.stages.kernels import PROCESSOR
from core.verdicts.up_to_date import asked_problems, factor_of
from eval.errors import BadValue
from eval.terminal import say

# Where rounding changed an answer:
CURVE = 0.25  # the most that the mean of a curve over its steps may differ, relative,
SMALL = 0.02  # and beside that
SCORE = 5.0  # points that a score may differ
AS_ASKED = (
    *("config", "overrides", "data", "start_model", "main", "size", "scale", "seed"),
    *("paper", "arm", "kind", "train steps"),
)
# The digest of a start that is not trained here is compared by `repro check`.
OF_PROCESSOR = ("train weights", "train kernels", "model digest")
NamedValue: TypeAlias = tuple[tuple[object, ...], float]  # a score
# What records lack that are older than a metric or a claim that reads it: compared where recorded.
ADDED = ("curves adapters/length_direction_correlation", "pairs", "probabilities")
# Statistics of sampling that older records have of completions that nobody sampled.
REMOVED = tuple(
    f"curves completions/{name}" for name in ("clipped_ratio", "repetition", "unique_fraction")
)
OF_CODE = ("grader",)  # the version of the code that graded: what it decided is compared


@dataclass(frozen=True)
class Retraining:
    """A recorded run, and the arm and learning rate with which it is trained again."""

    run: RunRecord
    chain: Chain
    order: Order


def retrain(
    entries: Sequence[Entry], count: int, *, draw: int, within: float | None = None
) -> list[str]:
    """Train recorded runs again, drawn at random; return one line for each difference.

    The runs are trained in scratch folders, which are deleted. With `within` only runs whose
    training took at most that many seconds are drawn.

    Raises:
        BadValue: there are fewer than `count` runs to draw from.
    """
    problems: list[str] = []
    for retraining in draw_runs(entries, count, draw=draw, within=within):
        run = retraining.run
        say(f"train again: {run['paper']} {run['arm']} seed {run['seed']}, {run['digest']}")
        problems += retrained_problems(retraining)
    return problems


def draw_runs(
    entries: Sequence[Entry], count: int, *, draw: int, within: float | None = None
) -> list[Retraining]:
    """Draw recorded runs at random, the same for the same records and `draw`.

    With `within` only runs whose training took at most that many seconds.

    Raises:
        BadValue: there are fewer.
    """
    runs = [retraining for entry in entries for retraining in candidates(entry.load(), within)]
    if len(runs) < count:
        limit = "" if within is None else f" whose training took at most {within:g} s"
        raise BadValue(
            f"--retrain {count}: there are {len(runs)} recorded trainings{limit} with the "
            "settings of their paper's module; ask for as many or fewer"
        )
    return Random(draw).sample(sorted(runs, key=lambda retraining: retraining.run["digest"]), count)


def candidates(paper: Paper, within: float | None) -> Iterator[Retraining]:
    """Yield the shown runs of a paper that can be trained again with the settings of its module."""
    records, _ = whole_records(paper.slug)
    newest = standard(records)
    chosen = {(tuning["scale"], tuning["arm"]): tuning["best"] for tuning in tunings_of(newest)}
    for run in runs_of(newest, "cpu"):
        factor = factor_of(run, chosen)
        if not run["train"]["steps"] or (within is not None and seconds_of(run) > within):
            continue
        if factor is None or any(asked_problems(paper, run, factor)):
            continue  # which `repro check` reports
        chain = Chain(resolve(paper, arm=run["arm"], scale="cpu", factor=factor), run["seed"])
        if within is None or not chain.preparations:  # of these no record has the time
            yield Retraining(run, chain, Order(paper=paper))


def seconds_of(run: RunRecord) -> float:
    """Return how long the training of a run took."""
    return sum(run["timings"].get("phases", {}).values())


def retrained_problems(retraining: Retraining) -> list[str]:
    """Train a run again in a scratch folder; return one line for each difference to its record."""
    run = retraining.run
    unit = Unit(label_of(retraining.chain), chain_command(retraining.order, retraining.chain))
    with scratch_root():
        try:
            run_units([unit], 1)
        except FailedUnit as error:
            return [f"{place_of(run)}: training it again failed: {error}"]
        records = [record for record in read_records(run["paper"]) if record["kind"] == "run"]
    return [f"{place_of(run)}: {line}" for line in differences(cast(Record, run), records[-1])]


@contextmanager
def scratch_root() -> Generator[None]:
    """Work in a folder that is deleted afterwards."""
    before = os.environ.get("REPRO_ROOT")
    with TemporaryDirectory(prefix="repro-retrain-") as folder:
        os.environ["REPRO_ROOT"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["REPRO_ROOT"]
            else:
                os.environ["REPRO_ROOT"] = before


def differences(recorded: Record, retrained: Record) -> Iterator[str]:
    """Yield what a record says and training again does not give.

    On the same processor, kernels and versions everything is equal, to the last bit of the
    weights. Elsewhere, if all answers are the same ones, numbers are equal but for rounding. If
    rounding changed an answer, later updates differ: then curves and scores are near each other.

    How the two are compared is printed to standard error.
    """
    if is_same_arithmetic(recorded, retrained):
        how, is_close = "exactly: it has the same processor, kernels and versions", is_equal
    elif answers(recorded) == answers(retrained):
        how, is_close = f"up to {NEAR:g}: the processor differs, the answers do not", is_rounded
    else:
        how, is_close = "within tolerances: the processor and some answers differ", is_near
    say(f"{recorded['digest']}: compared {how}")
    old, new = parts(recorded), parts(retrained)
    for name in sorted(old.keys() | new.keys()):
        if (name in ADDED and name not in old) or (name in REMOVED and name not in new):
            continue
        old_value, new_value = old.get(name), new.get(name)
        if not is_close(name, old_value, new_value):
            yield f"{name} is {brief(old_value)}, trained again {brief(new_value)} (compared {how})"


def is_same_arithmetic(run: Record, other_run: Record) -> bool:
    """Return whether two runs were computed by the same processor, kernels and libraries."""
    kernels = [record["train"].get("kernels", {}) for record in (run, other_run)]
    libraries = [
        {name: record["versions"].get(name) for name in ("torch", "transformers")}
        for record in (run, other_run)
    ]
    return PROCESSOR in kernels[0] and kernels[0] == kernels[1] and libraries[0] == libraries[1]


def is_equal(name: str, old: object, new: object) -> bool:
    """Return whether two values are equal; statistics up to the order of their sums."""
    exact = name.startswith(("curves ", "train "))
    return agree(old, new, 0.0 if exact else EXACT)


def is_rounded(name: str, old: object, new: object) -> bool:
    """Return whether two values are equal but for rounding."""
    return name in OF_PROCESSOR or agree(old, new, NEAR)


def is_near(name: str, old: Any, new: Any) -> bool:  # Any: JSON of several types
    """Return whether settings are equal, and curves and scores within the tolerances."""
    if name.startswith("curves "):
        if not (old and new):
            return old == new
        old_mean, new_mean = mean_of(old), mean_of(new)
        return abs(old_mean - new_mean) <= CURVE * max(abs(old_mean), abs(new_mean)) + SMALL
    if name in ("scores", "start_scores"):
        return are_near(values_of(old), values_of(new))
    if name == "data" and old and new and old["name"].startswith(PREPARED):
        return old["name"] == new["name"]  # a model answered, so rows differ with the processor
    is_asked = name in AS_ASKED or (name.startswith("model ") and name not in OF_PROCESSOR)
    return not is_asked or agree(old, new, EXACT)


def parts(record: Record) -> dict[str, object]:
    """Return the compared fields of a record, curves and fields of the training one by one."""
    fields = {name: value for name, value in said(record).items() if name not in ANY}
    for name in ("start_scores", "scores", "sampling"):
        fields[name] = without(OF_CODE, fields[name])
    del fields["curves"], fields["train"], fields["model"]
    begun = {f"model {name}": value for name, value in record["model"].items()}
    curves = {f"curves {name}": points for name, points in record["curves"].items()}
    trained = {f"train {name}": value for name, value in record["train"].items()}
    return {**fields, **begun, **curves, **trained}


def without(names: Sequence[str], value: object) -> object:
    """Return a JSON value without the fields of these names, at any depth."""
    if isinstance(value, dict):
        fields = cast(dict[str, object], value)
        return {k: without(names, v) for k, v in fields.items() if k not in names}
    if isinstance(value, list):
        return [without(names, item) for item in cast(list[object], value)]
    return value


def mean_of(points: Sequence[Sequence[float]]) -> float:
    """Return the mean of a curve over its steps."""
    return fmean(value for _, value in points)


def values_of(rows: Sequence[ScoreRow] | None) -> list[NamedValue]:
    """Return ((benchmark, mode, metric, n), value) of each score, in order; empty for None."""
    names = ("benchmark", "mode", "metric", "n")
    return [(tuple(row[name] for name in names), row["value"]) for row in rows or ()]


def are_near(old_rows: Sequence[NamedValue], new_rows: Sequence[NamedValue]) -> bool:
    """Return whether the same scores were measured, with values within the tolerance."""
    pairs = zip(old_rows, new_rows, strict=False)
    return len(old_rows) == len(new_rows) and all(
        old_name == new_name and abs(old - new) <= SCORE
        for (old_name, old), (new_name, new) in pairs
    )


def brief(value: object) -> str:
    """Return the beginning of a value's text."""
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
