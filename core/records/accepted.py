"""List of accepted records, and comparisons of newer records with them."""

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


def accepted_digests(slug: str, kind: str = "runs") -> dict[str, str]:
    """Return the digest of the accepted record of each `scale/arm/seed`; empty without a list.

    Args:
        slug: The paper.
        kind: `runs`, or `claims` for the accepted verdicts of each scale.

    Raises:
        DamagedFile: the file is not a list of accepted records.
    """
    path = results() / slug / ACCEPTED
    if not path.is_file():
        return {}
    try:
        lists = json.loads(path.read_text(encoding="utf-8"))
        return dict(lists["runs"] if kind == "runs" else lists.get(kind, {}))
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedFile(f"{path}: not a list of records ({error}); restore it") from error


def list_problems(slug: str, records: Sequence[Record]) -> Iterator[str]:
    """Yield a line for each accepted record that is absent or misnamed, and for runs not accepted.

    An arm with a single seed needs no accepted runs: its runs are no baseline of anything.
    """
    digests, runs = accepted_digests(slug), runs_of(standard(records))
    yield from absent_records(slug, records)
    arms = Counter((run["scale"], run["arm"]) for run in runs)
    seeds = [run for run in runs if arms[run["scale"], run["arm"]] > 1]
    if lacking := [run_name(run) for run in seeds if run_name(run) not in digests]:
        state = "not in" if digests else "there is no"
        yield (
            f"{', '.join(lacking)}: {state} {slug}/{ACCEPTED}: restore it, or take them as the "
            f"ones to beat with `repro publish {slug} --accept`"
        )


def absent_records(slug: str, records: Sequence[Record]) -> Iterator[str]:
    """Yield a line for each accepted run or record of verdicts that is absent or misnamed."""
    names = {run["digest"]: run_name(run) for run in runs_of(records)}
    for name, digest in accepted_digests(slug).items():
        if names.get(digest) != name:
            state = f"is {names[digest]}" if digest in names else "is not there"
            yield f"{slug}/{ACCEPTED}: the run of {name}, {digest}, {state}; restore it"
    claims = {r["digest"] for r in records if r["kind"] == "claims"}
    for scale, digest in accepted_digests(slug, "claims").items():
        if digest not in claims:
            yield f"{slug}/{ACCEPTED}: the verdicts at {scale}, {digest}, are not there; restore it"


def accept(slug: str, records: list[Record]) -> int:
    """Write the list of accepted records, unless there are no runs; return the number of runs."""
    runs = {run_name(run): run["digest"] for run in runs_of(records)}
    claims = {r["scale"]: r["digest"] for r in records if r["kind"] == "claims"}
    if runs:
        text = json.dumps({"runs": runs, "claims": claims}, indent=1, sort_keys=True)
        write_atomic(results() / slug / ACCEPTED, text + "\n")
    return len(runs)


def drops(slug: str, records: list[Record]) -> Iterator[str]:
    """Yield a line for each significant loss against accepted runs, and each reversed verdict."""
    digests, folder = accepted_digests(slug), results() / slug
    differences: dict[str, list[Difference]] = {}
    for run in runs_of(records):
        digest = digests.get(run_name(run), run["digest"])
        path = folder / f"{digest}.json"
        if digest != run["digest"] and path.is_file():  # else `list_problems` says so
            (before,) = runs_of([read_record(path)])
            differences.setdefault(run["scale"], []).extend(suite_differences(before, run))
    for scale, at_scale in differences.items():
        for drop in find_drops(at_scale):
            yield (
                f"{scale}, {drop.scope}: {drop.delta:+.1f} points against the accepted records, "
                f"p {drop.p:.2g}{drop.largest_loss and f'; most in arm {drop.largest_loss}'}"
            )
    for scale, digest in accepted_digests(slug, "claims").items():
        before = read_record(folder / f"{digest}.json")
        for claims in claims_of(records, scale):
            yield from verdict_reversals(before, claims)


def verdict_reversals(before: Record, after: ClaimsRecord) -> Iterator[str]:
    """Yield a line for each claim that was held and is refuted, or was refuted and is held."""
    verdicts = {row["id"]: row["verdict"] for row in before["verdicts"]}
    for row in after["verdicts"]:
        if {verdicts.get(row["id"]), row["verdict"]} == {"held", "refuted"}:
            yield f"{after['scale']}, {row['id']}: was {verdicts[row['id']]}, is {row['verdict']}"


def suite_differences(before: RunRecord, after: RunRecord) -> Iterator[Difference]:
    """Yield the change in accuracy on each suite that both runs answered.

    Suites with another mode, number of problems or set of problems are left out.
    """
    old = {row["benchmark"]: row for row in before["scores"]}
    for row in after["scores"]:
        suite = row["benchmark"]
        if suite not in old or (old[suite]["mode"], old[suite]["n"]) != (row["mode"], row["n"]):
            continue
        old_correct, new_correct = (
            correct_by_problem(read_run_samples(run, digest))
            for run, digest in ((before, old[suite]["digest"]), (after, row["digest"]))
        )
        if old_correct.keys() != new_correct.keys():
            continue  # other problems
        gains = [mean(new_correct[name]) - mean(old_correct[name]) for name in old_correct]
        yield Difference(
            arm=after["arm"],
            seed=after["seed"],
            suite=suite,
            delta=100 * mean(gains),
            changed=mean(gain != 0 for gain in gains),
            n=len(gains),
        )


def run_name(record: RunRecord) -> str:
    """Return the name of a run in the list of accepted records: `scale/arm/seed`."""
    return f"{record['scale']}/{record['arm']}/{record['seed']}"
