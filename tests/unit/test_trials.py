"""Trials of learning rates: which is best, whom they choose for, and what they never look at."""

from dataclasses import replace
from itertools import permutations

import pytest

from core.claims import START, Claim, score
from core.families.table import find_family
from core.paper.registry import entries, find_paper
from core.records.fair import at_edge, best_of, fair
from core.run.order import run_order
from core.run.paper_problems import settings_problems
from core.run.plan import make_plan
from core.run.request import Order
from core.settings.resolve import resolve
from core.settings.run_settings import ON_TRIAL, SCORING, TRIAL_SEED
from core.spread.launch import run_of, words_of
from core.stages.chain import Chain
from core.verdicts.trials import compared_arms, rate_of, trials_of
from eval.errors import BadValue
from papers.deepseekmath_grpo import PAPER

OTHERWISE = ("eval_limit=3", "at_k_samples=4", "at_k_limit=2", "at_k_temperature=0.9")
# Models of rewards and texts answer no benchmark, so that no setting of scoring acts on them.
ARMS = [
    (entry, arm)
    for entry in entries().values()
    for arm in (entry.load().arms or (entry.load().main_arm,))
    for family in [find_family(entry.load().family_of(arm))]
    if not (family.gives_rewards or family.gives_texts)
]


def trial(factor, *accuracy):
    curve = [[step, one] for step, one in enumerate(accuracy)]
    return {"factor": factor, "learning_rate": factor, "steps": len(accuracy), "curve": curve}


def run(arm, source, scale="cpu"):
    config = {"learning_rate": {"value": 1.0, "source": source}}
    return {"kind": "run", "scale": scale, "arm": arm, "config": config}


def tuning(arm, best, scale="cpu"):
    return {"kind": "tuning", "scale": scale, "arm": arm, "best": best, "trials": []}


OWN, BETTER = "profile cpu", f"best of 3 {ON_TRIAL}"
ENDS = [
    ((10.0, 20.0, 30.0), 3.0),
    ((30.0, 20.0, 10.0), 1 / 3),
    ((20.0, 20.0, 20.0), 1.0),  # of equal ones its own
    ((20.0, 10.0, 20.0), 1 / 3),  # then the lower
    ((20.0, 20.0, 10.0), 1.0),
]


@pytest.mark.parametrize(("ends", "best"), ENDS)
def test_the_best_trial_is_the_one_with_the_highest_end_whatever_came_before(ends, best):
    rows = [
        trial(factor, 50.0 - end, end) for factor, end in zip((1 / 3, 1.0, 3.0), ends, strict=True)
    ]
    assert {best_of(some)["factor"] for some in permutations(rows)} == {best}
    assert at_edge({"trials": rows, "best": best}) == (best != 1)


def test_an_arm_is_shown_at_one_rate_only():
    own, better, other = run("a", OWN), run("a", BETTER), run("b", OWN)
    moved = tuning("a", 3.0)
    assert fair([own, better, other, moved]) == [better, other, moved]
    assert fair([own, better, other, tuning("a", 1.0)]) == [own, other, tuning("a", 1.0)]
    assert fair([own, other, moved]) == [own, other, moved]  # until it has run there
    assert fair([own, moved, run("a", BETTER, "gpu")]) == [own, moved]


@pytest.mark.parametrize(("entry", "arm"), ARMS, ids=lambda one: getattr(one, "slug", one))
def test_no_question_about_a_test_problem_is_part_of_a_trial(entry, arm):
    """All that a trial depends on is in its key; its curve is of problems kept from training."""
    paper = entry.load()
    resolved = resolve(paper, arm=arm)
    fields = {argument.partition("=")[0] for argument in OTHERWISE}
    assert fields < SCORING
    asked = resolve(paper, arm=arm, arguments=OTHERWISE)
    fewer = resolve(replace(paper, benchmarks=paper.benchmarks[:1], claims=()), arm=arm)
    keys = [
        [Chain(one, TRIAL_SEED).train.key for one in trials_of(some)]
        for some in (resolved, asked, fewer)
    ]
    assert keys[0] == keys[1] == keys[2]
    given = resolved.run.rate_factors
    factors = given if len(given) > 1 else ()  # one rate is not tried
    assert len({*keys[0]}) == len(factors)
    if resolved.family.trains:
        # None where a regime fixes the rate, higher ones where the best would be at the end.
        assert factors in ((), (1 / 3, 1.0, 3.0), (1.0, 3.0, 9.0))
        expected = [factor * rate_of(resolved) for factor in factors]
        assert [rate_of(one) for one in trials_of(resolved)] == pytest.approx(expected, rel=0.01)
        own = [one for one in trials_of(resolved) if one.factor == 1]
        assert all(one.values == resolved.values for one in own)


