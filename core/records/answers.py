"""Names of records: digests of what was asked and answered, without measured numbers.

Curves, weights and versions are no part of a name. They differ between processors, which sum in
other orders, while sampled tokens, graded answers and verdicts do not.
"""

from typing import TypeAlias, cast

from core.claims.needs import PREPARED
from core.models.builds import TRAINED_HERE
from core.records.agreement import agree
from core.settings.canonical import SHORT, digest_of
from eval.json_lines import JsonFields

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
Fields: TypeAlias = JsonFields  # of a record of any kind, or of a row in it


def name_of(record: Fields) -> str:
    """Return the name of a record: a digest of its answers, or of all its content in schema 1."""
    return digest_of(named(record))[:SHORT]


def named(record: Fields) -> dict[str, object]:
    """Return the fields of a record whose digest is its name."""
    if record["schema"] == 1:
        return said(record)
    return answers(record) | select_fields(record, ("schema", "supersedes"))


def content_of(record: Fields) -> str:
    """Return a digest of all fields of a record except its circumstances."""
    return digest_of(said(record))


def said(record: Fields) -> dict[str, object]:
    """Return all fields of a record except its circumstances."""
    return without_fields(record, CIRCUMSTANCES)


def seal_of(record: Fields) -> str:
    """Return the digest of all content of a stored record: `content`, or its name in schema 1."""
    return record.get("content", record["digest"])


def is_unchanged(before: Fields, after: Fields) -> bool:
    """Return whether two records have the same answers and nearly the same numbers.

    Numbers that only one of the records has are not compared.
    """
    old, new = measured_numbers(before), measured_numbers(after)
    shared = old.keys() & new.keys()
    close = all(agree(old[name], new[name], NEAR) for name in shared)
    return close and answers(before) == answers(after)


def answers(record: Fields) -> dict[str, object]:
    """Return the fields of a record that say what was asked and what was answered."""
    fields = without_fields(record, (*CIRCUMSTANCES, *ANY))
    if record["kind"] == "claims":
        return fields | {
            name: without_numbers(value) for name, value in select_fields(record, VERDICTS).items()
        }
    if record["kind"] == "tuning":
        return fields | {"trials": [select_fields(row, TRIED) for row in record["trials"]]}
    if record["kind"] == "simulations":
        return fields | {
            "simulations": [without_fields(row, ("values",)) for row in record["simulations"]]
        }
    if record["kind"] == "run":
        return without_fields(fields, FOLLOWS) | run_answers(record)
    return fields


def run_answers(record: Fields) -> dict[str, object]:
    """Return the fields of a run that hold answers, without what else is in them."""
    prepared = record["start_model"].startswith(PREPARED)
    made_here = prepared or record["model"].get("build") in TRAINED_HERE
    return {
        "model": without_fields(record["model"], ("digest",) if made_here else ()),
        "train": without_fields(with_texts(record["train"]), COMPUTED),
        "start_scores": [select_fields(with_texts(row), ROW) for row in record["start_scores"]],
        "scores": [select_fields(with_texts(row), ROW) for row in record["scores"]],
        "sampling": {suite: curves_at_k(row) for suite, row in record["sampling"].items()},
    }


def measured_numbers(record: Fields) -> dict[str, object]:
    """Return the numbers of a record that are no part of its answers, such as curves."""
    if record["kind"] == "claims":
        rows = [(name, row) for name in VERDICTS for row in record.get(name, [])]
        return {f"{name} {row['id']}": effect_numbers(row) for name, row in rows}
    if record["kind"] == "tuning":
        return {f"{row['factor']}": row["curve"] for row in record["trials"]}
    if record["kind"] == "simulations":
        return {"values": [row["values"] for row in record["simulations"]]}
    if record["kind"] != "run":
        return {}
    rows = [*record["start_scores"], *record["scores"]]
    return {
        **record["curves"],
        **select_fields(record, ("forms",)),
        "scores": [select_fields(row, MEASURED) for row in rows],
    }


def select_fields(row: Fields, names: tuple[str, ...]) -> dict[str, object]:
    """Return the fields of a row that have one of these names."""
    return {name: row[name] for name in names if name in row}


def without_fields(row: Fields, names: tuple[str, ...]) -> dict[str, object]:
    """Return the fields of a row that have none of these names."""
    return {name: value for name, value in row.items() if name not in names}


def curves_at_k(row: Fields) -> dict[str, object]:
    """Return what was asked and answered at every K, before and after training."""
    return {time: select_fields(with_texts(row[time]), ROW) for time in ("before", "after")}


def with_texts(row: Fields) -> dict[str, object]:
    """Return a score row or a training with the digests of whole answers.

    The field `texts`, present where texts are not stored, replaces `digest` or `held_out`.
    """
    field = "held_out" if "held_out" in row else "digest"
    texts = {field: row["texts"]} if "texts" in row else {}
    return without_fields(row, ("texts",)) | texts


def without_numbers(value: object) -> object:
    """Return a verdict with None in place of every measured number."""
    if isinstance(value, dict):
        rows = cast(dict[str, object], value)
        return {k: v if k in COUNTED else without_numbers(v) for k, v in rows.items()}
    if isinstance(value, list):
        return [without_numbers(item) for item in cast(list[object], value)]
    return None if isinstance(value, int | float) and not isinstance(value, bool) else value


def effect_numbers(row: Fields) -> dict[str, object]:
    """Return the effect, interval, p-value, power, both sides' values and gates' of a verdict."""
    sides = [row[side]["values"] for side in ("left", "right") if row[side]]
    gates = [gate["values"] for gate in row.get("gates", ())]
    numbers = select_fields(row, ("effect", "low", "high", "p", "power"))
    return {**numbers, "sides": sides, "gates": gates}
