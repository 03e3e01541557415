"""Benchmarks: sizes, prompts word for word, and files that are not what they should be."""

import json
import os
from dataclasses import replace
from pathlib import Path

import datasets
import pytest

from eval.errors import BadValue, DamagedFile, MissingFile, UnknownName
from eval.sets.benchmarks import BENCHMARKS, find_benchmark
from eval.sets.loading import (
    LANGUAGES,
    cmath_row,
    contest_row,
    gsm8k_row,
    map_rows,
    math500_row,
    math_row,
    mgsm_row,
    read_problems,
    with_answers,
)
from eval.sets.problem import Answers, Counts, Problem

DATA = os.environ.get("REPRO_DATA")
SIZES = {
    "gsm8k": 1319, "math": 5000, "math500": 500, "mgsm_en": 250, "mgsm_zh": 250, "cmath": 1098,
}  # fmt: skip
BY_ID = {"gsm8k-platinum": 1209, "mgsm_de": 250, "aime24": 30, "aime25": 30, "amc23": 40}
GOOD = {"id": "a", "question": "1+1?", "answer": "2", "language": "en"}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.skipif(not DATA, reason="REPRO_DATA is not set: the real test sets are NOT read")
def test_real_test_sets_are_whole(name: str):
    benchmark = find_benchmark(name)
    problems = benchmark.load(Path(DATA or ""))
    assert len(problems) == benchmark.n == SIZES[name]
    assert {p.language for p in problems} == {benchmark.language}
    part = benchmark.load(Path(DATA or ""), 30)
    assert [p for p in problems if p in part] == part
    assert len(part) == 30


@pytest.mark.skipif(not DATA, reason="REPRO_DATA is not set: the real test sets are NOT read")
def test_math500_is_a_part_of_math_in_its_own_order():
    part = find_benchmark("math500").load(Path(DATA or ""))
    ids = (Path(DATA or "") / "math/math500_ids.txt").read_text().split()
    assert [p.id for p in part] == ids
    whole = {p.id: p for p in find_benchmark("math").load(Path(DATA or ""))}
    assert all(whole[p.id] == p for p in part)


@pytest.mark.skipif(not DATA, reason="REPRO_DATA is not set: the real test sets are NOT read")
@pytest.mark.parametrize("name", ["gsm8k", "mgsm_zh"])
def test_one_altered_answer_is_refused_and_another_order_is_not(tmp_path: Path, name: str):
    lines = (Path(DATA or "") / name / "test.jsonl").read_bytes().split(b"\n")[:-1]
    (tmp_path / name).mkdir()
    path = tmp_path / name / "test.jsonl"
    path.write_bytes(b"\n".join(reversed(lines)))
    assert len(find_benchmark(name).load(tmp_path)) == len(lines)
    altered = json.loads(lines[7]) | {"answer": "1000000"}
    path.write_bytes(b"\n".join([*lines[:7], json.dumps(altered).encode(), *lines[8:]]))
    with pytest.raises(DamagedFile, match="a question or an answer differs"):
        find_benchmark(name).load(tmp_path)