@pytest.mark.parametrize(("entry", "arm"), ARMS, ids=lambda one: getattr(one, "slug", one))
def test_a_process_of_a_launch_trains_what_was_tried(entry, arm):
    own = resolve(entry.load(), arm=arm, arguments=OTHERWISE)
    before = resolve(entry.load(), arm=arm)
    prepared = () if before.world.is_bare else before.prepared.values()  # of no paper: not launched
    for one in (own, *trials_of(own), *prepared):
        assert run_of(*words_of(one)) == one


def test_only_arms_that_claims_compare_are_tried():
    controls = {"shuffled-rewards", "own-samples"}
    assert compared_arms(PAPER) == {*PAPER.arms} - controls
    alone = replace(PAPER, claims=(Claim("c", "s", score("gsm8k").of("rft") > 0.0),))
    assert compared_arms(alone) == {"rft"}
    assert make_plan(resolve(alone), 0).trials == []
    assert len(make_plan(resolve(alone, arm="rft"), 0).trials) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("rate_factors=(0.5,2.0)",), "1 among them"),
        (("rate_factors=(1.0,1.0)",), "1 among them"),
        (("rate_factors=(1.0,-1.0)",), "above 0"),
        (("rate_factors=(1.0,2.0)", "learning_rate=1e-3"), "learning_rate is given"),
        (("rate_factors=(1.0,2.0)", "heldout_problems=0"), "no problems are held out"),
    ],
)
def test_factors_that_cannot_act_are_refused(arguments, words):
    with pytest.raises(BadValue, match=words):
        make_plan(resolve(PAPER, arguments=arguments), 0)


@pytest.mark.parametrize(
    "arguments", [("learning_rate=1e-3",), ("heldout_problems=0",), ("rate_factors=()",)]
)
def test_a_rate_that_is_given_is_taken_and_nothing_is_tried(arguments):
    assert trials_of(resolve(PAPER, arguments=arguments)) == []


def test_what_an_order_cannot_choose_fairly_is_refused_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    with pytest.raises(BadValue, match="tried with --claims only"):
        run_order(Order(paper=PAPER, arms=("grpo",), arguments=("rate_factors=()",)))
    with pytest.raises(BadValue, match="seed 1000 is that of trials"):
        run_order(Order(paper=PAPER, arms=("grpo",), seeds=(TRIAL_SEED,), fair=True))
    fast = {"learning_rate": 3 * rate_of(resolve(PAPER))}
    faster = replace(PAPER, arms={**PAPER.arms, "fast": fast})
    claim = Claim("c", "s", score("gsm8k").of("fast") > score("gsm8k").of("grpo"))
    alike = replace(faster, claims=(claim,))
    words = "arms grpo and fast try one training"
    with pytest.raises(BadValue, match=words):
        run_order(Order(paper=alike, arms=("grpo", "fast"), fair=True))
    assert any(words in line for line in settings_problems(alike, "cpu"))
    assert list((tmp_path / "runs").glob("*")) == []


def test_an_arm_that_a_claim_compares_with_its_start_has_trials():
    """A regime has one rate for its arms, at which training itself may lose."""
    one_rate = replace(PAPER, arms={"grpo": {"at": {"cpu": {"rate_factors": ()}}}})
    started = Claim("c", "s", score("gsm8k").of("grpo") > score("gsm8k").of(START))
    gate = score("gsm8k").of(START) >= 10.0
    alone = Claim("c", "s", score("gsm8k").of("grpo") > 0.0, acts=gate)
    lines = [*settings_problems(replace(one_rate, claims=(started,)), "cpu")]
    assert [line for line in lines if "claim c compares arm grpo with its start" in line] == lines
    assert len(lines) == 1
    assert [*settings_problems(replace(one_rate, claims=(alone,)), "cpu")] == []
    assert [*settings_problems(replace(PAPER, claims=(started,)), "cpu")] == []
    assert [*settings_problems(replace(one_rate, claims=(started,)), "paper")] == []
    zero = resolve(find_paper("deepseek-r1"), arm="zero")
    assert [rate_of(one) for one in trials_of(zero)] == pytest.approx([6.67e-5, 2e-4, 6e-4])
