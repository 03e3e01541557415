"""What the search for test questions finds of planted ones, and what it flags where none are.

`make golden` (GOLDEN=1) writes `reports/contamination.md` again; the diff is reviewed.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from planted_questions import KINDS as PLANTED
from planted_questions import Planter

from core.cli.planning import REWORDED_NOTE
from eval.sets.benchmarks import find_benchmark
from eval.sets.contamination import KINDS, VERBATIM, Index, Match, find_questions, read_texts
from eval.sets.tokens import tokens

DATA = Path(os.environ.get("REPRO_DATA") or "/nowhere")
PAGE = Path(__file__).parents[2] / "reports" / "contamination.md"
# Rows of GSM8K train that are flagged and tell, read by hand, the story of a test question again.
TWINS = {21, 139, 1315, 1652, 1782, 2601, 3053, 3727, 5163, 6680, 7286}
SETS = (("math/train", "math"), ("cmath/dev", "cmath"), ("gsm8k/train", "math"))

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="REPRO_DATA is not set: planted questions are NOT looked for"
)


@cache
def problems(name: str):
    return find_benchmark(name).load()


@cache
def column(name: str, field: str = "question") -> list[str]:
    lines = (DATA / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line)[field] for line in lines if line]


@cache
def clean() -> list[Match]:
    return find_questions(read_texts(DATA / "gsm8k/train.jsonl"), problems("gsm8k"))


@cache
def index() -> Index:
    return Index(problems("gsm8k"))


def shares(rows: list[str], asked) -> tuple[float, float]:
    """Percent of the rows whose planted question is found word for word, and found at all."""
    pairs = zip(asked, rows, strict=True)
    found = [
        {p.id: kind for p, kind in index().matches_in_row([row])}.get(own.id) for own, row in pairs
    ]
    verbatim = sum(kind in VERBATIM for kind in found)
    return 100 * verbatim / len(rows), 100 * sum(kind in KINDS for kind in found) / len(rows)


@cache
def recall(every: int = 1) -> list[tuple[str, int, float, float, float]]:
    """For each way of planting: how many, and percent found word for word, at all, in a chat.

    `every`: 5 plants one question in five.
    """
    asked = problems("gsm8k")[::every]
    planter = Planter(column("gsm8k/test"), column("gsm8k/train"))
    rows = []
    for kind in PLANTED:
        texts = planter.planted(kind, [problem.question for problem in asked])
        pairs = zip(asked, texts, strict=True)
        kept = [(p, t) for p, t in pairs if tokens(t) != tokens(p.question)]
        owners, changed = [p for p, _ in kept], [t for _, t in kept]
        chats = [f"User: {t}\nAssistant: {p.solution}" for p, t in kept]
        rows.append((kind, len(kept), *shares(changed, owners), shares(chats, owners)[1]))
    chinese = column("mgsm_zh/test")
    owners = problems("gsm8k")[: len(chinese)]
    chats = [f"用户：{t}\n助手：{p.solution}" for p, t in zip(owners, chinese, strict=True)]
    found = (*shares(chinese, owners), shares(chats, owners)[1])
    return [*rows, ("a translation (MGSM-zh)", len(chinese), *found)]


def flagged(train: str, benchmark: str) -> tuple[int, int, Counter]:
    """Rows, how many of them are flagged, and different questions found of each kind."""
    rows = read_texts(DATA / f"{train}.jsonl")
    found = find_questions(rows, problems(benchmark))
    kinds = Counter(kind for _, kind in {(m.id, m.kind) for m in found})
    return len(rows), len({m.row for m in found}), kinds


def page() -> Iterator[str]:
    yield "# Test questions in training data: what is found, what is flagged\n"
    yield (
        "Written by `make golden` (`tests/golden/test_contamination_page.py`) from the sets in "
        "`REPRO_DATA`.\n"
    )
    yield (
        "GSM8K test questions, planted as the only text of a row, or in a chat with "
        "their solution; found is the very question in its row. Questions that a change leaves as "
        "they are do not count.\n"
    )
    yield "| planted with | rows | word for word, % | found, % | found in a chat, % |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    yield from (f"| {k} | {n} | {w:.1f} | {a:.1f} | {b:.1f} |" for k, n, w, a, b in recall())
    rows = {match.row for match in clean()}
    yield (
        f"\nOf the 7473 rows of GSM8K train {len(rows)} are flagged "
        f"({100 * len(rows) / 7473:.2f} %). Read by hand, {len(rows & TWINS)} of them tell a test "
        f"question's story with other names and numbers, and {len(rows - TWINS)} "
        f"({100 * len(rows - TWINS) / 7473:.2f} %) do not.\n"
    )
    yield "Different questions found in the benchmarks' own training sets and in a foreign one:\n"
    yield f"| rows of | questions of | rows | flagged | {' | '.join(KINDS)} |"
    yield f"| --- | --- | ---: | ---: | {' | '.join(['---:'] * len(KINDS))} |"
    for train, benchmark in SETS:
        n, some, kinds = flagged(train, benchmark)
        counts = " | ".join(str(kinds[kind]) for kind in KINDS)
        yield f"| {train} | {benchmark} | {n} | {some} | {counts} |"
    yield (
        "\nMATH and CMATH ask many questions in one set phrase with other numbers, in training as "
        "in test: `similar` and `renumbered` say so. Most translations are not found: `numbers` "
        "needs numbers that are rare, in digits, in the question's order."
    )


def test_planted_questions_are_found():
    *reworded, translated = recall(every=5)
    for kind, n, words, bare, chat in reworded:
        assert n >= 140, kind
        assert words <= 5, kind
        assert min(bare, chat) >= 98, kind
    assert translated[2] == 0
    assert min(translated[3:]) >= 32


def test_few_clean_rows_are_flagged():
    rows = {match.row for match in clean()}
    assert len(rows) <= 17
    assert len(rows - TWINS) <= 6
    assert rows >= TWINS
    assert not [match for match in clean() if match.kind in VERBATIM]


@pytest.mark.long
def test_the_page_and_the_note_of_the_command_say_what_was_measured():
    text = "\n".join(page()) + "\n"
    if os.environ.get("GOLDEN") == "1":
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    assert text == PAGE.read_text(encoding="utf-8"), f"{PAGE.name} differs: `make golden` rewrites"
    *reworded, translated = recall()
    assert f"at least {int(min(min(row[3:]) for row in reworded))} %" in REWORDED_NOTE
    assert f"{translated[3]:.0f} % of translations" in REWORDED_NOTE
    rows = {match.row for match in clean()}
    assert f"{100 * len(rows) / 7473:.1f} % of clean rows" in REWORDED_NOTE
