"""All readers of rows have the same rules, and an answer that is a number is read as its text."""

import gzip
import json
from decimal import Decimal
from fractions import Fraction

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.data.load import join_parts
from core.data.sets import find_sets
from core.data.sources import read_rows
from core.evaluate.outputs import read_outputs
from core.rewards import Accuracy
from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.stages.data import read_rows as made_rows
from eval.errors import DamagedFile
from eval.json_lines import answer_text, json_lines
from eval.samples.prompted_samples import read_graded
from eval.sets.contamination import read_texts
from eval.sets.loading import read_problems
from papers.deepseekmath_grpo import PAPER

ROW = {
    **{"id": "a", "question": "1 + 1?", "answer": "2", "language": "en", "prompt": "1 + 1?"},
    **{"output": "2", "benchmark": "b", "sample": 0, "tokens": 1, "truncated": False},
    **{"extracted": "2", "correct": True, "rule": "r", "reason": ""},
}
READERS = {
    "data=": lambda path: read_rows(path, None),
    "--data": read_problems,
    "score": lambda path: list(read_outputs(path)),
    "--contamination": read_texts,
    "table samples": read_graded,
}
WRAPPED = {
    "as it is": lambda content: content,
    "with a byte order mark": lambda content: b"\xef\xbb\xbf" + content,
    "with blank lines": lambda content: b"\n \n" + content.replace(b"\n", b"\n\n"),
    "with carriage returns": lambda content: content.replace(b"\n", b"\r\n"),
    "gzipped": gzip.compress,
    "without a last line end": bytes.rstrip,
}


def lines_of(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.mark.parametrize("how", WRAPPED)
@pytest.mark.parametrize("reader", READERS)
def test_all_readers_take_the_same_files(reader, how, tmp_path):
    rows = [ROW, {**ROW, "id": "b\u2028c"}]
    plain, wrapped = tmp_path / "plain.jsonl", tmp_path / "wrapped.jsonl"
    plain.write_bytes(lines_of(*rows))
    wrapped.write_bytes(WRAPPED[how](json.dumps(ROW).encode() + b"\n" + lines_of(rows[1])))
    found = READERS[reader](wrapped)
    assert len(found) == 2
    assert found == READERS[reader](plain)


@pytest.mark.parametrize("line", [b"[1]", b"{", b"\xff", b"[" * 9999, b"1" * 9999, b"null"])
@pytest.mark.parametrize("reader", READERS)
def test_all_readers_name_the_line_that_is_no_object(reader, line, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(lines_of(ROW) + b"\n" + line)
    place = "at byte" if line == b"\xff" else "line 3: no"
    with pytest.raises(DamagedFile, match=place) as error:
        READERS[reader](path)
    assert "\n" not in str(error.value)


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_becomes_a_text_of_the_same_value(number):
    text = answer_text(number, "here")
    assert set(text) <= set("-.0123456789")
    assert float(text) == number if isinstance(number, float) else int(text) == number


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), True, "", " ", [], {"a": 1}])
def test_what_is_no_answer_is_refused(value, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    with pytest.raises(DamagedFile, match="here: 'answer': expected"):
        answer_text(value, "here")
    with pytest.raises(DamagedFile, match=r"row 0 .*'answer': expected"):
        Accuracy()(completions=["1"], answer=[value])
    path = tmp_path / "own.jsonl"
    path.write_bytes(b"\n" + lines_of(ROW, {**ROW, "answer": value}, ROW))
    with pytest.raises(DamagedFile, match=r"own\.jsonl, line 3: 'answer': expected"):
        Chain(resolve(PAPER, arguments=(f"data={path}", "heldout_problems=1"))).data.run()


@pytest.mark.parametrize("answer", [2, 2.0, "2", numpy.int64(2), torch.tensor(2.0)])
def test_an_answer_that_is_a_number_is_judged_as_its_text(answer):
    assert Accuracy()(completions=[r"\boxed{2}", r"\boxed{3}"], answer=[answer] * 2) == [1.0, 0.0]


def test_a_column_that_the_first_rows_lack_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    path = tmp_path / "own.jsonl"
    path.write_bytes(lines_of(ROW, {**ROW, "tests": "x"}))
    (one,) = find_sets(str(path))
    assert "tests" in (one.columns or ())
    assert one.n == 2
    chain = Chain(resolve(PAPER, arguments=(f"data={path}", "heldout_problems=1")))
    chain.data.run()
    assert [row["tests"] for row in made_rows(chain.data.folder)] == [None, "x"]


def test_values_of_several_types_are_kept_as_texts():
    mixed = [{"a": "x", "b": {"c": 1}, "d": 1}, {"a": 7, "b": {"c": "y"}, "d": 2}]
    found = join_parts([mixed[:1], mixed[1:]])
    assert found["a"][:] == ["x", "7"]
    assert [json.loads(text) for text in found["b"]] == [{"c": 1}, {"c": "y"}]
    assert found["d"][:] == [1, 2]


@pytest.mark.parametrize("other", [["2"], {"a": 1}])
def test_a_column_that_is_read_has_one_type(other):
    with pytest.raises(DamagedFile, match=r"column prompt: its rows hold .* and str"):
        join_parts([[{"prompt": "1"}, {"prompt": other}]], ["prompt"])


def test_half_a_surrogate_pair_is_named():
    with pytest.raises(DamagedFile, match="column a: a text holds half a surrogate pair"):
        join_parts([[{"a": "\ud800"}]])


def test_a_field_that_occurs_twice_is_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"answer": "1"}\n{"answer": "1", "answer": "2"}\n', encoding="utf-8")
    with pytest.raises(DamagedFile, match=r"line 2: not JSON .field 'answer' occurs twice"):
        list(json_lines(path))


def test_lines_are_counted_from_one(tmp_path):
    (tmp_path / "a").write_bytes(b'\n{"b": 1}')
    assert list(json_lines(tmp_path / "a")) == [(2, {"b": 1})]


def test_exact_numbers_are_rewards():
    from core.collect.reward_calls import RewardFunction, Samples, read_values

    values = [Fraction(1, 2), Decimal("0.5"), numpy.float32(0.5), torch.tensor(0.5)]
    samples = Samples(columns={"prompts": ["p"] * 5, "completions": ["c"] * 5})
    function = RewardFunction(name="r", call=lambda **_: values)
    assert read_values(function, samples, [*values, Decimal("nan")]) == [0.5] * 4 + [None]
