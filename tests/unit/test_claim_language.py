"""The language of claims: what each side comes to, what it needs, and slips that are refused."""

import pickle
from dataclasses import replace
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.claims import (
    START,
    BadClaim,
    Claim,
    MissingMeasure,
    Need,
    Untestable,
    at_k,
    deviation,
    drawdown,
    final,
    gain,
    gain_at_k,
    highest,
    late,
    law,
    least,
    lowest,
    probability,
    problems,
    score,
    share_of_steps,
    simulated,
    spread,
    steps_to,
)
from core.claims.laws import Simulated, with_recorded
from core.paper.registry import entries
from core.run.paper_problems import given_benchmarks, runs_in_worlds
from core.settings.resolve import resolve
from core.verdicts.judge import judge_claim
from core.verdicts.unmeasured import cannot_test, lacking
from papers.deepseekmath_grpo import PAPER

A, B = final("reward").of("a"), final("reward").of("b")
ROOT = law("math:sqrt", 4.0)
numbers = st.floats(-1e6, 1e6)


def run(value, held_out=0.0, top1=0.0):
    """A record whose curve `reward` ends at a value."""
    return {
        "digest": f"d{value}",
        "curves": {"reward": [(1, 0.0), (9, value)], "held_out/accuracy": [(9, held_out)]},
        "start_scores": [{"mirrors": "gsm8k", "metric": "top1", "value": 1.0}],
        "scores": [{"mirrors": "gsm8k", "metric": "top1", "value": top1}],
        "sampling": {},
    }


def seeds(**arms):
    """The records of several seeds from the final values of each arm."""
    columns = zip(*arms.values(), strict=True)
    return [{arm: run(v) for arm, v in zip(arms, row, strict=True)} for row in columns]


def double(value, *, seed):
    return 2 * value + seed


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=4))
def test_arithmetic_is_done_seed_by_seed(pairs):
    cases = seeds(a=[a for a, _ in pairs], b=[b for _, b in pairs])
    assert (A - B).values(cases) == [a - b for a, b in pairs]
    assert (A + B).values(cases) == [a + b for a, b in pairs]
    assert (A + 1).values(cases) == (1 + A).values(cases) == [a + 1 for a, _ in pairs]
    assert (1 - A).values(cases) == [1 - a for a, _ in pairs]
    assert (A / 2).values(cases) == [a / 2 for a, _ in pairs]
    assert abs(A - B).values(cases) == [abs(a - b) for a, b in pairs]
    assert least(A, B, A + 1).values(cases) == [min(a, b) for a, b in pairs]
    assert spread(final("reward"), "a", "b").values(cases) == [abs(a - b) for a, b in pairs]


def test_a_ratio_by_zero_is_missing_and_no_crash():
    assert (1 / A).values(seeds(a=[4.0, 2.0])) == [0.25, 0.5]
    with pytest.raises(MissingMeasure, match="divides by zero"):
        (1 / A).values(seeds(a=[4.0, 0.0]))


@given(st.lists(numbers, min_size=3, max_size=6), numbers)
def test_a_deviation_is_over_seeds_and_ignores_a_shift(values, shift):
    found = deviation(A).values(seeds(a=values))
    assert len(found) == len(values)
    without = [stdev(values[:i] + values[i + 1 :]) for i in range(len(values))]
    n = len(values)
    assert mean(found) == pytest.approx(n * stdev(values) - (n - 1) * mean(without), abs=1e-3)
    assert deviation(A + shift).values(seeds(a=values)) == pytest.approx(found, abs=1e-3)


def test_the_jackknife_of_a_deviation_by_hand_and_too_few_seeds():
    # s = 1; without one seed 0.7071, 1.4142, 0.7071: 3 - 2 * each.
    by_hand = [1.5857864376, 0.1715728753, 1.5857864376]
    assert deviation(A).values(seeds(a=[1.0, 2.0, 3.0])) == pytest.approx(by_hand)
    with pytest.raises(MissingMeasure, match="at least 3 seeds, there are 2"):
        deviation(A).values(seeds(a=[1.0, 2.0]))


def test_the_best_arm_is_picked_on_held_out_problems_and_valued_on_the_test_set():
    arms = {"a": run(0.0, held_out=9.0, top1=10.0), "b": run(0.0, held_out=8.0, top1=99.0)}
    validated = final("held_out/accuracy")
    assert score("gsm8k").of(highest(validated, "a", "b")).values([arms]) == [10.0]
    assert score("gsm8k").of(lowest(validated, "a", "b")).values([arms]) == [99.0]
    one = score("gsm8k").of(highest(validated, "a", "b")) > score("gsm8k").of("c")
    assert Claim("c", "s", one).arms == ("a", "b", "c")