@pytest.mark.parametrize("name", BY_ID)
def test_sets_by_id_come_from_the_data_folder_or_else_from_the_hub(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A folder of JSON lines stands for the hub's data set: `datasets` loads both the same way."""
    benchmark = find_benchmark(name)
    assert benchmark.hub
    row = {"question": "1+1?", "answer": "#### 2", "answer_number": 2}
    hub = tmp_path / "hub"
    hub.mkdir()
    (hub / "test.jsonl").write_text(f"{json.dumps(row)}\n" * BY_ID[name])
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    moved = replace(benchmark, hub=replace(benchmark.hub, id=str(hub), config=None))
    found = moved.load(tmp_path)
    assert len(found) == benchmark.n == BY_ID[name]
    assert found[0].question == "1+1?"
    (write(tmp_path, [json.dumps(GOOD)]).parent).rename(tmp_path / name)
    with pytest.raises(DamagedFile, match=f"1 problems, expected {benchmark.n}"):
        moved.load(tmp_path)


def test_mgsm_has_every_language_asked_in_english_but_for_chinese():
    names = {f"mgsm_{language}" for language in LANGUAGES}
    assert names == {name for name in BENCHMARKS if name.startswith("mgsm")}
    assert len(names) == 11
    for name in names:
        benchmark = find_benchmark(name)
        assert benchmark.hub
        [problem] = map_rows(name, benchmark.hub, [{"question": "?", "answer_number": 4}], "test")
        assert problem.language == benchmark.language == name[5:]
        assert ("Please reason" in benchmark.prompt(problem)) == (name != "mgsm_zh")


@pytest.mark.parametrize("name", [n for n in BENCHMARKS if n.startswith("pocket")])
def test_pocket_suites_are_whole(name: str):
    benchmark = find_benchmark(name)
    problems = benchmark.load()
    assert len(problems) == benchmark.n >= 500
    assert {p.language for p in problems} == {benchmark.language}


def test_prompts_are_those_of_the_paper():
    gsm8k = find_benchmark("gsm8k")
    en, zh = (
        map_rows("x", hub, [row], "test")[0]
        for hub, row in (
            (gsm8k.hub, {"question": "1+1?", "answer": "#### 2"}),
            (find_benchmark("mgsm_zh").hub, {"question": "1+1？", "answer_number": 2}),
        )
        if hub
    )
    assert gsm8k.prompt(en) == (
        "1+1?\nPlease reason step by step, and put your final answer within \\boxed{}."
    )
    assert gsm8k.prompt(zh) == "1+1？\n请通过逐步推理来解答问题，并把最终答案放置于\\boxed{}中。"
    assert gsm8k.prompt(en, "tir") == (
        "1+1?\nPlease integrate natural language reasoning with programs to solve the problem "
        "above, and put your final answer within \\boxed{}."
    )
    assert gsm8k.prompt(zh, "tir") == (
        "1+1？\n请结合自然语言和Python程序语言来解答问题，并把最终答案放置于\\boxed{}中。"
    )
    with pytest.raises(UnknownName, match="no mode 'cott': did you mean cot"):
        gsm8k.prompt(en, "cott")


def test_public_rows_become_problems():
    assert gsm8k_row({"question": "q", "answer": "2*500=1,000\n#### 1,000"}, "k").answer == "1000"
    found = math_row(
        {
            "problem": "p",
            "level": "Level 5",
            "type": "Algebra",
            "solution": r"so \boxed{\frac{1}{2}}.",
        },
        "k",
    )
    assert (found.answer, found.level, found.subject) == (r"\frac{1}{2}", 5, "Algebra")
    unknown = {"problem": "p", "level": "Level ?", "type": "A", "solution": r"\fbox{3}"}
    assert (math_row(unknown, "k").answer, math_row(unknown, "k").level) == ("3", None)
    row = {"question": "问", "answer": None, "answer_number": 18}
    assert mgsm_row(row, "k", language="zh").language == "zh"
    row = {"unique_id": "test/a/1.json", "problem": "p", "solution": "s", "answer": "5"}
    found = math500_row(row | {"subject": "Algebra", "level": 2}, "k")
    assert (found.id, found.answer, found.level) == ("test/a/1.json", "5", 2)
    assert contest_row({"problem": "p", "solution": r"\boxed{204}", "id": 1}, "k").answer == "204"
    assert contest_row({"problem": "p", "answer": "070", "id": 1}, "k").answer == "070"
    assert contest_row({"question": "p", "answer": 27.0, "id": 1}, "k").answer == "27"
    found = cmath_row({"question": "问", "golden": "1,234", "grade": 6, "num_digits": 1}, "k")
    assert (found.answer, found.level, found.language) == ("1234", 6, "zh")


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("gsm8k", {"question": "q", "answer": "no mark"}),
        ("gsm8k", {"question": "q"}),
        ("math", {"problem": "p", "level": "Level 1", "type": "A", "solution": "no box"}),
        ("cmath", {"question": "q", "golden": "1"}),
    ],
)
def test_public_rows_of_another_shape_are_refused(name: str, row: dict):
    hub = find_benchmark(name).hub
    assert hub
    with pytest.raises(DamagedFile, match=f"{hub.id}, test, row 0"):
        map_rows(name, hub, [row], "test")


