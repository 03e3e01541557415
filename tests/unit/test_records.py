"""Records: one name for one content, never changed, refused when damaged."""

import json
import os

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.records.answers import name_of
from core.records.places import record_files
from core.records.record import (
    current,
    new_record,
    read_record,
    read_records,
    standard,
    validate,
    write_record,
)
from core.records.record_text import COMMON, curve_tables, parse_record, record_text
from core.records.schema import KINDS, ScoreRow
from core.records.verdict_row import LATER_FIELDS, VerdictRow
from core.settings.canonical import (
    canonical_number,
    canonical_text,
    digest_of,
    has_digest,
    line_of,
)
from core.verdicts.verdict_rows import NO_NUMBERS
from eval.errors import BadValue, DamagedFile


@pytest.fixture(autouse=True)
def _root(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))


def cells(value=82.9, **changes):
    content = {"paper": "p", "scale": "paper", "title": "t", "cells": [{"value": value}]}
    return new_record("reported", **content | changes)


def verdict_row(**changes):
    side = {"measure": "reward", "arm": "main", "values": [0.5]}
    texts = {"id": "c", "statement": "It rises.", "relation": ">", "unit": "", "reason": ""}
    lists = {"seeds": [0], "runs": [], "left": side, "right": None}
    return texts | lists | {"margin": 0, "equal": 0, "verdict": "undecided"} | NO_NUMBERS | changes


def verdicts(seeds, overrides=None, note=""):
    return new_record(
        "claims",
        paper="p",
        scale="cpu",
        seeds=seeds,
        overrides=overrides or {},
        verdicts=[verdict_row(note=note)],
    )


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
).filter(lambda value: "Infinity" not in json.dumps(value))


@given(json_values)
def test_a_digest_survives_storing(value):
    read = json.loads(canonical_text(value))
    assert digest_of(read) == digest_of(value)
    assert has_digest(read, digest_of(value))
    assert has_digest(json.loads(json.dumps(value)), digest_of(value))
    assert not has_digest([read], digest_of(value))


@given(st.integers(-(10**9), 10**9))
def test_a_number_has_one_digest_however_it_is_typed(number):
    assert digest_of({"x": number}) == digest_of({"x": float(number)})


def test_order_of_keys_does_not_matter_but_values_do():
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2.0, "a": 1})
    assert digest_of({"a": 1}) != digest_of({"a": 1.5}) != digest_of({"a": "1.5"})


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), object()])
def test_what_json_lacks_is_refused(bad):
    with pytest.raises(BadValue):
        digest_of({"x": [bad]})


def test_circumstances_do_not_enter_the_name():
    one, other = cells(), cells() | {"created": "1999", "timings": {"wall_s": 3.5}}
    assert name_of(one) == name_of(other)
    assert name_of(one) != name_of(cells(83.0))


def test_the_same_content_is_written_once():
    first = write_record(cells())
    path = record_files("p")[0]
    stamp = path.stat().st_mtime_ns
    assert write_record(cells() | {"created": "2001"})["digest"] == first["digest"]
    assert [p.stat().st_mtime_ns for p in record_files("p")] == [stamp]


def test_other_content_supersedes_and_leaves_the_old_file():
    old = write_record(cells())
    new = write_record(cells(83.0))
    assert new["supersedes"] == old["digest"]
    assert [r["digest"] for r in current(read_records("p"))] == [new["digest"]]
    assert len(record_files("p")) == 2
    assert write_record(cells(83.0))["digest"] == new["digest"]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("cells", None, "no field 'cells'"),
        ("title", 3, "title is a int, expected str"),
        ("supersedes", 3, "supersedes is a int, expected str | None"),
    ],
)
def test_a_record_of_the_wrong_shape_is_not_written(field, value, message):
    record = {k: v for k, v in cells().items() if k != field}
    if value is not None:
        record[field] = value
    with pytest.raises(BadValue) as caught:
        write_record(record)
    assert message in str(caught.value)
    assert record_files("p") == []


def damaged_number(text):
    return text.replace("82.9", "92.9")


