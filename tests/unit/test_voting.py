"""Votes go by mathematical equality, ties are shared or go to the first; published Maj@K agrees."""

import gzip
import json
import os
from pathlib import Path
from random import Random

import pytest

from eval.samples.store import Sample
from eval.sets.benchmarks import find_benchmark
from eval.stats.estimates import Votes, maj_at_k
from eval.stats.summary import score
from eval.stats.voting import Ballots, tally

DATA = os.environ.get("REPRO_DATA")
FILE = Path(DATA or "") / "model_outputs/math_qwen2.5-math-example_cot_8samples_a.jsonl.gz"
needs_data = pytest.mark.skipif(
    not DATA or not FILE.is_file(),
    reason="REPRO_DATA names no folder with model_outputs: Maj@K is NOT checked on real samples",
)
MATH = find_benchmark("math")
# K: Maj@K (first K, first seen wins a tie), Pass@K (unbiased, of 8), Avg@K (first K).
PUBLISHED = {
    1: ("86.00", "87.75", "86.00"),
    2: ("86.00", "91.07", "87.00"),
    4: ("90.00", "94.23", "88.00"),
    8: ("90.00", "96.00", "87.75"),
}


def sample(extracted: str | None, correct: bool | None = False, k: int = 0, key: str = "a"):
    return Sample(
        benchmark="math",
        id=key,
        sample=k,
        output="",
        tokens=0,
        truncated=None,
        extracted=extracted,
        correct=correct,
        rule="boxed",
        reason="",
    )


def published() -> list[Sample]:
    rows = [json.loads(line) for line in gzip.decompress(FILE.read_bytes()).split(b"\n")[:-1]]
    return [
        sample(r["published_prediction"] or None, r["published_correct"], r["sample"], r["id"])
        for r in rows
    ]


@needs_data
@pytest.mark.parametrize("k", PUBLISHED)
def test_published_samples_give_the_published_numbers(k: int):
    samples = published()
    first = [s for s in samples if s.sample < k]
    average = "top1" if k == 1 else f"avg@{k}"
    found = {s.metric: s for s in score(first, MATH, [f"maj-first@{k}", average])}
    [passed] = score(samples, MATH, [f"pass@{k}"])
    values = found[f"maj-first@{k}"], passed, found[average]
    assert tuple(f"{s.value:.2f}" for s in values) == PUBLISHED[k]
    assert [s.n for s in values] == [50, 50, 50]
    assert all(s.limited and s.low <= s.value <= s.high for s in values)


@needs_data
def test_expected_and_first_seen_votes_differ_only_by_ties():
    rows = [[s for s in published() if s.id == key] for key in {s.id for s in published()}]
    ballots = Ballots(rows)
    tied = 0
    for labels, shared, first in zip(
        ballots.labels, ballots.expected_votes(8, 0), ballots.first_votes(8), strict=True
    ):
        counts = sorted((labels.count(x) for x in set(labels) - {None}), reverse=True)
        alone = len(counts) < 2 or counts[0] > counts[1]
        tied += not alone
        assert not alone or shared == first
    assert tied == 2  # as the published table says


EQUAL = [
    [r"\frac{1}{2}", "0.5", "1/2"],
    [r"2\sqrt{3}", r"\sqrt{12}"],
    [r"x^2+2x+1", r"(x+1)^2"],
    ["(1, 2)", r"\left(1,2\right)"],
    ["1,234", "1234", r"1234\text{ dollars}"],
]
DIFFERENT = ["3", "-3", r"3\sqrt{2}", "(2, 1)", "[1, 2)", r"\frac{2}{3}", "0.667", r"x^2+2x-1"]


@pytest.mark.parametrize("seed", range(3))
def test_equal_answers_are_one_vote_in_any_order(seed: int):
    groups = [*EQUAL, *([one] for one in DIFFERENT)]
    answers = [(text, number) for number, group in enumerate(groups) for text in group]
    Random(seed).shuffle(answers)
    [labels] = Ballots([[sample(text, k=k) for k, (text, _) in enumerate(answers)]]).labels
    together = {(a, b) for (_, a), b in zip(answers, labels, strict=True)}
    assert len(together) == len(set(labels)) == len(groups)


def test_problems_do_not_share_votes():
    rows = [[sample(r"\sqrt{4}", key="a"), sample("2", k=1, key="a")], [sample("2", key="b")]]
    assert Ballots(rows).labels == [[1, 1], [1]]


def test_right_answers_are_one_vote_and_blanks_none():
    row = [sample("1/2", True), sample(None, k=1), sample("0.50", True, 2), sample("7", k=3)]
    [labels] = Ballots([row]).labels
    assert labels == [0, None, 0, 1]
    assert tally(labels) == Votes((2, 1), (True, False), 1)


def test_of_tied_answers_the_first_seen_wins():
    wrong_first = [sample("7"), sample("1", True, 1), sample("1", True, 2), sample("7", k=3)]
    right_first = [*wrong_first[1:], wrong_first[0]]
    rows = [wrong_first, right_first, [sample(None)] * 4]
    assert Ballots(rows).first_votes(4) == [0, 1, 0]
    assert Ballots(rows).first_votes(2) == [0, 1, 0]
    assert Ballots(rows).expected_votes(4, 0) == [0.5, 0.5, 0]


def test_more_samples_than_k_are_subsampled_not_cut():
    late = [sample("7"), sample("7", k=1), *(sample("1", True, k) for k in range(2, 6))]
    ballots = Ballots([late])
    assert ballots.first_votes(2) == [0]
    assert ballots.expected_votes(2, 0) == [maj_at_k(Votes((4, 2), (True, False)), 2)] != [0]
