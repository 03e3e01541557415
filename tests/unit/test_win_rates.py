"""Laws of win rates, which judges compute from the stored answers of two arms."""

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.claims import START, BadClaim, Claim, MissingMeasure, score, win_rate
from core.paper.registry import find_paper
from core.records.places import results
from core.records.run_samples import write_run_samples
from core.stages.outcomes import claimed_texts
from core.verdicts.compared_answers import with_wins
from core.verdicts.consistency import derived_problems
from core.verdicts.judge import judge_claim
from core.verdicts.shared_problems import shared_variance
from core.verdicts.verdict_records import changed_claims, verdicts_record
from eval.errors import DamagedFile
from eval.grading import grade_many
from eval.samples.sealing import brief
from eval.samples.store import Sample, digest_of
from eval.sets.benchmarks import find_benchmark

SUITE, TEXTS = (
    "nano-sums",
    st.lists(st.sampled_from(["right", "99", "098", ""]), min_size=6, max_size=6),
)
NUMBERS = count()
JUDGES = ("truth", "bradley-terry", "brief", "cyclic")


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))


def graded(outputs, seed=0):
    """Samples of the first problems of a draw; the text `right` stands for the right answer."""
    problems = find_benchmark(SUITE, seed).load()[: len(outputs)]
    texts = [
        p.answer if text == "right" else text for p, text in zip(problems, outputs, strict=True)
    ]
    verdicts = grade_many(texts, [problem.reference for problem in problems])
    return [
        Sample(
            benchmark=SUITE, id=p.id, sample=0, output=text, tokens=1, truncated=False,
            extracted=v.extracted, correct=v.correct, rule=v.rule, reason=v.reason,
        )
        for p, text, v in zip(problems, texts, verdicts, strict=True)
    ]  # fmt: skip


def run_of(samples, arm, seed=0, draw=True):
    """A record of a run whose start answers nothing right, with its samples stored."""
    start = graded(["99"] * len(samples), seed if draw else 0)
    made = {digest_of(rows): rows for rows in (start, samples)}
    row = {
        "benchmark": SUITE,
        "mirrors": SUITE,
        "mode": "cot",
        "metric": "top1",
        "temperature": 1.0,
    }
    row |= {"draw": seed} if draw else {}

    def scored(rows):
        value = 100 * sum(sample.correct for sample in rows) / len(rows)
        return [{**row, "value": value, "digest": digest_of(rows)}]

    record = {
        "digest": f"{arm}{next(NUMBERS)}", "kind": "run", "paper": "rpo", "scale": "cpu",
        "arm": arm, "seed": seed, "config": {}, "overrides": {}, "supersedes": None, "curves": {},
        "train": {}, "sampling": {}, "start_scores": scored(start), "scores": scored(samples),
    }  # fmt: skip
    write_run_samples(record, made.__getitem__, results())
    return record


def claim_of(side, bound=50):
    return Claim("wins", "It wins.", side > bound, healthy=())


def rate(runs, judge="truth", arm="a", over="b", **how):
    side = win_rate(SUITE, judge=judge, temperature=1.0, **how).of(arm, over=over)
    return side.values([with_wins(claim_of(side), {0: runs})[0]])[0]


def arms(*outputs, seal=False):
    rows = [graded(texts) for texts in outputs]
    rows[1:] = [[brief(s) for s in row] for row in rows[1:]] if seal else rows[1:]
    return {name: run_of(row, name) for name, row in zip("ab", rows, strict=True)}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(TEXTS, TEXTS, st.sampled_from(JUDGES))
def test_what_one_arm_wins_the_other_loses_and_none_beats_itself(one, other, judge):
    runs = arms(one, other)
    assert rate(runs, judge) + rate(runs, judge, "b", "a") == pytest.approx(100)
    assert rate(runs, judge, "a", "a") == 50.0
    if judge == "truth":  # a problem is won, lost or even
        gain = runs["a"]["scores"][0]["value"] - runs["b"]["scores"][0]["value"]
        assert rate(runs) == pytest.approx(50 + gain / 2)


@pytest.mark.parametrize("seal", [False, True])
def test_a_right_answer_wins_over_a_wrong_one_stored_with_its_text_or_without(seal):
    runs = arms(["right", "right", "99", "098"], ["right", "99", "99", "right"], seal=seal)
    assert rate(runs) == 100 * (0.5 + 1 + 0.5 + 0) / 4
    assert rate(runs, over=START) == 100 * (1 + 1 + 0.5 + 0.5) / 4


def test_the_judges_of_texts_read_the_texts():
    """The kinds of the codes of 0, 1 and 2 are 0, 1 and 2: the first loses to the last at 0.2."""
    runs = arms(["0", "1", "21"], ["1", "1", "7"])
    assert rate(runs, "cyclic") == pytest.approx(100 * (0.9 + 0.5 + 0.5) / 3)
    assert rate(runs, "brief") == pytest.approx(100 * (0.5 + 0.5 + 0) / 3)