def cut_off(text):
    return text[: len(text) // 2]


def field_twice(text):
    return text.replace("{", '{"kind": "other",', 1)


@pytest.mark.parametrize(
    "damage", [damaged_number, cut_off, field_twice, lambda _: "[]", lambda _: ""]
)
def test_a_damaged_record_is_named_and_refused(damage):
    write_record(cells())
    path = record_files("p")[0]
    path.write_text(damage(path.read_text()))
    with pytest.raises(DamagedFile, match=path.name):
        read_record(path)


@pytest.mark.parametrize("kind", ["folder", "pipe", "broken link"])
def test_what_is_no_file_is_named_and_refused(kind):
    write_record(cells())
    path = record_files("p")[0].with_name("0123456789abcdef.json")
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("nowhere")
    with pytest.raises(DamagedFile, match=rf"{path.name}: .*, expected a record; delete it"):
        read_record(path)


def test_tables_take_claims_over_most_seeds_and_no_overrides():
    three = write_record(verdicts([0, 1, 2]))
    write_record(verdicts([0]))
    write_record(verdicts([0, 1, 2, 3], overrides={"beta": 0.1}))
    assert [r["digest"] for r in standard(read_records("p"))] == [three["digest"]]
    newer = write_record(verdicts([0, 1, 2], note="again"))
    assert newer["supersedes"] == three["digest"]
    assert newer["digest"] in [r["digest"] for r in standard(read_records("p"))]


def a_run(**changes):
    """The least that a run's record may hold."""
    row = {"benchmark": "b", "mirrors": "b", "mode": "cot", "metric": "top1", "digest": "0"}
    numbers = {"value": 50, "low": 40, "high": 60, "n": 100, "samples": 1, "limited": False}
    content = {
        "paper": "p",
        "scale": "cpu",
        "arm": "main",
        "main": True,
        "seed": 0,
        "config": {"beta": {"value": 0.04, "source": "s4.2"}},
        "overrides": {},
        "start_model": "m",
        "size": None,
        "model": {},
        "data": {},
        "train": {},
        "start_scores": [],
        "scores": [row | numbers],
        "curves": {"reward": [[1, 0.5]]},
        "sampling": {},
    }
    return new_record("run", **content | changes)


def test_every_field_that_a_schema_names_is_needed_and_of_its_type():
    """Holds at every depth: a field is named by its path, as `scores[0].value`."""
    record = a_run()
    validate(record)
    for name in KINDS["run"].__required_keys__ - {"kind", "digest"}:
        with pytest.raises(BadValue, match=f"no field '{name}'"):
            validate({k: v for k, v in record.items() if k != name})
    for name in ScoreRow.__required_keys__:
        row = record["scores"][0]
        with pytest.raises(BadValue, match=rf"no field 'scores\[0\].{name}'"):
            validate(record | {"scores": [{k: v for k, v in row.items() if k != name}]})
        with pytest.raises(BadValue, match=rf"scores\[0\].{name} is a tuple"):
            validate(record | {"scores": [row | {name: ()}]})


def test_every_field_of_a_verdict_is_needed_and_of_its_type():
    record, row = verdicts([0]), verdict_row()
    validate(record)
    for name in VerdictRow.__required_keys__:
        without = record | {"verdicts": [{k: v for k, v in row.items() if k != name}]}
        if name in LATER_FIELDS:
            validate(without)  # as the oldest records are
        else:
            with pytest.raises(BadValue, match=rf"no field 'verdicts\[0\].{name}'"):
                validate(without)
        with pytest.raises(BadValue, match=rf"verdicts\[0\].{name} is a tuple"):
            validate(record | {"verdicts": [row | {name: ()}]})
    with pytest.raises(BadValue, match=r"verdicts\[0\].left.arm is a int"):
        validate(record | {"verdicts": [row | {"left": row["left"] | {"arm": 1}}]})


@pytest.mark.parametrize("name", ["effect", "low", "p", "power"])
def test_a_verdict_with_another_number_supersedes(name):
    first = write_record(verdicts([0]) | {"verdicts": [verdict_row() | {name: 0.001}]})
    other = write_record(verdicts([0]) | {"verdicts": [verdict_row() | {name: 0.002}]})
    assert other["supersedes"] == first["digest"]


def test_a_verdict_with_another_value_of_a_gate_supersedes():
    """`repro check` compares gates too: a record that kept the old values could not be mended."""

    def gated(value):
        gate = {
            **{"below": "unhealthy", "measure": "accuracy change", "arm": "a"},
            **{"relation": ">=", "bound": -1.5, "values": [value]},
        }
        return write_record(verdicts([0]) | {"verdicts": [verdict_row() | {"gates": [gate]}]})

    first, other, same = gated(-1.0), gated(0.5), gated(0.5)
    assert other["supersedes"] == first["digest"]
    assert same["digest"] == other["digest"]


def test_a_field_that_a_schema_does_not_name_is_kept():
    """So records stay readable when a kind gains fields, and old ones that lack these do too."""
    written = write_record(a_run(remark="by hand"))
    assert read_records("p") == [written]
    assert written["remark"] == "by hand"


def test_a_record_of_a_later_schema_is_refused():
    with pytest.raises(BadValue, match="version 3 of the schema, this code knows 2: update"):
        validate(a_run(schema=3))


def curve(last):
    return {"reward": [[1, 0.5], [2, last]]}


@pytest.mark.parametrize(
    "changed",
    [
        {"curves": curve(0.7 + 1.5e-7)},
        {"train": {"weights": "1", "kernels": {"torch": "AVX512"}}},
        {"versions": {"python": "3.14"}},
    ],
    ids=["the last digits of a curve", "weights and kernels", "versions"],
)
def test_a_run_that_answers_the_same_supersedes_nothing(changed):
    """As on another processor: the file that is there stays as it is."""
    first = write_record(a_run(curves=curve(0.7), train={"weights": "0"}))
    again = write_record(a_run(**{"curves": curve(0.7), "train": {"weights": "0"}, **changed}))
    assert again["digest"] == first["digest"]
    assert len(record_files("p")) == 1


@pytest.mark.parametrize("changed", ["curve", "score", "samples", "steps"])
def test_a_run_that_answers_otherwise_supersedes(changed):
    first = write_record(a_run(curves=curve(0.7), train={"steps": 2}))
    other = a_run(curves=curve(0.7), train={"steps": 2})
    match changed:
        case "curve":
            other["curves"] = curve(0.71)
        case "score":
            other["scores"][0]["value"] = 51
        case "samples":
            other["scores"][0]["digest"] = "1"
        case _:
            other["train"]["steps"] = 3
    assert write_record(other)["supersedes"] == first["digest"]


def test_a_record_of_the_first_schema_is_read_and_stays_where_the_answers_are_the_same():
    """Its name is a digest of all that it says; it has no seal beside."""
    old = a_run(schema=1)
    path = write_record(a_run()) and record_files("p")[0]
    path.unlink()
    path.with_name(f"{name_of(old)}.json").write_text(json.dumps(old))
    (read,) = read_records("p")
    assert write_record(a_run(train={"weights": "9"}))["digest"] == read["digest"]


BILLIONTHS = st.integers(-(10**11), 10**11).map(lambda number: canonical_number(number / 10**9))
NUMBERS = st.integers(-9, 9) | st.floats(-9, 9).map(canonical_number) | BILLIONTHS
POINTS = st.lists(st.lists(NUMBERS, min_size=2, max_size=2), max_size=4)
NAMES = ["a", "b", "held_out/c", "held_out/c/d", "held_out", "held_out/", "/", "1"]
CURVES = st.dictionaries(st.sampled_from(NAMES), POINTS)


@given(curves=CURVES)
@example(curves={"a": [[1, 2], [2, 3]], "b": [[1, 2], [2, 3]], "c": [[1, 5], [2, 5]]})
@example(curves={"a/b": [[1, 0.1], [2, 1e-9]], "a/c": [[1, 0.1], [2, 1e-9]], "d": [[1, 1e300]]})
@example(curves={"a": [[1, 0.123456789], [2, 1e-10]], "b": [[1, 3], [2, -0.012345678]]})
def test_the_text_of_a_record_holds_its_curves_to_the_last_digit(curves):
    """The digest of a record is one of its content, in whichever form a file holds that."""
    record = {"kind": "run", "curves": curves}
    read = parse_record(record_text(record))
    assert line_of(read) == line_of(record)
    assert list(read["curves"]) == sorted(curves)
    assert record_text(read) == record_text(record)


VALUES = st.none() | NUMBERS | st.text(max_size=3) | st.lists(NUMBERS, max_size=2)
SETTINGS = st.fixed_dictionaries(
    {"source": st.sampled_from(["arm a", "", "source"]), "value": VALUES}
)


@given(config=st.dictionaries(st.sampled_from(["beta", "source", "value", "data"]), SETTINGS))
def test_the_text_of_a_record_holds_its_settings(config):
    record = {"kind": "run", "config": config}
    read = parse_record(record_text(record))
    assert line_of(read) == line_of(record)
    assert parse_record(json.dumps(record)) == read
    sources = [table["source"] for table in json.loads(record_text(record))["config"]]
    assert sorted(sources) == sorted({setting["source"] for setting in config.values()})


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "benchmark": st.sampled_from(["gsm8k", "math"]),
            "metric": st.sampled_from(["top1", "maj"]),
        },
        optional={name: VALUES | st.booleans() for name in ("value", "n", "texts")},
    ),
    max_size=3,
)