def write(folder: Path, lines: list[str | bytes]) -> Path:
    path = folder / "gsm8k" / "test.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"".join((x.encode() if isinstance(x, str) else x) + b"\n" for x in lines))
    return path


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not JSON"),
        ("[1]", r"line 2: no JSON object but '\[1\]'"),
        (json.dumps({**GOOD, "id": "b", "answer": " "}), "'answer': expected a non-empty string"),
        (json.dumps({**GOOD, "id": "b", "answer": True}), "line 2: 'answer': .* got True"),
        (json.dumps({**GOOD, "id": "b", "answer": float("nan")}), "line 2: 'answer': .* got nan"),
        (json.dumps({**GOOD, "id": "b", "answer": None}), "line 2: 'answer': .* got nothing"),
        (json.dumps({"id": "b", "question": "q", "answer": "1"}), "'language': .* got nothing"),
        (json.dumps({**GOOD, "id": "b", "language": "xx"}), "expected one of bn, .* got 'xx'"),
        (json.dumps({**GOOD, "id": "b", "level": "5"}), "'level': expected int, got '5'"),
        (json.dumps({**GOOD, "id": "b", "level": True}), "'level': expected int, got True"),
        (json.dumps(GOOD), "id 'a' occurs twice"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(tmp_path: Path, line, message: str):
    path = write(tmp_path, [json.dumps(GOOD), line])
    with pytest.raises(DamagedFile, match=message) as found:
        read_problems(path)
    assert str(path) in str(found.value)


SEVERAL = {"id": "a", "mode": "all", "answers": ["1", "2"], "last_box": "2"}


def with_several(folder: Path, row: object) -> list[Problem]:
    path = write(folder, [json.dumps(GOOD), json.dumps({**GOOD, "id": "b"})])
    extra = path.with_name("test_multibox.jsonl")
    extra.write_text(json.dumps(row) + "\n")
    return with_answers(read_problems(path), extra)


@pytest.mark.parametrize(
    ("mode", "answers", "answer"),
    [("all", ["1", "2"], "1, 2"), ("any", ["1", "2"], "1"), ("first", ["1"], "1")],
)
def test_a_question_with_several_boxes_has_the_answers_of_the_file_beside_it(
    tmp_path: Path, mode: Counts, answers: list[str], answer: str
):
    first, second = with_several(tmp_path, {**SEVERAL, "mode": mode, "answers": answers})
    assert (first.answer, first.reference) == (answer, Answers(tuple(answers), mode))
    assert second.reference == Answers(("2",))


def test_numbers_among_several_answers_are_their_texts(tmp_path: Path):
    rows = [{"answers": ["1", "2.5"]}, {"answers": [1.0, 2.5], "last_box": 2}]
    folders = [tmp_path / "texts", tmp_path / "numbers"]
    for folder in folders:
        folder.mkdir()
    texts, numbers = (with_several(f, SEVERAL | row) for f, row in zip(folders, rows, strict=True))
    assert numbers == texts


@pytest.mark.parametrize(
    "change",
    [
        {"id": "c"},
        {"mode": "some"},
        {"answers": ["1"]},
        {"answers": [True, 2]},
        {"answers": ["1", None]},
        {"last_box": "3"},
    ],
)
def test_answers_that_fit_no_problem_are_refused(tmp_path: Path, change: dict[str, object]):
    with pytest.raises(DamagedFile, match=r"test_multibox.jsonl, line 1: .* mode \(all, any"):
        with_several(tmp_path, SEVERAL | change)


def test_only_newlines_end_a_line(tmp_path: Path):
    question = "a\u2028b\u0085c\x0bd"
    path = write(tmp_path, [json.dumps({**GOOD, "question": question}, ensure_ascii=False)])
    assert read_problems(path)[0].question == question


def test_an_incomplete_test_set_is_refused(tmp_path: Path):
    path = write(tmp_path, [json.dumps(GOOD)])
    with pytest.raises(DamagedFile, match="1 problems, expected 1319") as found:
        find_benchmark("gsm8k").load(tmp_path)
    assert str(path) in str(found.value)


def test_a_missing_file_says_what_was_expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("REPRO_DATA", str(tmp_path))
    with pytest.raises(MissingFile, match=r"math/test.jsonl: no such file; expected DIR/"):
        find_benchmark("math").load()


def test_unknown_names_and_limits_are_refused():
    with pytest.raises(UnknownName, match="no benchmark 'gsm8': did you mean gsm8k"):
        find_benchmark("gsm8")
    with pytest.raises(BadValue, match="limit=0"):
        find_benchmark("pocket-math").load(limit=0)
