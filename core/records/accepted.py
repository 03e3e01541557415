"""Which records were last accepted, and whether newer ones are significantly worse."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import mean

from core.records.files import write_atomic
from core.records.places import ACCEPTED, results
from core.records.record import read_record, standard
from core.records.run_samples import read_run_samples
from core.records.schema import ClaimsRecord, Record, RunRecord, claims_of, runs_of
from eval.errors import DamagedFile
from eval.stats.comparisons import correct_by_problem
from eval.stats.regressions import Difference, find_drops


def accepted(slug: str, kind: str = "runs") -> dict[str, str]:
    """The accepted record of each `scale/arm/seed`; of `claims`, that of each scale."""
    path = results() / slug / ACCEPTED
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return dict(found["runs"] if kind == "runs" else found.get(kind, {}))
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedFile(f"{path}: not a list of records ({error}); restore it") from error


def list_problems(slug: str, records: Sequence[Record]) -> Iterator[str]:
    """Runs that the list of accepted ones lacks or names wrongly, and that there is no list.

    An arm with a single seed needs none: its runs are no baseline of anything.
    """
    known, shown = accepted(slug), runs_of(standard(records))
    there = {run["digest"]: run_name(run) for run in runs_of(records)}
    for name, digest in known.items():
        if there.get(digest) != name:
            said = f"is {there[digest]}" if digest in there else "is not there"
            yield f"{slug}/{ACCEPTED}: the run of {name}, {digest}, {said}; restore it"
    claims = {r["digest"] for r in records if r["kind"] == "claims"}
    for scale, digest in accepted(slug, "claims").items():
        if digest not in claims:
            yield f"{slug}/{ACCEPTED}: the verdicts at {scale}, {digest}, are not there; restore it"
    arms = Counter((run["scale"], run["arm"]) for run in shown)
    seeds = [run for run in shown if arms[run["scale"], run["arm"]] > 1]
    if lacking := [run_name(run) for run in seeds if run_name(run) not in known]:
        state = "not in" if known else "there is no"
        yield (
            f"{', '.join(lacking)}: {state} {slug}/{ACCEPTED}: restore it, or take them as the "
            f"ones to beat with `repro publish {slug} --accept`"
        )


def accept(slug: str, records: list[Record]) -> int:
    """Take the newest runs and verdicts as those to compare later ones with; how many runs."""
    runs = {run_name(run): run["digest"] for run in runs_of(records)}
    claims = {r["scale"]: r["digest"] for r in records if r["kind"] == "claims"}
    if runs:
        text = json.dumps({"runs": runs, "claims": claims}, indent=1, sort_keys=True)
        write_atomic(results() / slug / ACCEPTED, text + "\n")
    return len(runs)


def drops(slug: str, records: list[Record]) -> Iterator[str]:
    """What newer runs lost against the accepted ones, and verdicts that became their contrary."""
    known, folder = accepted(slug), results() / slug
    newer = [run for run in runs_of(records) if known.get(run_name(run), "") != run["digest"]]
    differences: dict[str, list[Difference]] = {}
    for run in newer:
        path = folder / f"{known.get(run_name(run), '')}.json"
        if run_name(run) in known and path.is_file():  # else `list_problems` says so
            (before,) = runs_of([read_record(path)])
            differences.setdefault(run["scale"], []).extend(compared(before, run))
    for scale, found in differences.items():
        for drop in find_drops(found):
            yield (
                f"{scale}, {drop.scope}: {drop.delta:+.1f} points against the accepted records, "
                f"p {drop.p:.2g}{drop.largest_loss and f'; most in arm {drop.largest_loss}'}"
            )
    for scale, digest in accepted(slug, "claims").items():
        before = read_record(folder / f"{digest}.json")
        for claims in claims_of(records, scale):
            yield from turned(before, claims)


def turned(before: Record, after: ClaimsRecord) -> Iterator[str]:
    """Claims that were held and are refuted, or the other way round."""
    words = {row["id"]: row["verdict"] for row in before["verdicts"]}
    for row in after["verdicts"]:
        if {words.get(row["id"]), row["verdict"]} == {"held", "refuted"}:
            yield f"{after['scale']}, {row['id']}: was {words[row['id']]}, is {row['verdict']}"


def compared(before: RunRecord, after: RunRecord) -> Iterator[Difference]:
    """How a run differs from the accepted one on every suite that both answered."""
    old = {row["benchmark"]: row for row in before["scores"]}
    for row in after["scores"]:
        suite = row["benchmark"]
        if suite not in old or (old[suite]["mode"], old[suite]["n"]) != (row["mode"], row["n"]):
            continue
        one, other = (
            correct_by_problem(read_run_samples(run, digest))
            for run, digest in ((before, old[suite]["digest"]), (after, row["digest"]))
        )
        if one.keys() != other.keys():
            continue  # other problems
        gains = [mean(other[name]) - mean(one[name]) for name in one]
        yield Difference(
            arm=after["arm"],
            seed=after["seed"],
            suite=suite,
            delta=100 * mean(gains),
            changed=mean(gain != 0 for gain in gains),
            n=len(gains),
        )


def run_name(record: RunRecord) -> str:
    """What a run is called in the list: scale, arm and seed."""
    return f"{record['scale']}/{record['arm']}/{record['seed']}"
