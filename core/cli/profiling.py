"""`repro profile` and the hidden `repro probe`."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.cli.options import AsJson
from core.cli.output import print_columns, print_json, print_text, say_loading
from core.cli.run_options import Jobs
from core.records.places import from_here, record_file
from eval.errors import BadValue

if TYPE_CHECKING:  # slow to import
    from core.profiles.profiling import Profile
    from core.records.record import Record

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="ALGORITHM [name=value]",
        help="A paper, PAPER:ARM, FILE.py, FILE.py:Class or module:Class; settings on top of it.",
    ),
]


def probe(
    algorithm: Words,
    training: Annotated[str, typer.Option()],
    seed: Annotated[int, typer.Option(min=0)],
    factor: Annotated[float, typer.Option(help="Of the learning rate of the world.")] = 1.0,
    trial: Annotated[bool, typer.Option("--trial", help="Train alone, score nothing.")] = False,
) -> None:
    """Run one training of a profile with one seed."""
    from core.profiles.naming import find_algorithm
    from core.profiles.runs import chain_of, run_one
    from core.records.runs_lock import working_in_runs
    from core.spread.pool import die_with_parent

    die_with_parent()
    with working_in_runs():
        run_one(
            chain_of(find_algorithm(algorithm), training, seed, factor, trial=trial), trial=trial
        )


def profile(
    algorithm: Words,
    against: Annotated[str, typer.Option(help="The algorithm to compare with.")] = "grpo",
    seeds: Annotated[int, typer.Option(help="How many seeds, 3 to 16.")] = 8,
    only: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Some probes alone; default: all.")
    ] = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Show what an algorithm is good for: train it in small worlds that each ask one question."""
    say_loading()
    from core.profiles.profiling import find_probes, make_profile

    probes = find_probes(None if only is None else only.split(","))
    count = jobs or len(os.sched_getaffinity(0))
    outcome = make_profile(algorithm, probes, against=against, seeds=seeds, jobs=count)
    from core.pages.profiles import write_profile

    page = write_profile(outcome.record, outcome.base)
    if as_json:
        return print_json({**profile_data(outcome), "page": str(page)})
    print_profile(outcome)
    path = record_file(outcome.record["paper"], outcome.record["digest"])
    print_text(f"record: {from_here(path)}")
    return print_text(f"page: {from_here(page)}")


def print_compared(
    records: "Sequence[Record]", figure: Path | None, samples: int, *, as_json: bool
) -> None:
    """Print the scores of the first of some recorded profiles against the second.

    Args:
        records: Two or three profiles.
        figure: Where the scores of all of them against plain GRPO are drawn, if anywhere.
        samples: The number of answers that are asked for, which profiles do not have.
        as_json: Whether to print JSON.

    Raises:
        BadValue: samples are asked for, a third profile is not drawn, or see `write_figure`.
    """
    if samples:
        raise BadValue("--samples is for runs: leave it out to compare profiles")
    if len(records) > 2 and figure is None:
        raise BadValue(f"{records[2]['arm']}: a third profile is drawn only, add --figure FILE.svg")
    from core.pages.profiles import write_figure
    from core.profiles.profiling import compare

    if figure is not None:
        write_figure(figure, records)
    outcome = compare(records[0], records[1])
    if as_json:
        return print_json({**profile_data(outcome), "figure": figure and str(figure)})
    print_profile(outcome)
    return print_text(f"figure: {from_here(figure)}") if figure is not None else None


def print_profile(outcome: "Profile") -> None:
    """Print the table of probes and the aggregates."""
    from core.pages.profiles import probe_cells

    head = ("probe", outcome.record["arm"], outcome.base["arm"], "better by", "score", "")
    print_columns(head, [probe_cells(row) for row in outcome.rows])
    for line in aggregate_lines(outcome):
        print_text(line)


def aggregate_lines(outcome: "Profile") -> list[str]:
    """Return the aggregates in words."""
    if outcome.aggregates is None:
        return []
    from core.pages.profiles import with_interval

    aggregates, base = outcome.aggregates, outcome.base["arm"]
    return [
        "",
        f"interquartile mean of the scores (0 is {base}, 1 the mechanism of a probe): "
        f"{with_interval(aggregates.mean)}",
        f"probability to be better than {base} on a drawn probe and seed: "
        f"{with_interval(aggregates.improvement)}",
    ]


def profile_data(outcome: "Profile") -> dict[str, object]:
    """Return a profile as JSON."""
    return {
        "algorithm": outcome.record["arm"],
        "against": outcome.base["arm"],
        "record": outcome.record["digest"],
        "probes": [
            {
                "name": row.probe.name,
                "value": row.value,
                "against": row.base,
                "difference": row.difference and vars(row.difference),
                "score": row.score and vars(row.score),
                "reason": row.reason,
            }
            for row in outcome.rows
        ],
        "aggregates": outcome.aggregates
        and {name: vars(value) for name, value in vars(outcome.aggregates).items()},
    }