def test_answers_to_other_problems_and_texts_that_are_not_stored_are_named():
    runs = arms(["99", "99"], ["99", "99"])
    other = {**runs, "b": run_of(graded(["99"] * 3), "b")}
    with pytest.raises(MissingMeasure, match="the arms answer other problems of nano-sums"):
        rate(other)
    with pytest.raises(MissingMeasure, match=r"no avg@8\(nano-sums, temperature 1\)"):
        rate(runs, metric="avg@8")
    with pytest.raises(MissingMeasure, match="has no comparison of answers"):
        win_rate(SUITE).of("a", over="b").values([runs])
    with pytest.raises(BadClaim, match="expected one of the judges truth, bradley-terry"):
        win_rate(SUITE, judge="trth").of("a", over="b")


def test_a_claim_reads_it_needs_both_arms_and_is_written_in_words():
    side = win_rate(SUITE, temperature=1.0).of("a", over="b")
    claim = claim_of(side)
    assert str(side) == "win_rate(top1(nano-sums, temperature 1), by truth) of a over b"
    assert side.label == ("win_rate(top1(nano-sums, temperature 1), by truth) over b", "a")
    assert claim.arms == ("a", "b")
    assert {(arm, need.kind) for arm, need in claim.needs} == {
        (arm, kind) for arm in "ab" for kind in ("score", "texts")
    }
    mostly, rarely = ["right"] * 5 + ["99"], ["99"] * 5 + ["right"]
    by_arm = {
        arm: {seed: run_of(graded(texts, seed), arm, seed) for seed in range(20, 26)}
        for arm, texts in (("a", mostly), ("b", rarely))
    }
    by_arm["a"][20] = run_of(graded(["right"] * 6, 20), "a", 20)
    verdict = judge_claim(claim, by_arm)
    assert verdict["verdict"] == "held"
    assert verdict["left"]["values"] == pytest.approx([100 * 5.5 / 6, *[100 * 5 / 6] * 5])
    assert (verdict["left"]["arm"], verdict["unit"]) == ("a", "points")
    assert verdict["low"] < verdict["effect"] < verdict["high"]
    assert verdict["effect"] == pytest.approx(100 * (5.5 + 25) / 36 - 50)


def test_the_texts_of_both_arms_are_kept_and_no_others():
    claim = claim_of(win_rate("gsm8k", "math").of("a", over=START))
    paper = replace(find_paper("rpo"), claims=(claim, claim_of(score("cmath").of("b"))))
    assert claimed_texts(paper, "a") == {"gsm8k", "math"}
    assert claimed_texts(paper, "b") == frozenset()


def test_shared_problems_add_their_variance():
    """Of 50 plus half a difference of accuracies it is a quarter of that of the difference."""
    texts = {n: ["99" if i % n else "right" for i in range(60)] for n in (3, 5)}
    same = [{n: run_of(graded(texts[k]), n, draw=False) for n, k in (("a", 3), ("b", 5))}] * 2
    plain, side = score(SUITE, temperature=1.0), win_rate(SUITE, temperature=1.0)
    wins = side.of("a", over="b")
    cases = [*with_wins(claim_of(wins), dict(enumerate(same))).values()]
    expected = shared_variance(plain.of("a") > plain.of("b"), same) / 4
    assert shared_variance(wins > 50, cases) == pytest.approx(expected)
    assert expected > 0


def test_texts_that_are_not_stored_are_missed():
    problem = find_benchmark("pocket-gsm8k", 0).load()[0]
    sample = Sample(
        benchmark="pocket-gsm8k", id=problem.id, sample=0, output="so 3", tokens=1, truncated=False,
        extracted="3", correct=False, rule="boxed", reason="",
    )  # fmt: skip
    row = {"benchmark": "pocket-gsm8k", "mirrors": "gsm8k", "mode": "cot", "metric": "top1"}
    runs = {}
    for arm, rows in (("a", [sample]), ("b", [brief(sample)])):
        runs[arm] = {"digest": arm, "paper": "rpo", "train": {}, "sampling": {}, "start_scores": []}
        runs[arm]["scores"] = [{**row, "digest": digest_of(rows)}]
        write_run_samples(runs[arm], {digest_of(rows): rows}.__getitem__, results())
    side = win_rate("gsm8k").of("a", over="b")
    with pytest.raises(MissingMeasure, match="is stored without its text"):
        with_wins(claim_of(side), {0: runs})


def test_check_derives_it_again_and_notices_a_changed_file():
    side = win_rate(SUITE, temperature=1.0).of("a", over="b")
    paper = replace(find_paper("rpo"), claims=(claim_of(side),))
    texts = {"a": ["right", "99", "right"], "b": ["99", "99", "right"]}
    runs = [run_of(graded(t, seed), arm, seed) for arm, t in texts.items() for seed in (20, 21)]
    claims = verdicts_record(paper, "cpu", runs)
    assert changed_claims(paper, claims, runs) == []
    claims["verdicts"][0]["left"]["values"][0] += 1.0
    assert changed_claims(paper, claims, runs) == ["wins"]
    path = next(results().glob(f"rpo/{runs[0]['digest']}.parquet"))
    other = next(results().glob(f"rpo/{runs[2]['digest']}.parquet"))
    path.write_bytes(other.read_bytes())
    with pytest.raises(DamagedFile, match="has the digest"):
        changed_claims(paper, claims, runs)
    records = [*runs, {**claims, "digest": "0"}]
    lines = derived_problems(paper, records)
    assert "has the digest" in next(line for line in lines if line.startswith("rpo/0.json"))