COMMON_ROWS = ROWS.map(lambda rows: [COMMON | row for row in rows])


@given(start=ROWS | COMMON_ROWS, scores=ROWS | COMMON_ROWS)
@example(
    start=[{"benchmark": "math", "metric": "top1", "n": 1}],
    scores=[{"benchmark": "math", "metric": "top1", "n": True}],
)
@example(start=[COMMON | {"benchmark": "math", "limited": 0, "drawn": 3}], scores=[])
def test_the_text_of_a_record_holds_its_scores(start, scores):
    """A row holds what differs from the common one, a trained policy's what the start's has not."""
    record = {"kind": "run", "start_scores": start, "scores": scores}
    read = parse_record(record_text(record))
    assert line_of(read) == line_of(record)
    assert parse_record(json.dumps(record)) == read
    again = json.loads(record_text({**record, "scores": start}))
    assert again["scores"] == [{}] * len(start)


def test_a_row_of_the_start_holds_what_differs_from_the_common_one():
    row = COMMON | {"benchmark": "math", "value": 50, "seed": 1}
    maj = row | {"metric": "maj"}
    stored = json.loads(record_text({"kind": "run", "start_scores": [row, maj]}))
    assert stored["start_scores"] == [{"benchmark": "math", "value": 50, "seed": 1}, maj]


