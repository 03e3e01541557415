"""Test questions are found in training data however they are written, and only they."""

import gzip
import json
import os
from pathlib import Path

import pandas
import pytest

from eval.errors import DamagedFile, MissingFile
from eval.sets.benchmarks import find_benchmark
from eval.sets.contamination import VERBATIM, find_questions, read_texts
from eval.sets.near_duplicates import ngrams
from eval.sets.problem import Problem
from eval.sets.tokens import count_words, tokens

DATA = os.environ.get("REPRO_DATA")
needs_data = pytest.mark.skipif(
    not DATA, reason="REPRO_DATA is not set: contamination of the real sets is NOT checked"
)
QUESTION = "A shop sold 1,250 apples at $2.50 each on Monday; how much did it earn, in dollars?"
SHORT = "Compute $\\cos 150^\\circ$."
PROBLEMS = [
    Problem(id="q", question=QUESTION, answer="3125"),
    Problem(id="s", question=SHORT, answer="1"),
]


def kinds(*row: str) -> dict[str, str]:
    return {match.id: match.kind for match in find_questions([row], PROBLEMS)}


@pytest.mark.parametrize(
    "written",
    [
        QUESTION,
        QUESTION.upper(),
        QUESTION.replace(" ", "  \t").replace(";", ";\u00a0"),
        QUESTION.replace("1,250", "1250").replace("2.50", "2.5"),
        QUESTION.replace("1,250", "1{,}250").replace("$2.50", r"\$2.500"),
        QUESTION.replace("1,250", "1,250.0").replace(";", ""),
        QUESTION.replace("1,250", "１，２５０").replace("?", "？"),
        f"Answer this.\n{QUESTION}\nPlease reason step by step.",
    ],
)
def test_case_spacing_marks_and_number_format_do_not_matter(written: str):
    assert kinds("nothing", written) == {"q": "same"}


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (f"User: {QUESTION} Assistant: 3125", {"q": "part"}),
        (QUESTION.replace("2.50", "250"), {"q": "near"}),  # a decimal point
        (QUESTION.replace("1,250", "1,251"), {"q": "similar"}),
        (QUESTION.replace("1,250", "17").replace("2.50", "9"), {"q": "renumbered"}),
        (QUESTION.replace("apples", "pears").replace("shop", "market"), {"q": "similar"}),
        (QUESTION[: len(QUESTION) // 2], {"q": "similar"}),
        (f"User: {QUESTION[:-20]} Assistant: 1,250 times 2.50 is 3125", {"q": "similar"}),
        (QUESTION[:20], {}),
        (SHORT.lower(), {"s": "same"}),
        (r"Compute $\cos (-150^\circ)$.", {"s": "near"}),
        (r"Compute $\cos 15^\circ$.", {}),
        (f"What comes next? {SHORT} Then add 1.", {}),  # short: a part of a text is no proof
        ("", {}),
    ],
)
def test_other_questions_are_told_apart(written: str, found: dict[str, str]):
    assert kinds(written) == found


def test_rows_are_counted_from_one_and_the_strictest_kind_is_given_once():
    rows = [["x"], [f"Q: {QUESTION}", QUESTION], [QUESTION]]
    found = find_questions(rows, PROBLEMS)
    assert [(m.id, m.row, m.kind) for m in found] == [("q", 2, "same"), ("q", 3, "same")]


def test_operators_are_part_of_a_question_and_chinese_needs_no_spaces():
    assert tokens("$x^2 + 1$") == tokens(r"\(X^{2}+1\)") != tokens("$x^2 - 1$")
    assert tokens("小明有１，０００个苹果。") == tokens("小明 有 1000 个苹果")


def test_words_of_every_script_are_told_from_characters_without_spaces():
    assert count_words(tokens("Сколько яблок у Маши?")) == 3
    assert count_words(tokens("小明有１，０００个苹果。")) == 6
    assert count_words(tokens("x + π = 2 apples")) == 1
    assert ngrams(tokens("Сколько яблок у Маши")) == [
        ("сколько", "яблок", "у"),
        ("яблок", "у", "маши"),
    ]
    assert ngrams(tokens("小明有1000个苹")) == [
        ("小", "明", "有", "#", "个"),
        ("明", "有", "#", "个", "苹"),
    ]


