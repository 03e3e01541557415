"""That nothing published is lost: superseded records, changed verdicts, files without use."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from core.records.places import (
    ACCEPTED,
    EARLIER,
    SAMPLES,
    earlier_files,
    results,
    root,
    samples_file,
)
from core.records.record import read_record, same_question
from core.records.schema import Record, place_of, runs_of
from core.verdicts.regrade import Regrader
from eval.errors import ReproError

CHANGELOG = "CHANGELOG.md"  # that of a checkout; where there is none, nothing was published
ROOMS = ("bench", "pocket")  # folders of records that belong to no paper
SAMPLES_DIGEST = re.compile("[0-9a-f]{64}")


def kept_problems(slug: str, records: Sequence[Record], regrader: Regrader) -> Iterator[str]:
    """What is lost, changed without a word, or without use among the files of a folder."""
    earlier: list[Record] = []
    for path in earlier_files(slug):
        try:
            earlier.append(read_record(path))
        except ReproError as error:
            yield str(error)
    for run in runs_of(earlier):
        yield from regrader.damaged(run)
    known = {record["digest"]: record for record in (*earlier, *records)}
    yield from lost(known.values(), known)
    yield from unannounced(known.values(), known)
    yield from useless(slug, known)


def lost(records: Iterable[Record], known: Mapping[str, Record]) -> Iterator[str]:
    """Records that supersede one that is not there, or that answered another question."""
    for record in records:
        name = record["supersedes"]
        if name is None:
            continue
        if name not in known:
            yield f"{place_of(record)} supersedes {name}, which is not there: restore it"
        elif not same_question(record, known[name]):
            yield f"{place_of(record)} supersedes {name}, which answered another question"


def unannounced(records: Iterable[Record], known: Mapping[str, Record]) -> Iterator[str]:
    """Verdicts that a newer record changed, and no entry of the CHANGELOG names with it."""
    path = root() / CHANGELOG
    if not path.is_file():
        return
    entries = path.read_text(encoding="utf-8").split("\n- ")
    for record in records:
        before = known.get(record["supersedes"] or "")
        if record["kind"] != "claims" or before is None:
            continue
        words = {row["id"]: row["verdict"] for row in before["verdicts"]}
        for row in record["verdicts"]:
            old, new = words.get(row["id"], row["verdict"]), row["verdict"]
            said = any(record["digest"] in entry and row["id"] in entry for entry in entries)
            if old != new and not said:
                yield (
                    f"{place_of(record)}: {row['id']} was {old} and is {new}: name both, the claim "
                    f"and {record['digest']}, in an entry of {CHANGELOG}"
                )


def useless(slug: str, known: Mapping[str, Record]) -> Iterator[str]:
    """Files in a folder of records that are neither a record nor its picture."""
    for path in sorted((results() / slug).rglob("*")):
        place = path.parent.name in (slug, EARLIER)
        wanted = place and (path.name == ACCEPTED or path.stem in known)
        wanted |= path.suffix == ".json"  # it is read, and refused if it is no record
        if path.is_file() and not wanted:
            yield f"{path.relative_to(results())}: nothing refers to it"


def unknown_files(slugs: Sequence[str]) -> Iterator[str]:
    """Whatever lies in results/ and belongs to no paper, and samples that no record refers to."""
    for path in sorted(results().glob("*")):
        if path.name not in {*slugs, *ROOMS, SAMPLES}:
            yield f"{path.name}: neither a paper's folder nor one of {', '.join((*ROOMS, SAMPLES))}"
    named = {
        samples_file(digest)
        for path in results().glob("**/*.json")
        for digest in SAMPLES_DIGEST.findall(path.read_text(encoding="utf-8", errors="replace"))
    }
    for path in sorted((results() / SAMPLES).glob("*")):
        if path not in named:
            yield f"{path.relative_to(results())}: no record refers to it"