@pytest.mark.parametrize("field", ["config", "curves", "scores", "start_scores"])
def test_fields_of_records_of_another_kind_are_stored_as_they_are(field):
    record = {"kind": "of a plug-in", field: [7, {"source": "a"}]}
    assert parse_record(record_text(record)) == json.loads(record_text(record)) == record


def test_the_steps_and_the_values_of_equal_curves_are_stored_once():
    steps = [[step, step / 3] for step in range(50)]
    (table,) = curve_tables({"a": steps, "b": steps, "c": [[step, 7] for step in range(50)]})
    assert table["steps"] == list(range(50))
    assert table["values"] == {"a": [value for _, value in steps], "b": "a", "c": 7}


def test_values_are_stored_in_billionths_where_these_have_fewer_digits():
    values = {"a/b": [0.012345678, 0.001234567, 0.5], "a/c": [0.25, 1], "d": [0.1234567891, 2]}
    table, other = curve_tables({name: [*enumerate(column)] for name, column in values.items()})
    assert table["values"] == {}
    assert table["billionths"] == {"a/": {"b": [12345678, 1234567, 5 * 10**8]}}
    assert other == {"steps": [0, 1], "values": {"a/": {"c": [0.25, 1]}, "d": [0.1234567891, 2]}}


def test_curves_of_records_of_earlier_versions_are_lists_of_points():
    text = json.dumps({"kind": "run", "curves": {"reward": [[1, 0.5]]}})
    assert parse_record(text)["curves"] == {"reward": [[1, 0.5]]}


@pytest.mark.parametrize(
    ("field", "tables"),
    [
        ("curves", [{"steps": [1]}]),
        ("curves", [7]),
        ("curves", [{"steps": [1, 2], "values": {"a": [3]}}]),
        ("curves", [{"steps": [1], "values": {"a": "b"}}]),
        ("curves", [{"steps": 1, "values": {"a": 1}}]),
        ("curves", [{"steps": [1], "values": {}, "billionths": {"a": "b"}}]),
        ("curves", [{"steps": [1], "values": {}, "billionths": {"a": [1, 2]}}]),
        ("config", [{"values": {"beta": 1}}]),
        ("config", [7]),
        ("scores", [{"value": 1}] * 9),
        ("scores", [7]),
        ("start_scores", [7]),
        ("config", [{"source": "arm", "values": [1]}]),
    ],
    ids=str,
)
def test_damaged_tables_are_named_and_refused(field, tables):
    write_record(a_run())
    path = record_files("p")[0]
    path.write_text(json.dumps({**json.loads(path.read_text()), field: tables}))
    with pytest.raises(DamagedFile, match=rf"{path.name}.*tables of its {field}"):
        read_record(path)


def test_what_stands_beside_the_answers_is_sealed_too():
    write_record(a_run())
    path = record_files("p")[0]
    path.write_text(path.read_text().replace("0.5", "0.6"))
    with pytest.raises(DamagedFile, match="altered"):
        read_record(path)
