"""Which records were last accepted, and whether a newer one is significantly worse."""

import json
from collections.abc import Iterator

from core.run.files import write_atomic
from core.run.places import ACCEPTED, results, samples_file
from core.run.records.record import read_record
from core.run.records.schema import Record, RunRecord, runs_of
from eval.errors import DamagedFile
from eval.samples.store import Sample, read_samples
from eval.stats.comparisons import compare_scores, holm

LEVEL = 0.05


def accepted(slug: str) -> dict[str, str]:
    """The accepted record of each `scale/arm/seed`."""
    path = results() / slug / ACCEPTED
    if not path.is_file():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8"))["runs"])
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedFile(f"{path}: not a list of records ({error}); restore it") from error


def accept(slug: str, records: list[Record]) -> int:
    """Take the newest runs as the ones that later ones are compared with; returns how many."""
    runs = {run_name(run): run["digest"] for run in runs_of(records)}
    if runs:
        text = json.dumps({"runs": runs}, indent=1, sort_keys=True)
        write_atomic(results() / slug / ACCEPTED, text + "\n")
    return len(runs)


def drops(slug: str, records: list[Record]) -> Iterator[str]:
    """Suites on which a newer run is worse than the accepted one.

    Each is a two-sided test on the same problems at 5 %, Holm-corrected over all that are made.
    """
    known = accepted(slug)
    newer = [run for run in runs_of(records) if known.get(run_name(run), "") != run["digest"]]
    compared: list[tuple[str, float, float]] = []
    for record in newer:
        if run_name(record) not in known:
            continue
        path = results() / slug / f"{known[run_name(record)]}.json"
        if not path.is_file():
            yield f"{run_name(record)}: the accepted record {path.name} is gone; restore it"
            continue
        (before,) = runs_of([read_record(path)])
        for suite, old, new in shared_suites(before, record):
            found = compare_scores(old, new)
            compared.append((f"{run_name(record)}, {suite}", found.delta, found.p))
    for (name, delta, _), p in zip(compared, holm([p for _, _, p in compared]), strict=True):
        if delta < 0 and p < LEVEL:
            yield f"{name}: {delta:+.1f} points against the accepted record, p {p:.2g}"


def shared_suites(
    before: RunRecord, after: RunRecord
) -> Iterator[tuple[str, list[Sample], list[Sample]]]:
    """The samples of every suite that both records scored."""
    old = {row["benchmark"]: row["digest"] for row in before["scores"]}
    for row in after["scores"]:
        if row["benchmark"] in old:
            yield (
                row["benchmark"],
                list(read_samples(samples_file(old[row["benchmark"]]))),
                list(read_samples(samples_file(row["digest"]))),
            )


def run_name(record: RunRecord) -> str:
    """What a run is called in the list: scale, arm and seed."""
    return f"{record['scale']}/{record['arm']}/{record['seed']}"
