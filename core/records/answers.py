"""What a record is named by: what was asked and what was answered, not to which last digit.

Curves, weights and versions stand beside the answers. They differ between processors, whose sums
are taken in other orders, where no sampled token, no graded answer and no verdict does.
"""

from collections.abc import Mapping
from typing import Any, cast

from core.paper.page import PREPARED
from core.records.agreement import agree
from core.settings.canonical import SHORT, digest_of

# Not part of what a record says: when and how fast it came to be, and its own names.
CIRCUMSTANCES = ("created", "digest", "timings", "content")
ANY = ("schema", "supersedes", "versions")  # what two records that say the same may have of each
NEAR = 1e-4  # how far curves and effects may lie apart, relative or below 1 absolute
ROW = ("benchmark", "mirrors", "mode", "metric", "n", "samples", "k", "draw", "digest")
MEASURED = ("value", "low", "high")
VERDICTS = ("verdicts", "own_rates")  # of a record of claims
FOLLOWS = ("curves", "forms")  # of a run: computed here, or counted in its samples
TRIED = ("factor", "learning_rate", "steps")  # of a trial
COUNTED = ("seeds", "margin")  # numbers of a verdict that were asked for, not answered
COMPUTED = ("weights", "plan", "kernels")  # of a training, beside its answers
Fields = Mapping[str, Any]  # Any: JSON of several types


def name_of(record: Fields) -> str:
    """The name of a record: a digest of what it answers; of all that it says in schema 1."""
    if record["schema"] == 1:
        return content_of(record)[:SHORT]
    named = {name: record[name] for name in ("schema", "supersedes")}
    return digest_of(answers(record) | named)[:SHORT]


def content_of(record: Fields) -> str:
    """A digest of all that a record says but its circumstances."""
    return digest_of(said(record))


def said(record: Fields) -> dict[str, Any]:
    """All that a record says but its circumstances."""
    return {k: v for k, v in record.items() if k not in CIRCUMSTANCES}


def seal_of(record: Fields) -> str:
    """What changes with anything that a record that was read says."""
    return record.get("content", record["digest"])


def unchanged(before: Fields, after: Fields) -> bool:
    """Whether a record says what an older one says: the same answers, nearly the same numbers.

    A number that only one of them has is no difference.
    """
    old, new = beside(before), beside(after)
    shared = old.keys() & new.keys()
    close = all(agree(old[name], new[name], NEAR) for name in shared)
    return close and answers(before) == answers(after)


def answers(record: Fields) -> dict[str, Any]:
    """What was asked and what was answered."""
    said = {k: v for k, v in record.items() if k not in (*CIRCUMSTANCES, *ANY)}
    if record["kind"] == "claims":
        return said | {name: words(record[name]) for name in VERDICTS if name in record}
    if record["kind"] == "tuning":
        return said | {"trials": [part(row, TRIED) for row in record["trials"]]}
    if record["kind"] != "run":
        return said
    made_here = record["start_model"].startswith(PREPARED)
    model = {k: v for k, v in record["model"].items() if not (made_here and k == "digest")}
    return {k: v for k, v in said.items() if k not in FOLLOWS} | {
        "model": model,
        "train": {k: v for k, v in with_texts(record["train"]).items() if k not in COMPUTED},
        "start_scores": [part(with_texts(row), ROW) for row in record["start_scores"]],
        "scores": [part(with_texts(row), ROW) for row in record["scores"]],
        "sampling": {suite: at_k(row) for suite, row in record["sampling"].items()},
    }


def beside(record: Fields) -> dict[str, Any]:
    """The numbers of a record that follow from its answers, or belong to none."""
    if record["kind"] == "claims":
        rows = [(name, row) for name in VERDICTS for row in record.get(name, [])]
        return {f"{name} {row['id']}": numbers(row) for name, row in rows}
    if record["kind"] == "tuning":
        return {f"{row['factor']}": row["curve"] for row in record["trials"]}
    if record["kind"] != "run":
        return {}
    rows = [*record["start_scores"], *record["scores"]]
    return {
        **record["curves"],
        **part(record, ("forms",)),
        "scores": [part(row, MEASURED) for row in rows],
    }


def part(row: Fields, names: tuple[str, ...]) -> dict[str, Any]:
    """Some fields of a row."""
    return {name: row[name] for name in names if name in row}


def at_k(row: Fields) -> dict[str, Any]:
    """What was asked and answered at every K, before and after."""
    return {when: part(with_texts(row[when]), ROW) for when in ("before", "after")}


def with_texts(row: Fields) -> dict[str, Any]:
    """A row, or a training, by the digests of whole answers: `texts` where those are not stored."""
    named = "held_out" if "held_out" in row else "digest"
    return {k: v for k, v in row.items() if k != "texts"} | (
        {named: row["texts"]} if "texts" in row else {}
    )


def words(value: Any) -> Any:  # Any: JSON of several types
    """A verdict without the numbers that were measured for it."""
    if isinstance(value, dict):
        rows = cast(dict[str, Any], value)
        return {k: v if k in COUNTED else words(v) for k, v in rows.items()}
    if isinstance(value, list):
        return [words(item) for item in cast(list[Any], value)]
    return None if isinstance(value, int | float) and not isinstance(value, bool) else value


def numbers(row: Fields) -> dict[str, Any]:
    """The numbers of a verdict: its effect with interval and p, and the values of both sides."""
    sides = [row[side]["values"] for side in ("left", "right") if row[side]]
    return {**part(row, ("effect", "low", "high", "p")), "sides": sides}
