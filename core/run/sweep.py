"""Sweeps: the same arms and seeds at every combination of values of some settings."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from core.records.runs_lock import working_in_runs
from core.records.schema import Record
from core.run.request import Order
from core.run.units import run_chains
from core.run.work import check_chains, check_records, make_chains
from core.settings.refusals import refuse_paper
from eval.errors import BadValue

Point = tuple[str, ...]  # name=value of every setting that is swept


def points(sweeps: Sequence[str]) -> list[Point]:
    """Return every combination of values of `name=a,b,c` texts; the last name varies fastest.

    Raises:
        BadValue: a text has fewer than two values, or a value or name occurs twice.
    """
    axes: dict[str, list[str]] = {}
    for sweep in sweeps:
        name, _, text = sweep.partition("=")
        values = [value.strip() for value in alternatives(text)]
        if len({*values}) < max(2, len(values)) or "" in values or name in axes:
            raise BadValue(
                f"--sweep {sweep}: expected name=a,b, two values or more and each name once"
            )
        axes[name] = [f"{name}={value}" for value in values]
    return list(product(*axes.values()))


def alternatives(text: str) -> list[str]:
    """Return the values of a text, separated by commas outside of brackets."""
    values, depth = [""], 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and not depth:
            values.append("")
        else:
            values[-1] += c
    return values


def run_sweep(order: Order, swept_points: Sequence[Point]) -> list[Record]:
    """Run what is missing of every point, and return the records of all points.

    The arm of each record is named with the point's settings, so that one table can hold all.
    """
    refuse_paper(order.paper)
    runs = [
        (point, chain)
        for point in swept_points
        for chain in make_chains(
            replace(order, arguments=(*order.arguments, *point)), order.arm_names
        )
    ]
    chains = [chain for _, chain in runs]
    check_chains(chains)
    check_records(order.paper.slug)
    with working_in_runs():
        records = run_chains(order, chains)
    return [
        {**record, "arm": " ".join((record["arm"], *point))}
        for (point, _), record in zip(runs, records, strict=True)
    ]
