"""Rows with what was asked: read back as written, and refused with the line."""

import gzip
import json
from dataclasses import replace

import pytest

from eval.errors import BadValue, DamagedFile, MissingFile
from eval.samples.prompted_samples import PromptedSample, read_graded, with_questions
from eval.samples.store import Sample, to_lines, write_samples
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
PROBLEMS = [Problem(id=key, question=f"{key}?", answer="2") for key in "ab"]
ROWS = with_questions([ONE, replace(ONE, id="b")], PROBLEMS, ["ask a", "ask b"], [5, 6])


def test_a_sample_gets_the_question_of_its_problem():
    assert [(s.id, s.prompt, s.answer, s.prompt_tokens) for s in ROWS] == [
        ("a", "ask a", "2", 5),
        ("b", "ask b", "2", 6),
    ]
    with pytest.raises(BadValue, match="unknown problem 'c'"):
        with_questions([replace(ONE, id="c")], PROBLEMS, ["", ""])


@pytest.mark.parametrize("name", ["s.jsonl", "s.jsonl.gz"])
def test_rows_are_read_whole_or_as_the_sample_in_them(tmp_path, name):
    path = tmp_path / name
    if name.endswith(".gz"):
        write_samples(path, ROWS)
    else:
        path.write_bytes(to_lines(ROWS))
    assert read_graded(path, PromptedSample) == ROWS
    assert read_graded(path) == [ONE, replace(ONE, id="b")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"correct": "yes"}, r"line 2: correct='yes': expected bool or NoneType"),
        ({"prompt_tokens": True}, r"line 2: prompt_tokens=True: expected int"),
        ({"prompt": None}, r"line 2: prompt=None: expected str"),
    ],
)
def test_a_row_of_other_types_is_refused_with_its_line(tmp_path, change, message):
    path = tmp_path / "s.jsonl"
    first, second = to_lines(ROWS).splitlines()
    path.write_bytes(first + b"\n" + json.dumps(json.loads(second) | change).encode())
    with pytest.raises(DamagedFile, match=message):
        read_graded(path, PromptedSample)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "s.jsonl.gz"
    with pytest.raises(MissingFile, match="no such file"):
        read_graded(path)
    path.write_bytes(gzip.compress(to_lines(ROWS))[:-9])
    with pytest.raises(DamagedFile, match=r"not (UTF-8|a whole gzip file)"):
        read_graded(path)
    for text, message in (
        ("{", "not JSON"),
        ("[]", "no JSON object"),
        ('{"id": "a"}', "no benchm"),
    ):
        path.write_bytes(gzip.compress(text.encode()))
        with pytest.raises(DamagedFile, match=message):
            read_graded(path)