@pytest.mark.parametrize(
    "slip",
    [
        lambda: final("held_out/accuracy").of(highest(final("held_out/accuracy"), "a", "b")),
        lambda: highest(score("gsm8k"), "a", "b"),
        lambda: highest(final("held_out/accuracy"), "a"),
        lambda: least(A),
        lambda: A == B,
        lambda: A == 1.0,
        lambda: A != B,
        lambda: A > B > 1,
        lambda: (A > B) and (B > 1),
        lambda: max(A, B),
        lambda: not A,
        lambda: A in (1.0, 2.0),
        lambda: A > "b",
        lambda: late("reward") < A,
        lambda: A > True,
        lambda: A > None,
        lambda: A > ROOT,
        lambda: simulated("m:f", seeds=3) < A,
        lambda: A.about(B, within=0.0),
        lambda: A.about(B, within=float("nan")),
        lambda: (A > B).by(-1.0),
        lambda: (ROOT == 2).by(1.0),
        lambda: late("reward", 2.0),
        lambda: gain("reward", -0.5),
        lambda: share_of_steps("reward", "~=", 1.0),
        lambda: score(),
        lambda: at_k("maj"),
        lambda: at_k("mean", "gsm8k"),
        lambda: at_k("maj", "gsm8k", k=0),
        lambda: Claim("c", "s", A),
        lambda: Claim("c", "s", True),
        lambda: Claim("c", "s", (A > B, B > A)),
        lambda: Claim("c", "s", late("reward") == A),
    ],
)
def test_a_slip_is_refused_in_one_line(slip):
    with pytest.raises(BadClaim) as refused:
        slip()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("test", "verdict"),
    [
        (ROOT == 2, "held"),
        (ROOT == 2.0000001, "refuted"),
        (law("math:sqrt", 4.0) == ROOT, "held"),
        (ROOT.about(2.1, within=0.2), "held"),
        (ROOT.about(2.1, within=0.05), "refuted"),
        (ROOT > 2, "refuted"),
        (ROOT >= 2, "held"),
        (ROOT < 2.5, "held"),
        ((ROOT < 2.5).by(1.0), "refuted"),
        ((ROOT > 1.5).by(1.0), "refuted"),
        ((ROOT >= 2.5).by(1.0), "held"),
        ((ROOT <= 1.5).by(1.0), "held"),
        (law("math:dist", (0, 0), (3, 4)) / ROOT == 2.5, "held"),
        (law("core.laws.kl_variance:variance", "k1") > ROOT, "refuted"),
    ],
)
def test_a_law_is_judged_in_every_case(test, verdict):
    found = judge_claim(Claim("c", "s", test), {})
    assert (found["verdict"], found["seeds"], found["runs"]) == (verdict, [], [])


def test_sides_of_different_numbers_of_cases_are_refused():
    five, two = law("core.laws.kl_variance:variance", "k1"), law("builtins:list", (1.0, 2.0))
    with pytest.raises(BadClaim, match="5 and 2 cases"):
        judge_claim(Claim("c", "s", five > two), {})
    with pytest.raises(BadClaim, match="expected numbers"):
        judge_claim(Claim("c", "s", law("builtins:float", "nan") > 1), {})


def test_a_simulation_gives_one_number_a_seed_and_is_judged_over_seeds():
    one = simulated("test_claim_language:double", 3.0, seeds=4)
    assert "no record of double(3.0)" in judge_claim(Claim("c", "s", one > 1), {})["reason"]
    one = with_recorded(one, Simulated.simulate)
    found = judge_claim(Claim("c", "s", one > 6.5), {})
    assert found["left"]["values"] == [6.0, 7.0, 8.0, 9.0]
    assert (found["seeds"], found["verdict"]) == ([0, 1, 2, 3], "undecided")
    assert judge_claim(Claim("c", "s", one > 1), {})["verdict"] == "held"
    assert judge_claim(Claim("c", "s", one < 1), {})["verdict"] == "refuted"


def test_the_best_of_two_worlds_needs_runs_with_all_their_arms():
    by_arm = {"a": {0: run(5.0), 1: run(6.0)}, "b": {0: run(2.0), 1: run(4.0), 2: run(9.0)}}
    found = judge_claim(Claim("c", "s", A - B > 0), by_arm)
    assert (found["seeds"], found["left"]["values"]) == ([0, 1], [3.0, 2.0])
    assert found["left"]["measure"] == "(final(reward) of a - final(reward) of b)"
    assert found["left"]["arm"] is None
    assert judge_claim(Claim("c", "s", A > B), by_arm)["left"]["arm"] == "a"


