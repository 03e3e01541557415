"""Parquet files of samples: what is written is read back, opened by others, and damage is named."""

import os
from dataclasses import asdict, replace
from functools import partial

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset
from hypothesis import given
from hypothesis import strategies as st
from run_records import SUITES, made, run_record

from core.records.run_samples import file_problem, read_run_samples, sample_files_of, sample_set
from eval.errors import BadValue, DamagedFile, MissingFile
from eval.samples.parquet import SCHEMA, read_columns, read_set, sets_problem, write_sets
from eval.samples.sealing import brief
from eval.samples.store import Sample, digest_of

ONE = Sample(
    benchmark="gsm8k",
    id="a",
    sample=0,
    output="数\u2028\n\\boxed{2}",
    tokens=3,
    truncated=False,
    extracted="2",
    correct=True,
    rule="boxed",
    reason="same text",
)
MANY = [replace(ONE, id=str(i), correct=[True, False, None][i % 3]) for i in range(50)]
SETS = {
    "held_out/4": MANY,
    "scores/gsm8k/cot/top1": [replace(ONE, truncated=None, extracted=None), ONE],
    "sealed": [brief(sample) for sample in MANY],
    "texts kept": [replace(brief(ONE), output="2")],
}
DIGESTS = {name: digest_of(samples) for name, samples in SETS.items()}
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def test_what_is_written_is_read_back_under_the_same_digests(tmp_path):
    path = tmp_path / "deep" / "s.parquet"
    write_sets(path, SETS)
    for name, samples in SETS.items():
        assert read_set(path, name, DIGESTS[name]) == samples
    assert sets_problem(read_columns(path), DIGESTS) == ""
    assert [one.name for one in path.parent.iterdir()] == ["s.parquet"]
    write_sets(tmp_path / "again.parquet", SETS)
    assert (tmp_path / "again.parquet").read_bytes() == path.read_bytes()


@given(TEXT, st.none() | TEXT, st.none() | st.booleans(), st.booleans())
def test_any_text_survives(tmp_path_factory, output, extracted, correct, short):
    whole = replace(ONE, output=output, extracted=extracted, correct=correct)
    sample = brief(whole) if short else whole
    path = tmp_path_factory.getbasetemp() / "any.parquet"
    write_sets(path, {"one": [sample]})
    assert read_set(path, "one", digest_of([sample])) == [sample]


def test_half_of_a_surrogate_pair_is_refused(tmp_path):
    with pytest.raises(BadValue, match="cannot be stored as Parquet"):
        write_sets(tmp_path / "s.parquet", {"one": [replace(ONE, output="\udfff")]})
    assert not any(tmp_path.iterdir())


def test_pandas_and_datasets_open_the_samples_of_a_run(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    run = run_record(40, at_k=True)
    (path, sets), *_ = sample_files_of(run)
    frame = pandas.read_parquet(path)
    assert list(frame) == SCHEMA.names
    dataset = load_dataset("parquet", data_files=str(path), cache_dir=str(tmp_path / "cache"))
    rows = dataset["train"].to_list()
    assert list(frame["set"].unique()) == list(sets)
    for name, digest in sets.items():
        part = frame[frame["set"] == name]
        expected = [asdict(sample) for sample in made(digest)]
        part = part[list(expected[0])].astype(object)
        assert part.where(part.notna(), None).to_dict("records") == expected
        told = [{k: row[k] for k in expected[0]} for row in rows if row["set"] == name]
        assert told == expected
    shares = frame.groupby("set")["correct"].mean()
    for row in run["scores"]:
        assert 100 * shares[f"scores/{row['benchmark']}/cot/top1"] == pytest.approx(row["value"])
    assert set(sets) == {
        *(f"scores/{suite}/cot/top1" for suite in SUITES.values()),
        *(f"at_k/{suite}" for suite in SUITES.values()),
        "held_out/3",
    }


def test_of_an_arm_without_texts_the_outputs_are_null(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    run = run_record(40, arm="rft", sealed=True)
    (path, sets), *_ = sample_files_of(run)
    frame = pandas.read_parquet(path)
    assert frame["output"].isna().all()
    assert frame["form"].notna().all()
    (first, *_) = sets.values()
    answers = {f"\\boxed{{{answer}}}" for answer in frame["extracted"].dropna()}
    assert {sample.output for sample in read_run_samples(run, first)} <= answers | {""}


def test_a_set_of_no_record_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    with pytest.raises(DamagedFile, match="names no samples with the digest 00"):
        sample_set(run_record(40), "00")


@pytest.mark.parametrize("keep", [0, 5, 400, -1, -9])
def test_a_truncated_file_is_refused(tmp_path, keep):
    path = tmp_path / "s.parquet"
    write_sets(path, SETS)
    path.write_bytes(path.read_bytes()[:keep])
    assert f"{path}: not a whole Parquet file" in file_problem(path, DIGESTS)


def test_any_changed_byte_changes_no_sample_unseen(tmp_path):
    path = tmp_path / "s.parquet"
    write_sets(path, SETS)
    whole = path.read_bytes()
    for position in range(4, len(whole), 31):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 255]) + whole[position + 1 :])
        if file_problem(path, DIGESTS) == "":  # a byte that nothing is read from
            assert {name: read_columns(path).samples(name) for name in SETS} == SETS


def test_other_columns_other_sets_and_a_missing_file_are_named_in_one_line(tmp_path):
    path = tmp_path / "s.parquet"
    assert "no such samples file" in file_problem(path, DIGESTS)
    with pytest.raises(MissingFile):
        read_columns(path)
    pq.write_table(pa.table({"id": ["a"]}), path)
    assert "expected the columns set, benchmark, id" in file_problem(path, DIGESTS)
    write_sets(path, SETS | {"scores/gsm8k/cot/top1": [ONE]})
    other = digest_of([ONE])
    named = (
        f"scores/gsm8k/cot/top1 has the digest {other}, expected {DIGESTS['scores/gsm8k/cot/top1']}"
    )
    assert named in file_problem(path, DIGESTS)
    with pytest.raises(DamagedFile, match="has the digest"):
        read_set(path, "scores/gsm8k/cot/top1", DIGESTS["scores/gsm8k/cot/top1"])
    write_sets(path, {"more": MANY, **SETS})
    assert "the sets held_out/4, more, " in file_problem(path, DIGESTS)
    for problem in map(partial(file_problem, path), (DIGESTS, {})):
        assert "\n" not in problem


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "s.parquet"
    write_sets(path, SETS)

    def full(*_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_sets(path, {"one": MANY})
    assert sets_problem(read_columns(path), DIGESTS) == ""
    assert list(tmp_path.iterdir()) == [path]
