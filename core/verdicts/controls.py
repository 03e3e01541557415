"""Records of the controls of shipped start policies, and whether they match the shipped files.

A control measures what fixed interventions, such as a prompt that asks for a program, change in
the accuracy of a start policy.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from core.models.builds import BUILDS
from core.records.agreement import agree
from core.records.places import Shelf
from core.records.record import Record, current, read_records, standard
from core.records.schema import ControlsRecord, RunRecord, ScoreRow, SuiteControls, place_of
from core.stages.sources import version_here
from core.verdicts.verdict_records import at_other_settings

CONTROLS, POCKET = "controls", "pocket"  # the kind, and the folder of the pocket world's records
START = "pocket-instruct"  # the start policy, in several builds
FREE = "free"  # the name of no intervention
REMEDY = ": run `make controls`"


def shown_records(slug: str, shelf: Shelf = Shelf.HERE) -> list[Record]:
    """Return what the tables and reports of a paper are made of: its records and the controls."""
    return shown_among(read_records(slug, shelf), read_records(POCKET, shelf))


def shown_among(records: Sequence[Record], pocket: Iterable[Record]) -> list[Record]:
    """Return the records that pages show.

    Args:
        records: all records of a paper.
        pocket: all records of the pocket world, of which the controls are shown.
    """
    return [*standard(records), *at_other_settings(records), *controls_in(pocket)]


def controls_in(records: Iterable[Record]) -> list[Record]:
    """Return the newest control of each model, from records of any kinds."""
    controls = [record for record in current(records) if record["kind"] == CONTROLS]
    return list({control["model"]["digest"]: control for control in controls}.values())


def controls_of(records: Iterable[Record], runs: Iterable[RunRecord]) -> list[ControlsRecord]:
    """Return the controls of the models that these runs began with, sorted by the model's name."""
    start_models = {run["model"]["digest"] for run in runs}
    controls = [c for c in controls_in(records) if c["model"]["digest"] in start_models]
    controls.sort(key=lambda control: control["model"]["name"])
    return cast(list[ControlsRecord], controls)


def controls_problems(records: Iterable[Record]) -> Iterator[str]:
    """Yield a line for each shipped build without controls, and for each control that is wrong.

    Args:
        records: those of the pocket world's folder.
    """
    pocket = list(records)
    worlds = [record for record in current(pocket) if record["kind"] == POCKET]
    if not worlds:
        return  # a world that is not recorded as built needs no controls
    controls = {control["model"]["digest"]: control for control in controls_in(pocket)}
    for name in BUILDS[START]:
        control = controls.get(version_here(name))
        if control is None:
            build = f"{name} as it is shipped, whose files have the digest {version_here(name)}"
            yield f"{POCKET}: no controls of {build}{REMEDY}"
            continue
        for line in control_problems(control, worlds[-1], name):
            yield f"{place_of(control)}: {line}{REMEDY}"


def control_problems(control: Record, world: Record, build: str) -> Iterator[str]:
    """Yield how the control of a build differs from the record of the pocket world."""
    if control["data"] != world["data"]:
        yield f"its problems are of {control['data']}, the world's are {world['data']}"
    rows = [row for row in world["models"][build]["scores"] if row["metric"] == "top1"]
    controlled, expected = sorted(control["suites"]), sorted(row["benchmark"] for row in rows)
    if controlled != expected:
        yield f"suites are {controlled}, expected {expected}"
        return
    for row in rows:
        suite = row["benchmark"]
        for line in suite_problems(control["suites"][suite], row):
            yield f"{suite}: {line}"


def suite_problems(control: SuiteControls, row: ScoreRow) -> Iterator[str]:
    """Yield a line if the start score differs from the build's, and one if `best` is not the best.

    Args:
        control: the controls of one suite.
        row: the greedy score of the build on that suite, from the record of the pocket world.
    """
    if not agree([control["start"], control["n"]], [row["value"], row["n"]]):
        yield (
            f"start is {control['start']} % of {control['n']}, the build was scored "
            f"{row['value']} % of {row['n']}"
        )
    best = best_of(control["valid"])
    if control["valid"].get(control["best"], 0.0) < control["valid"][best]:
        yield f"best is {control['best']!r}, the shares on the valid split give {best!r}"


def best_of(valid: Mapping[str, float]) -> str:
    """Return the intervention with the largest share of right answers, the first of equals.

    Raises:
        ValueError: there is no intervention but FREE.
    """
    return max((name for name in valid if name != FREE), key=lambda name: valid[name])
