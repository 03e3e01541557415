"""Records of what fixed interventions do for the start policy, held against what is shipped."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from core.models.builds import BUILDS
from core.records.agreement import agree
from core.records.places import Shelf
from core.records.record import Record, current, read_records, standard
from core.records.schema import ControlsRecord, RunRecord, SuiteControls, place_of
from core.stages.sources import version_here
from core.verdicts.verdict_records import at_other_settings

CONTROLS, POCKET = "controls", "pocket"  # the kind, and the folder of the pocket world's records
START = "pocket-instruct"  # the start policy, in several builds
FREE = "free"  # the name of no intervention


def shown_records(slug: str, shelf: Shelf = Shelf.HERE) -> list[Record]:
    """Return what the tables and reports of a paper are made of: its records and the controls."""
    return shown_among(read_records(slug, shelf), read_records(POCKET, shelf))


def shown_among(records: Sequence[Record], pocket: Iterable[Record]) -> list[Record]:
    """What is shown of a paper's records and of those of the pocket world."""
    return [*standard(records), *at_other_settings(records), *controls_in(pocket)]


def controls_in(records: Iterable[Record]) -> list[Record]:
    """The controls among records of several kinds, the newest of each model."""
    found = [record for record in current(records) if record["kind"] == CONTROLS]
    return list({control["model"]["digest"]: control for control in found}.values())


def controls_of(records: Iterable[Record], runs: Iterable[RunRecord]) -> list[ControlsRecord]:
    """The controls of the models that runs began with, by the name of the model."""
    began = {run["model"]["digest"] for run in runs}
    found = [control for control in controls_in(records) if control["model"]["digest"] in began]
    found.sort(key=lambda control: control["model"]["name"])
    return cast(list[ControlsRecord], found)


def controls_problems(records: Iterable[Record]) -> Iterator[str]:
    """Shipped builds without controls, and controls that say otherwise than the pocket record."""
    kept = list(records)
    worlds = [record for record in current(kept) if record["kind"] == POCKET]
    if not worlds:
        return  # what is not recorded as built needs no controls
    known = {control["model"]["digest"]: control for control in controls_in(kept)}
    for name in BUILDS[START]:
        control = known.get(version_here(name))
        if control is None:
            said = f"of {name} as it is shipped, whose files have the digest {version_here(name)}"
            yield f"{POCKET}: no controls {said}: run `make controls`"
            continue
        for line in otherwise(control, worlds[-1], name):
            yield f"{place_of(control)}: {line}"


def otherwise(control: Record, world: Record, name: str) -> Iterator[str]:
    """What the controls of a build say that the record of the pocket world does not."""
    again = ": run `make controls`"
    if control["data"] != world["data"]:
        yield f"its problems are of {control['data']}, the world's are {world['data']}{again}"
    rows = [row for row in world["models"][name]["scores"] if row["metric"] == "top1"]
    if (found := sorted(control["suites"])) != (expected := sorted(r["benchmark"] for r in rows)):
        yield f"suites are {found}, expected {expected}{again}"
        return
    for row in rows:
        suite = row["benchmark"]
        for line in suite_problems(control["suites"][suite], row):
            yield f"{suite}: {line}{again}"


def suite_problems(found: SuiteControls, row: Mapping[str, Any]) -> Iterator[str]:  # Any: a score
    """A start that was scored otherwise, or an intervention that is not the best of those tried."""
    if not agree([found["start"], found["n"]], [row["value"], row["n"]]):
        said = f"start is {found['start']} % of {found['n']}"
        yield f"{said}, the build was scored {row['value']} % of {row['n']}"
    best = best_of(found["valid"])
    if found["valid"].get(found["best"], 0.0) < found["valid"][best]:
        yield f"best is {found['best']!r}, the shares on the valid split say {best!r}"


def best_of(valid: Mapping[str, float]) -> str:
    """The intervention with the largest share of right answers, the first of equal ones."""
    return max((name for name in valid if name != FREE), key=lambda name: valid[name])
