"""Verdicts: the right side wins, swapped arms do not hold, and what cannot be tested says so."""

import json
from pathlib import Path

import pytest

from core.claims import START, Claim, Comparison, gain_at_k, law, score
from core.run.records.verdicts import cannot_test, judge_claim
from core.run.resolve import resolve
from core.run.settings import HELD_OUT
from papers.deepseekmath_grpo import PAPER

GSM8K = score("gsm8k")


def record(arm, seed, value, start=40.0, digest=None):
    row = {"mirrors": "gsm8k", "metric": "top1"}
    return {
        "digest": digest or f"{arm}{seed}",
        "arm": arm,
        "seed": seed,
        "start_scores": [{**row, "value": start}],
        "scores": [{**row, "value": value}],
        "curves": {},
        "sampling": {},
    }


def runs(**arms):
    return {
        arm: {seed: record(arm, seed, value) for seed, value in enumerate(values)}
        for arm, values in arms.items()
    }


def claim(left, relation, right, margin=0.0):
    return Claim("c", "s", Comparison(GSM8K.of(left), relation, GSM8K.of(right), margin))


RUNS = runs(good=(61.0, 63.0, 62.0), bad=(50.0, 53.0, 51.0))


@pytest.mark.parametrize(
    ("left", "relation", "right", "verdict"),
    [
        ("good", ">", "bad", "held"),
        ("bad", ">", "good", "refuted"),
        ("good", "<", "bad", "refuted"),
        ("bad", "<", "good", "held"),
        ("good", ">", START, "held"),
        (START, ">", "good", "refuted"),
        ("good", ">=", "bad", "held"),
    ],
)
def test_a_verdict_follows_the_numbers_and_turns_with_the_sides(left, relation, right, verdict):
    found = judge_claim(claim(left, relation, right), RUNS)
    assert found["verdict"] == verdict
    assert found["low"] <= found["effect"] <= found["high"]
    assert found["seeds"] == [0, 1, 2]


def test_the_effect_is_left_minus_right_paired_by_seed():
    found = judge_claim(claim("good", ">", "bad"), RUNS)
    assert found["left"]["values"] == [61.0, 63.0, 62.0]
    assert found["right"]["values"] == [50.0, 53.0, 51.0]
    assert found["effect"] == pytest.approx((11 + 10 + 11) / 3)
    assert found["runs"] == sorted(["good0", "good1", "good2", "bad0", "bad1", "bad2"])


def test_noise_is_undecided():
    found = judge_claim(claim("a", ">", "b"), runs(a=(50.0, 60.0, 40.0), b=(51.0, 49.0, 55.0)))
    assert found["verdict"] == "undecided"


def test_a_margin_lets_at_least_as_good_fall_a_little_short():
    near = runs(a=(60.0, 60.2, 60.1), b=(60.5, 60.6, 60.7))
    assert judge_claim(claim("a", ">=", "b", margin=1.0), near)["verdict"] == "held"
    assert judge_claim(claim("a", ">=", "b"), near)["verdict"] == "refuted"


def test_one_seed_decides_nothing_and_says_why():
    found = judge_claim(claim("good", ">", "bad"), runs(good=(90.0,), bad=(10.0,)))
    assert found["verdict"] == "undecided"
    assert found["effect"] == 80.0
    assert "at least two" in found["reason"]


@pytest.mark.parametrize(
    ("by_arm", "reason"),
    [
        (runs(good=(61.0, 63.0)), "no run of bad"),
        ({"good": {0: record("good", 0, 1.0)}, "bad": {1: record("bad", 1, 1.0)}}, "share no seed"),
    ],
)
def test_an_untested_claim_is_undecided_with_its_reason(by_arm, reason):
    found = judge_claim(claim("good", ">", "bad"), by_arm)
    assert (found["verdict"], found["effect"]) == ("undecided", None)
    assert reason in found["reason"]


def test_a_missing_measure_is_undecided_not_an_error():
    sampled = Claim("c", "s", gain_at_k("maj", "gsm8k").of("good") > GSM8K.of("bad"))
    found = judge_claim(sampled, RUNS)
    assert found["verdict"] == "undecided"
    assert "no samples of gsm8k" in found["reason"]


def test_an_exact_claim_needs_no_run_and_its_opposite_is_refuted():
    variance = "core.losses.kl_variance:variance"
    k3, k1 = law(variance, "k3", sound=True), law(variance, "k1")
    assert judge_claim(Claim("c", "s", k3 < k1), {})["verdict"] == "held"
    assert judge_claim(Claim("c", "s", k3 > k1), {})["verdict"] == "refuted"
    unsound = law(variance, "k1", sound=True)
    assert judge_claim(Claim("c", "s", unsound < k1), {})["verdict"] == "refuted"


def test_the_law_of_k3_gives_the_numbers_of_the_committed_record():
    """They were computed without torch; the functions that train give the same."""
    (stored,) = (
        verdict
        for path in (Path(__file__).parents[2] / "results" / PAPER.slug).glob("*.json")
        for verdict in json.loads(path.read_text()).get("verdicts", ())
        if verdict["id"] == "k3-nonnegative-unbiased"
    )
    (claim,) = (claim for claim in PAPER.claims if claim.slug == stored["id"])
    found = judge_claim(claim, {})
    assert found["verdict"] == stored["verdict"] == "held"
    for side in ("left", "right"):
        assert found[side]["values"] == pytest.approx(stored[side]["values"], rel=1e-9)
    assert found["effect"] == pytest.approx(stored["effect"], rel=1e-9)
    assert found.keys() == stored.keys()


def measured(arm, seed, settings):
    """The record of a run that measured all that these settings ask for."""
    names = list(settings.suites)
    rows = [{"mirrors": name, "metric": "top1", "value": 50.0 + seed} for name in names]
    votes = {side: {"maj": [1.0], "pass": [1.0 + seed]} for side in ("before", "after")}
    sampled = names[: settings.at_k_benchmarks]
    points = [[0, 1.0], [1, 2.0 + seed]] if settings.heldout_problems else []
    return {
        "digest": f"{arm}{seed}",
        "start_scores": rows,
        "scores": rows,
        "curves": {HELD_OUT: points},
        "sampling": {name: {"mirrors": name, **votes} for name in sampled},
    }


@pytest.mark.parametrize("scale", ["cpu", "gpu", "paper"])
@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("heldout_problems=0",),
        ("heldout_problems=3", "at_k_benchmarks=1"),
        ("benchmarks=('gsm8k', 'math')", "at_k_benchmarks=0"),
        ("benchmarks=('cmath',)",),
    ],
)
def test_claims_without_a_verdict_are_known_before_the_run(scale, arguments):
    """They are those whose runs, at these settings, will lack what the claims read."""
    settings = resolve(PAPER, scale=scale, arguments=arguments).run
    runs = {arm: {seed: measured(arm, seed, settings) for seed in (0, 1)} for arm in PAPER.arms}
    verdicts = [judge_claim(one, runs) for one in PAPER.claims]
    lacking = {verdict["id"] for verdict in verdicts if verdict["effect"] is None}
    assert set(cannot_test(PAPER, settings)) == lacking
    assert (scale, arguments) != ("gpu", ()) or not lacking
