"""Sample files: the same bytes for the same samples, whole or not at all, damage is named."""

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.errors import BadValue, DamagedFile, MissingFile
from eval.samples.store import (
    Sample,
    digest_of,
    read_samples,
    regrade,
    to_lines,
    to_sample,
    write_samples,
)
from eval.sets.problem import Problem

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


def test_what_is_written_is_read_back(tmp_path: Path):
    path = tmp_path / "deep" / "s.jsonl.gz"
    digest = write_samples(path, MANY)
    assert read_samples(path, digest) == MANY
    assert digest == digest_of(MANY)
    assert [p.name for p in path.parent.iterdir()] == ["s.jsonl.gz"]


def test_the_same_samples_are_the_same_bytes(tmp_path: Path):
    write_samples(tmp_path / "a.gz", MANY)
    write_samples(tmp_path / "b.gz", MANY)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert digest_of(MANY) != digest_of(MANY[::-1])


@given(st.text(), st.text(alphabet="\udfff\x00\n\u2028é"))
def test_any_text_survives(output: str, extracted: str):
    sample = replace(ONE, output=output, extracted=extracted)
    [line, rest] = to_lines([sample]).split(b"\n")
    assert rest == b""
    assert to_sample(line, "here") == sample


@pytest.mark.parametrize("keep", [0, 5, 40, -1, -9])
def test_a_truncated_file_is_refused(tmp_path: Path, keep: int):
    path = tmp_path / "s.gz"
    digest = write_samples(path, MANY)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DamagedFile, match="restore it") as found:
        read_samples(path, digest)
    assert str(path) in str(found.value)


def test_any_changed_byte_is_refused(tmp_path: Path):
    path = tmp_path / "s.gz"
    digest = write_samples(path, MANY)
    whole = path.read_bytes()
    for position in range(10, len(whole), 7):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 255]) + whole[position + 1 :])
        with pytest.raises(DamagedFile):
            read_samples(path, digest)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"correct": 1}, "correct=1: expected bool or NoneType"),
        ({"sample": "0"}, "sample='0': expected int"),
        ({"sample": True}, "sample=True: expected int"),
        ({"extra": 1}, "expected the keys"),
    ],
)
def test_a_line_of_another_shape_is_refused(tmp_path: Path, change: dict, message: str):
    path = tmp_path / "s.gz"
    row = json.loads(to_lines([ONE])) | change
    path.write_bytes(gzip.compress(to_lines([ONE]) + json.dumps(row).encode() + b"\n"))
    with pytest.raises(DamagedFile, match=message) as found:
        read_samples(path)
    assert f"{path}, line 2" in str(found.value)


def test_a_cut_line_and_a_wrong_digest_are_refused(tmp_path: Path):
    path = tmp_path / "s.gz"
    path.write_bytes(gzip.compress(to_lines(MANY)[:-5]))
    with pytest.raises(DamagedFile, match="the last line is cut"):
        read_samples(path)
    write_samples(path, MANY)
    with pytest.raises(DamagedFile, match=r"digest .* expected 00"):
        read_samples(path, "00")
    with pytest.raises(MissingFile, match="no such samples file"):
        read_samples(tmp_path / "none.gz")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "s.gz"
    digest = write_samples(path, MANY)

    def broken():
        yield ONE
        raise OSError(28, os.strerror(28))

    with pytest.raises(OSError, match="No space left"):
        write_samples(path, broken())
    assert read_samples(path, digest) == MANY
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "s.gz"
    digest = write_samples(path, MANY)
    limits = getrlimit(RLIMIT_FSIZE)
    setrlimit(RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_samples(path, MANY * 2)
    finally:
        setrlimit(RLIMIT_FSIZE, limits)
    assert read_samples(path, digest) == MANY
    assert list(tmp_path.iterdir()) == [path]


def test_regrading_needs_only_the_outputs():
    problems = [Problem(id="a", question="1+1?", answer="2")]
    blank = replace(ONE, extracted=None, correct=None, rule="none", reason="not graded")
    assert regrade([blank], problems) == [ONE]
    changed = regrade([ONE], [replace(problems[0], answer="3")])
    assert changed[0].correct is False
    with pytest.raises(BadValue, match="1 samples of unknown problems, the first is 'b'"):
        regrade([replace(ONE, id="b")], problems)
