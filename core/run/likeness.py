"""Comparison of a run made here with the published run of the same arm and seed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from core.records.answers import answers
from core.records.fair import is_tuned
from core.records.places import Shelf
from core.records.record import Record, latest, read_records
from core.records.run_samples import read_run_samples
from core.records.schema import RunRecord, ScoreRow, runs_of, tunings_of
from core.run.request import Order
from core.run.retrain import is_near, parts
from core.settings.layers import arguments_of
from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.verdicts.outcome import Outcome
from core.verdicts.run_differences import key_of
from core.verdicts.up_to_date import factor_of
from eval.samples.store import Sample


@dataclass(frozen=True, kw_only=True)
class Likeness:
    """Comparison of two runs of one arm and seed.

    Attributes:
        identical: All answers, curves and weights are the same, to the last bit.
        apart: Names of fields that differ by more than other rounding explains.
        largest: The largest relative difference (below 1 an absolute one) of the curves' points
            and of the scores, and the name of the curve or benchmark that has it.
        changed: How many answers differ, of how many (`count`).
    """

    identical: bool
    apart: Sequence[str]
    largest: tuple[float, str]
    changed: int
    count: int

    def __str__(self) -> str:
        if self.identical:
            return "identical to the published run, to the last bit"
        size, name = self.largest
        numbers = (
            f"largest difference {size:.2g} ({name}), "
            f"{self.changed:,} of {self.count:,} answers changed"
        )
        if self.apart:
            return f"different from the published run ({', '.join(self.apart)}): {numbers}"
        return f"equal to the published run within rounding: {numbers}"


def likeness_lines(order: Order, outcome: Outcome) -> Iterator[str]:
    """Yield for each run that was made here how it compares with the published one.

    Runs with overrides are not published, and have no line.
    """
    if outcome.claims["overrides"]:
        return
    published_runs = runs_of(latest(read_records(order.paper.slug, Shelf.PUBLISHED)))
    published = {name_of(run): run for run in published_runs}
    chosen = {
        (tuning["scale"], tuning["arm"]): tuning["best"] for tuning in tunings_of(outcome.tunings)
    }
    for run in runs_of(outcome.runs):
        factor = factor_of(run, chosen)
        resolved = resolve(
            order.paper,
            arm=run["arm"],
            scale=run["scale"],
            arguments=arguments_of(order.paper, run["arm"], order.arguments, order.arm_names),
            factor=1.0 if factor is None else factor,
        )
        computed = computed_here(run, Chain(resolved, run["seed"]))
        if computed is not None:
            before = published.get(name_of(run))
            comparison = str(likeness(before, computed)) if before else "no published run of it"
            yield f"{run['arm']}, seed {run['seed']}: {comparison}"


def name_of(run: RunRecord) -> tuple[str, str, int, bool]:
    """Return the scale, arm and seed of a run, and whether trials chose its learning rate."""
    return run["scale"], run["arm"], run["seed"], is_tuned(run)


def computed_here(run: RunRecord, chain: Chain) -> RunRecord | None:
    """Return a run as it was computed here, None if it was not.

    The record of a run may be an older one, made elsewhere, of the same answers: the weights, the
    kernels and the curves are those of the stage that ran here.
    """
    if chain.train is None:
        return run
    trained, policy = chain.train.outputs(), chain.policy.outputs()
    if trained is None or policy is None:
        return None
    weights = {"weights": policy["weights"], "kernels": trained["kernels"]}
    return cast(
        RunRecord, {**run, "train": {**run["train"], **weights}, "curves": trained["curves"]}
    )


def likeness(published: RunRecord, run: RunRecord) -> Likeness:
    """Compare a run with a published one."""
    old, new = parts(cast(Record, published)), parts(cast(Record, run))
    curves = {name for name in old.keys() & new.keys() if name.startswith("curves ")}
    other_names = {name for name in old.keys() | new.keys() if not name.startswith("curves ")}
    exact = answers(published) == answers(run) and all(
        old.get(name) == new.get(name) for name in {*curves, "train weights"}
    )
    pairs = [*shared_scores(published["scores"], run["scores"])]
    counts = [changed_answers(published, row, run, other_row) for row, other_row in pairs]
    return Likeness(
        identical=exact,
        apart=[
            name
            for name in sorted(curves | other_names)
            if not is_near(name, old.get(name), new.get(name))
        ],
        largest=max(distances(published, run), default=(0.0, "curves")),
        changed=sum(changed for changed, _ in counts),
        count=sum(count for _, count in counts),
    )


def distances(published: RunRecord, run: RunRecord) -> Iterator[tuple[float, str]]:
    """Yield the largest distance of each curve and score that both runs have, with its name."""
    for name in published["curves"].keys() & run["curves"].keys():
        points = zip(published["curves"][name], run["curves"][name], strict=False)
        yield max((distance(row[1], other_row[1]) for row, other_row in points), default=0.0), name
    for row, other_row in shared_scores(published["scores"], run["scores"]):
        yield distance(row["value"], other_row["value"]), row["benchmark"]


def distance(number: float, reference: float) -> float:
    """Return the relative distance of two numbers, below 1 the absolute one."""
    return abs(number - reference) / max(1.0, abs(number))


def shared_scores(
    rows: Sequence[ScoreRow], other_rows: Sequence[ScoreRow]
) -> Iterator[tuple[ScoreRow, ScoreRow]]:
    """Yield the scores that both runs have."""
    rows_by_key = {key_of(row): row for row in other_rows}
    return ((row, rows_by_key[key_of(row)]) for row in rows if key_of(row) in rows_by_key)


def changed_answers(
    published: RunRecord, published_row: ScoreRow, run: RunRecord, row: ScoreRow
) -> tuple[int, int]:
    """Return how many answers behind a score of each run differ, and how many there are."""
    if published_row["digest"] == row["digest"]:
        return 0, published_row["n"] * published_row.get("samples", 1)
    before, after = by_name(published, published_row["digest"]), by_name(run, row["digest"])
    return sum(after.get(name) != answer for name, answer in before.items()), len(before)


def by_name(run: RunRecord, digest: str) -> Mapping[tuple[str, int], Sample]:
    """Return stored samples of a run by problem and number."""
    return {(sample.id, sample.sample): sample for sample in read_run_samples(run, digest)}