def test_a_claim_of_the_starting_model_alone_is_read_from_any_run():
    one = Claim("c", "s", score("gsm8k").of(START) > 0)
    assert one.arms == ()
    assert judge_claim(one, {"a": {0: run(5.0)}})["left"]["values"] == [1.0]
    assert "no run of any arm" in judge_claim(one, {})["reason"]


def test_what_cannot_be_tested_keeps_its_reason_in_the_module_the_plan_and_the_verdict():
    one = Claim("c", "s", Untestable("needs image inputs"))
    found = judge_claim(one, {})
    assert (found["effect"], found["reason"]) == (None, "needs image inputs")
    settings = resolve(PAPER, scale="gpu").run
    assert lacking(one, settings, ()) == ["needs image inputs"]
    pairs = Claim("c", "s", probability("pairs/accuracy").of("a") > 50)
    measured = {"pairs/accuracy"}
    assert lacking(pairs, settings, ()) == ["probabilities are not measured (pairs/accuracy)"]
    assert not lacking(pairs, settings, measured)
    reason = "no held-out problems to measure pairs/accuracy on (heldout_problems=0)"
    assert lacking(pairs, replace(settings, heldout_problems=0), measured) == [reason]
    assert not cannot_test(PAPER, settings)


def test_every_measure_states_what_it_needs():
    assert score("x").needs == (Need("score", "x"),)
    assert at_k("maj", "x", k=4).needs == gain_at_k("pass", "x").needs == (Need("samples", "x"),)
    assert drawdown("reward").needs == (Need("curve", "reward"),)
    assert probability("nll").needs == (Need("probabilities", "nll"),)
    assert ROOT.needs == ()
    goal = steps_to("reward", final("reward").of("b")).of("a")
    assert [arm for arm, _ in goal.needs] == ["a", "b"]


SAMPLED = {
    "k": [1, 2, 4],
    "maj": [40.0, 40.0, 50.0],
    "pass": [40.0, 60.0, 80.0],
}
START_SAMPLED = {"k": [1, 2, 4], "maj": [30.0, 30.0, 35.0], "pass": [30.0, 50.0, 75.0]}


def test_accuracies_at_k_by_hand():
    record = {"sampling": {"s": {"mirrors": "x", "before": START_SAMPLED, "after": SAMPLED}}}
    assert at_k("maj", "x").read(record, "a") == 50.0
    assert at_k("maj", "x").read(record, START) == 35.0
    assert at_k("pass", "x", k=2).read(record, "a") == 60.0
    assert {at_k("avg", "x", k=k).read(record, "a") for k in (1, 2, 4, None)} == {40.0}
    assert gain_at_k("pass", "x", k=2).read(record, "a") == 10.0
    with pytest.raises(MissingMeasure, match=r"no pass@3; its K are \[1, 2, 4\]"):
        at_k("pass", "x", k=3).read(record, "a")


def test_probabilities_are_read_before_and_after():
    record = {"probabilities": {"nll": {"before": 2.0, "after": 1.0}}}
    assert probability("nll").read(record, START) == 2.0
    assert probability("nll").read(record, "a") == 1.0
    with pytest.raises(MissingMeasure, match="no probabilities 'pairs/accuracy'"):
        probability("pairs/accuracy").read(record, "a")


@pytest.mark.parametrize(
    ("test", "problem"),
    [
        (A > B, "no arm 'b'"),
        (score("y").of("a") > 1, "no benchmark 'y'"),
        (at_k("maj", "y").of(START) > 1, "no benchmark 'y'"),
        (late("reward").of(START) > A, "the starting model is not trained"),
        (law("math:squirt", 4.0) > 1, "no function 'math:squirt'"),
        (abs(1 - law("nowhere:f")) > 1, "no function 'nowhere:f'"),
        (simulated("math", seeds=2) > 1, "no function 'math'"),
    ],
)
def test_names_that_nobody_has_are_found_by_the_check(test, problem):
    found = list(problems(Claim("c", "s", test), ("a",), ("x",)))
    assert problem in "; ".join(found)
    assert not list(problems(Claim("c", "s", A > 1), ("a",), ("x",)))


@pytest.mark.parametrize("slug", list(entries()))
def test_claims_of_every_paper_travel_to_other_processes_and_name_what_is_there(slug):
    paper = entries()[slug].load()
    benchmarks = given_benchmarks(paper, runs_in_worlds(paper))
    for claim in paper.claims:
        assert list(problems(claim, paper.arms, benchmarks)) == []
        assert str(pickle.loads(pickle.dumps(claim)).test) == str(claim.test)