CHINESE = "小明和小红去商店买苹果和梨，小明买了18个苹果，小红买了25个梨，他们一共买了多少个水果？"
STORIES = [
    Problem(id="zh", question=CHINESE, answer="43"),
    Problem(
        id="long",
        question="A train of 14 wagons carries 3,750 crates of 48 bottles over 865 miles at 95 "
        "miles an hour, and 2 bottles of every crate break on the way; how many arrive whole?",
        answer="172500",
    ),
    *(
        Problem(
            id=f"other-{i}", question=f"There are {i} cats and {2 * i} dogs in town.", answer="1"
        )
        for i in range(3, 40)
    ),
]


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (CHINESE.replace("小明", "大伟").replace("商店", "市场"), {"zh": "similar"}),
        (CHINESE.replace("18", "31").replace("25", "64"), {"zh": "renumbered"}),
        ("小明有１，０００个苹果。他们一共买了多少个水果？", {}),
        (
            "一列有14节车厢的火车以每小时95英里的速度运送3750箱。",  # the numbers in another order
            {},
        ),
        (
            "一列14节车厢的火车装3750箱，每箱48瓶，走865英里，每小时95英里，每箱碎2瓶，还剩几瓶？",
            {"long": "numbers"},
        ),
    ],
)
def test_other_words_other_numbers_and_a_translation_are_told_apart(written, found):
    assert {m.id: m.kind for m in find_questions([[written]], STORIES)} == found


def test_a_set_of_short_questions_has_none_in_other_words():
    short = [Problem(id="s", question=SHORT, answer="1")]
    assert find_questions([["Compute the cosine of 150 degrees."]], short) == []


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz", "t.json", "t.parquet", "t.txt"])
def test_every_format_gives_all_strings_of_a_row(tmp_path: Path, name: str):
    rows = [{"n": 1, "messages": [{"role": "user", "content": QUESTION}]}, {"n": 2, "messages": []}]
    path = tmp_path / name
    lines = "\n".join(json.dumps(row) for row in rows)
    if name == "t.parquet":
        pandas.DataFrame(rows).to_parquet(path)
    else:
        text = {"t.json": json.dumps(rows), "t.txt": f"{QUESTION}\n"}.get(name, lines)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    texts = read_texts(path)
    assert len(texts) == 2
    assert [(m.id, m.row) for m in find_questions(texts, PROBLEMS)] == [("q", 1)]


def test_files_that_cannot_be_read_are_named(tmp_path: Path):
    with pytest.raises(MissingFile, match=r"no\.jsonl: no such file"):
        read_texts(tmp_path / "no.jsonl")
    for name in ("a.jsonl", "a.jsonl.gz", "a.parquet"):
        (tmp_path / name).write_text("{oops")
        with pytest.raises(DamagedFile, match=rf"{name}(, line 1)?: not "):
            read_texts(tmp_path / name)
    (tmp_path / "deep.jsonl").write_text("[" * 100_000)
    with pytest.raises(DamagedFile, match=r"deep\.jsonl, line 1: not JSON"):
        read_texts(tmp_path / "deep.jsonl")


# Equal by letters and digits alone; in seven of them a sign, an operator or a point differs.
SHARED = {
    "algebra/636", "algebra/1674", "geometry/969", "intermediate_algebra/965",
    "intermediate_algebra/1033", "intermediate_algebra/1436", "intermediate_algebra/1607",
    "intermediate_algebra/2047", "precalculus/285", "precalculus/515", "precalculus/24307",
}  # fmt: skip
# A question with choices added, one with a sentence before it, one with another question before it.
MORE = {"intermediate_algebra/1007", "counting_and_probability/266", "prealgebra/1061"}


@needs_data
def test_math_train_holds_the_known_test_questions():
    found = find_questions(
        read_texts(Path(DATA or "") / "math/train.jsonl"), find_benchmark("math").load()
    )
    by_kind = {kind: {m.id[5:-5] for m in found if m.kind == kind} for kind in VERBATIM}
    assert set().union(*by_kind.values()) == SHARED | MORE
    assert [len(ids) for ids in by_kind.values()] == [5, 2, 7]
    assert by_kind["near"] < SHARED
    assert len(by_kind["same"] & SHARED) == 4


@needs_data
@pytest.mark.parametrize(
    ("train", "benchmark", "n"),
    [("mgsm_en/test", "gsm8k", 250), ("cmath/dev", "cmath", 3), ("cmath/dev", "mgsm_zh", 0)],
)
def test_real_sets_share_what_is_known(train: str, benchmark: str, n: int):
    texts = read_texts(Path(DATA or "") / f"{train}.jsonl")
    found = find_questions(texts, find_benchmark(benchmark).load())
    assert sum(match.kind in VERBATIM for match in found) == n


@needs_data
def test_a_test_set_in_disguise_is_found_whole():
    problems = find_benchmark("gsm8k").load()
    written = [p.question.upper().replace(",", "") for p in problems]
    rows = [[f"USER:\n{text}\nASSISTANT: 1"] for text in written]
    assert len({m.id for m in find_questions(rows, problems)}) == 1319
