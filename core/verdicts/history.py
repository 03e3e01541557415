"""Checks that no published record, verdict or file of samples is lost without notice."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from core.records.places import (
    ACCEPTED,
    EARLIER,
    SAMPLES,
    earlier_files,
    results,
    start_samples_file,
)
from core.records.record import read_record, same_question
from core.records.schema import Record, place_of, runs_of
from core.verdicts.plan_digests import changed_plans
from core.verdicts.regrade import Regrader
from eval.errors import ReproError

CHANGES = "CHANGES.md"  # in results/; where there is none, nothing was published
ROOMS = ("bench", "pocket", "profile")  # folders of records that belong to no paper
SAMPLES_DIGEST = re.compile("[0-9a-f]{64}")


def kept_problems(slug: str, records: Sequence[Record], regrader: Regrader) -> Iterator[str]:
    """Yield a line for each file or verdict of a paper's folder that is lost or unaccounted for.

    These are unreadable earlier records, missing superseded ones, damaged samples, changed verdicts
    that no entry of results/CHANGES.md names, changed plans of claims, and files that nothing
    refers to.

    Args:
        slug: of the paper, or the name of another folder of records.
        records: all records of the folder but the earlier ones.
        regrader: reads files of samples.
    """
    earlier: list[Record] = []
    for path in earlier_files(slug):
        try:
            earlier.append(read_record(path))
        except ReproError as error:
            yield str(error)
    for run in runs_of(earlier):
        yield from regrader.find_damage(run)
    by_digest = {record["digest"]: record for record in (*earlier, *records)}
    yield from supersession_problems(by_digest)
    yield from unannounced_changes(by_digest.values(), by_digest)
    yield from changed_plans(by_digest.values(), is_announced)
    yield from unreferenced_files(slug, by_digest)


def supersession_problems(by_digest: Mapping[str, Record]) -> Iterator[str]:
    """Yield a line for each record that supersedes a missing one, or one of another question."""
    for record in by_digest.values():
        name = record["supersedes"]
        if name is None:
            continue
        if name not in by_digest:
            yield f"{place_of(record)} supersedes {name}, which is not there: restore it"
        elif not same_question(record, by_digest[name]):
            yield f"{place_of(record)} supersedes {name}, which answered another question"


def is_announced(record: Record, claim: str) -> bool:
    """Return whether an entry of the changes names a record of claims with a claim."""
    path = results() / CHANGES
    entries = path.read_text(encoding="utf-8").split("\n- ") if path.is_file() else []
    return any(record["digest"] in entry and claim in entry for entry in entries)


def unannounced_changes(records: Iterable[Record], known: Mapping[str, Record]) -> Iterator[str]:
    """Verdicts that a newer record changed, and no entry of the changes names with it."""
    if not (results() / CHANGES).is_file():
        return
    for record in records:
        before = known.get(record["supersedes"] or "")
        if record["kind"] != "claims" or before is None:
            continue
        verdicts = {row["id"]: row["verdict"] for row in before["verdicts"]}
        for row in record["verdicts"]:
            old, new = verdicts.get(row["id"], row["verdict"]), row["verdict"]
            if old != new and not is_announced(record, row["id"]):
                yield (
                    f"{place_of(record)}: {row['id']} was {old} and is {new}: name both, the claim "
                    f"and {record['digest']}, in an entry of results/{CHANGES}"
                )


def unreferenced_files(slug: str, by_digest: Mapping[str, Record]) -> Iterator[str]:
    """Yield a line for each file in a folder of records that belongs to no record.

    A JSON file counts as a record: reading refuses it if it is none.
    """
    for path in sorted((results() / slug).rglob("*")):
        in_folder = path.parent.name in (slug, EARLIER)
        belongs = in_folder and (path.name == ACCEPTED or path.stem in by_digest)
        if path.is_file() and not belongs and path.suffix != ".json":
            yield f"{path.relative_to(results())}: nothing refers to it"


def unknown_files(slugs: Sequence[str]) -> Iterator[str]:
    """Yield a line for each entry of results/ of no paper, and each file of samples of no record.

    Args:
        slugs: of all papers.
    """
    for path in sorted(results().glob("*")):
        if path.name not in {*slugs, *ROOMS, SAMPLES, CHANGES}:
            yield f"{path.name}: neither a paper's folder nor one of {', '.join((*ROOMS, SAMPLES))}"
    referenced = {
        start_samples_file(digest)
        for path in results().glob("**/*.json")
        for digest in SAMPLES_DIGEST.findall(path.read_text(encoding="utf-8", errors="replace"))
    }
    for path in sorted((results() / SAMPLES).glob("*")):
        if path not in referenced:
            yield f"{path.relative_to(results())}: no record refers to it"
