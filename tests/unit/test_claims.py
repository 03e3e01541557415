"""Verdicts: the right side wins, swapped arms do not hold, and what cannot be tested says so."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from core.claims import (
    START,
    Claim,
    Comparison,
    Untestable,
    deviation,
    final,
    fluctuation,
    gain_at_k,
    late,
    law,
    least,
    score,
    share_of_steps,
)
from core.settings.resolve import resolve
from core.settings.run_settings import HELD_OUT
from core.verdicts.judge import judge, judge_claim
from core.verdicts.unmeasured import cannot_test
from eval.stats.seeds import Look
from papers.deepseekmath_grpo import PAPER

GSM8K = score("gsm8k")
SIDES = ("before", "after")


def record(arm, seed, value, start=40.0, digest=None):
    row = {"mirrors": "gsm8k", "metric": "top1", "draw": seed}
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


@pytest.mark.parametrize("value", [0.5, 97.5])
def test_a_measure_that_cannot_move_leaves_no_room(value):
    stuck = {
        arm: {
            seed: record(arm, seed, value + 0.1 * seed * (arm == "a"), value) for seed in range(3)
        }
        for arm in "ab"
    }
    found = judge_claim(claim("a", ">", "b"), stuck)
    assert found["verdict"] == "no room"
    assert f"{value:.1f} % before" in found["reason"]
    moved = {**stuck, "a": {seed: record("a", seed, 60.0 + seed, value) for seed in range(3)}}
    held = judge_claim(claim("a", ">", START), moved)
    assert held["verdict"] == ("held" if value < 50 else "refuted")


@pytest.mark.parametrize(
    ("relation", "left", "right", "verdict"),
    [
        (">", 98.9, 98.6, "no room"),  # 100 would be a tie with 98.6
        (">", 97.9, 97.6, "tie"),
        (">", 60.0, 98.6, "refuted"),
        ("<", 98.6, 98.9, "no room"),
        (">=", 98.9, 98.6, "tie"),  # which the claim allows, and the left side could be worse
    ],
)
def test_a_side_that_ends_within_the_margin_of_all_right_leaves_none_to_be_larger(
    relation, left, right, verdict
):
    ends = runs(a=(left - 0.1, left + 0.1, left), b=(right + 0.1, right - 0.1, right))
    found = judge_claim(claim("a", relation, "b"), ends)
    assert found["verdict"] == verdict
    assert ("could end" in found["reason"]) == (verdict == "no room")


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (97.0, 98.0, "no room"),
        (93.0, 90.0, "no room"),
        (70.0, 72.0, "held"),
        (70.0, 98.0, "refuted"),
    ],
)
def test_maj_against_pass_has_no_room_where_pass_could_not_gain_as_much(before, after, verdict):
    """Maj gains 20 points, so Pass must stand below 80 % to be able to gain more."""

    def sampled(maj, seed):
        at = {"k": [1, 64], "draw": seed}
        return {
            **record("a", seed, 50.0),
            "sampling": {
                "suite": {
                    "mirrors": "gsm8k",
                    "before": {**at, "maj": [40.0, 60.0], "pass": [40.0, before]},
                    "after": {**at, "maj": [40.0, maj], "pass": [40.0, after]},
                }
            },
        }

    test = gain_at_k("maj", "gsm8k").of("a") > gain_at_k("pass", "gsm8k").of("a")
    by_seed = {seed: sampled(79.0 + seed, seed) for seed in range(3)}
    assert judge_claim(Claim("c", "s", test), {"a": by_seed})["verdict"] == verdict


def test_small_differences_are_a_tie_within_the_margin_of_their_unit():
    near = runs(a=(60.1, 59.9, 60.3), b=(60.0, 60.1, 60.2))
    found = judge_claim(claim("a", ">", "b"), near)
    assert (found["verdict"], found["equal"], found["unit"]) == ("tie", 2.0, "points")
    own = judge_claim(Claim("c", "s", (GSM8K.of("a") > GSM8K.of("b")).by(0.1)), near)
    assert (own["verdict"], own["equal"]) == ("undecided", 0.1)
    ratio = judge_claim(Claim("c", "s", GSM8K.of("a") / GSM8K.of("b") > 1.0), near)
    assert (ratio["verdict"], ratio["equal"], ratio["unit"]) == ("tie", 0.1, "")


@pytest.mark.parametrize(
    ("side", "margin"),
    [
        (late("held_out/accuracy"), 2.0),
        (late("reward"), 0.02),
        (final("rewards/format/mean"), 0.02),
        (late("entropy"), 0.01),
        (final("completions/wrong_mean_length"), 1.0),
        (fluctuation("reward"), 0.4),  # a spread is no level of the reward
        (late("grad_norm"), 0.4),
        (share_of_steps("entropy", ">", 0.1), 0.4),
    ],
)
def test_equality_margins_follow_from_the_unit_or_are_a_tenth_of_the_base_arm(side, margin):
    assert (side.of("a") > side.of("b")).equal([-3.0, -5.0]) == pytest.approx(margin)
    assert (abs(side.of("a") - side.of("b")) > side.of("b")).equal([4.0]) == pytest.approx(margin)
    assert (side.of("a") / side.of("b") > 4.0).equal([4.0]) == pytest.approx(0.4)
    assert (side.of("a") > side.of("b")).by(0.3).equal([4.0]) == 0.3


LOOKS = (Look(3, 0.015), Look(5, 0.015), Look(8, 0.02))
NOISY = (59.0, 63.0, 60.5, 62.0, 61.0, 61.5, 62.5, 60.0)


def looked(good):
    bad = (56.0, 51.0, 55.0, 53.0, 52.5, 51.5, 52.5, 50.2)[: len(good)]
    return judge_claim(claim("good", ">", "bad"), runs(good=good, bad=bad), LOOKS)


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7, 8])
def test_a_look_judges_by_its_own_seeds_alone_and_the_first_that_decides_stays(n):
    """A clear difference is decided at three seeds, whatever the later ones say."""
    good = (66.0, 61.1, 65.2, *(0.0,) * 5)[:n]
    found = looked(good)
    assert (found["verdict"], found["seeds"], found["level"]) == ("held", [0, 1, 2], 0.015)
    assert "look 1 of 3" in found["reason"]
    assert found["p"] < 0.05


def test_looks_go_on_until_one_decides():
    assert [len(looked(NOISY[:n])["seeds"]) for n in (3, 4, 5, 8)] == [3, 3, 5, 5]
    assert [looked(NOISY[:n])["verdict"] for n in (3, 5, 8)] == ["undecided", "held", "held"]
    assert looked(NOISY[:2])["effect"] is None
    assert "2 of the 3 seeds" in looked(NOISY[:2])["reason"]


def test_an_undecided_claim_says_how_likely_more_seeds_decide_it():
    base = (50.0, 50.0, 50.0)
    clear, idle = (53.0, 58.0, 55.0), (42.0, 58.5, 50.0)
    first, second = (
        judge_claim(claim("a", ">", "b"), runs(a=good, b=base), LOOKS) for good in (clear, idle)
    )
    assert first["verdict"] == second["verdict"] == "undecided"
    assert first["power"] > 0.95
    assert second["power"] < 0.1
    assert "they are not run" in second["reason"]
    assert "they are not run" not in first["reason"]
    assert judge_claim(claim("a", ">", "b"), runs(a=clear, b=base), LOOKS[:1])["power"] is None


def test_of_undecided_comparisons_the_one_that_speaks_most_against_the_claim_is_shown():
    """The first is nearer to its bound, on the far side of it; the second is just over."""
    arms = runs(a=(60.0, 60.0, 60.0), b=(49.0, 57.0, 50.0), c=(62.0, 55.0, 60.5))
    sides = [GSM8K.of("a") - GSM8K.of(arm) for arm in "bc"]
    found = judge_claim(Claim("c", "s", least(*sides) > 0.0), arms, LOOKS)
    assert found["verdict"] == "undecided"
    assert found["left"]["measure"] == str(sides[1])
    turned = judge_claim(Claim("c", "s", least(*reversed(sides)) > 0.0), arms, LOOKS)
    assert turned["left"] == found["left"]


@pytest.mark.parametrize(("n", "verdict"), [(8, "undecided"), (16, "held")])
def test_a_deviation_over_seeds_is_judged_on_sixteen(n, verdict):
    wild = [50 + 10 * (-1) ** i + 0.1 * i for i in range(n)]
    calm = [50 + 0.1 * i for i in range(n)]
    test = Claim("c", "s", deviation(GSM8K.of("a")) > deviation(GSM8K.of("b")))
    found = judge_claim(test, runs(a=wild, b=calm))
    assert found["verdict"] == verdict
    assert found["effect"] > 5
    assert ("16 seeds or more" in found["reason"]) == (n < 16)


def test_the_same_seeds_decide_less_at_a_look_than_alone():
    """t(2) is 4.30 at 5 % and 8.07 at 1.5 %: what lies between is decided by three seeds alone."""
    differences = runs(a=(50.0, 51.0, 52.0), b=(46.0, 49.0, 47.8))
    alone = judge_claim(claim("a", ">", "b"), differences)
    look = judge_claim(claim("a", ">", "b"), differences, LOOKS)
    assert (alone["verdict"], look["verdict"]) == ("held", "undecided")
    assert look["low"] < alone["low"] < alone["high"] < look["high"]
    assert look["p"] == pytest.approx(min(1.0, alone["p"] * 0.05 / 0.015))


def test_beside_each_p_stands_holms_over_the_paper():
    sure, unsure = (50.0, 51.0, 52.0), (59.0, 63.0, 30.0)
    paper = replace(PAPER, claims=(claim("a", ">", "b"), claim("c", ">", "b"), PAPER.claims[-1]))
    records = [
        run for arm in runs(a=sure, b=(40.0, 41.2, 42.1), c=unsure).values() for run in arm.values()
    ]
    first, second, exact = judge(paper, records)
    assert first["holm"] == pytest.approx(2 * first["p"])
    assert second["holm"] == pytest.approx(max(second["p"], first["holm"]))
    assert exact["holm"] is None


def test_what_nothing_can_test_says_so():
    found = judge_claim(Claim("c", "s", Untestable("needs people")), RUNS)
    assert (found["verdict"], found["reason"]) == ("untestable", "needs people")


def test_noise_is_undecided():
    found = judge_claim(claim("a", ">", "b"), runs(a=(50.0, 60.0, 40.0), b=(51.0, 49.0, 55.0)))
    assert found["verdict"] == "undecided"


def test_a_margin_lets_at_least_as_good_fall_a_little_short():
    near = runs(a=(60.0, 60.2, 60.1), b=(60.5, 60.6, 60.7))
    assert judge_claim(claim("a", ">=", "b", margin=1.0), near)["verdict"] == "held"
    assert judge_claim(claim("a", ">=", "b"), near)["verdict"] == "refuted"


def test_one_seed_decides_nothing_and_says_why():
    found = judge_claim(claim("good", ">", "bad"), runs(good=(90.0,), bad=(50.0,)))
    assert found["verdict"] == "undecided"
    assert found["effect"] == 40.0
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
    variance = "core.laws.kl_variance:variance"
    k3, k1 = law(variance, "k3", sound=True), law(variance, "k1")
    assert judge_claim(Claim("c", "s", k3 < k1), {})["verdict"] == "held"
    assert judge_claim(Claim("c", "s", k3 > k1), {})["verdict"] == "refuted"
    unsound = law(variance, "k1", sound=True)
    assert judge_claim(Claim("c", "s", unsound < k1), {})["verdict"] == "refuted"


def test_the_law_of_k3_gives_the_numbers_of_the_committed_record():
    """They were computed without torch; the functions that train give the same."""
    stored = [
        verdict
        for path in (Path(__file__).parents[2] / "results" / PAPER.slug).glob("*.json")
        for verdict in json.loads(path.read_text()).get("verdicts", ())
        if verdict["id"] == "k3-nonnegative-unbiased"
    ]
    (claim,) = (claim for claim in PAPER.claims if claim.slug == "k3-nonnegative-unbiased")
    found = judge_claim(claim, {})
    assert stored
    for one in stored:
        assert found["verdict"] == one["verdict"] == "held"
        for side in ("left", "right"):
            assert found[side]["values"] == pytest.approx(one[side]["values"], rel=1e-9)
        assert found["effect"] == pytest.approx(one["effect"], rel=1e-9)


def measured(arm, seed, settings):
    """The record of a run that measured all that these settings ask for."""
    names = list(settings.suites)
    score = {"metric": "top1", "value": 50.0 + seed, "draw": seed}
    rows = [{"mirrors": name, **score} for name in names]
    votes = {side: {"maj": [1.0], "pass": [1.0 + seed], "draw": seed} for side in SIDES}
    sampled = names[: settings.at_k_benchmarks]
    points = [[0, 1.0], [1, 2.0 + seed]] if settings.heldout_problems else []
    return {
        "digest": f"{arm}{seed}",
        "start_scores": rows,
        "scores": rows,
        "curves": {HELD_OUT: points},
        "train": {},
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
