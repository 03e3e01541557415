"""Gates of claims: a claim is judged only where its mechanism acts and no compared arm broke."""

from dataclasses import replace
from statistics import mean

import pytest

from core.claims import (
    START,
    BadClaim,
    Claim,
    Expected,
    Untestable,
    early,
    final,
    late,
    law,
    score,
    steps_to,
)
from core.claims.claim import problems
from core.claims.gates import AccuracyChange, accuracies
from core.cli.showing_plan import print_claims
from core.pages.mechanisms import STATISTICS
from core.paper.registry import entries, find_paper
from core.records.record import latest, read_records
from core.records.schema import claims_of, runs_of
from core.run.claim_plans import ClaimPlan, claim_plans
from core.settings.canonical import as_text
from core.verdicts.judge import judge_claim
from core.verdicts.plan_digests import changed_plans, plan_changes, plan_digests
from eval.stats.power import seeds_needed
from eval.stats.seeds import LOOKS, detectable

CLIP = "clip_ratio/high_mean"
HELD = "held_out/accuracy"
BETTER = late("reward").of("method") > late("reward").of("plain")
ACTS = late(CLIP).of("method") >= 0.01
# Held-out accuracy at steps 0 to 9, whose last third has the mean 41, and at its end 30.
STEADY = [[step, 40.0 + (step > 6)] for step in range(10)]
LATE_DIP = [*STEADY[:-1], [9, 39.0]]


def run(arm, seed, reward, clip=0.02, held=STEADY, scores=(), data="pocket"):
    """Return a run; `scores` are those of the start and of the policy on GSM8K, if given."""
    row = {"mirrors": "gsm8k", "metric": "top1"}
    start_scores, end_scores = ([{**row, "value": value}] for value in scores or (0.0, 0.0))
    curves = {"reward": [[0, 0.1], [9, reward]], CLIP: [[0, 0.0], [9, clip]], HELD: held}
    return {
        "digest": f"{arm}{seed}",
        "arm": arm,
        "seed": seed,
        "data": {"name": data},
        "curves": {name: points for name, points in curves.items() if points},
        "scores": end_scores if scores else [],
        "start_scores": start_scores if scores else [],
        "sampling": {},
    }


def runs(method=(), plain=()):
    """Return the runs of both arms over three seeds, with other fields of a seed if given."""
    arms = {"method": (0.8, method), "plain": (0.5, plain)}
    return {
        arm: {
            seed: run(arm, seed, reward + seed / 100 * (arm == "plain"), **fields)
            for seed, fields in enumerate(list(given) or [{}] * 3)
        }
        for arm, (reward, given) in arms.items()
    }


def verdict(by_arm, **gates):
    row = judge_claim(Claim("c", "s", BETTER, **gates), by_arm)
    return row["verdict"], row["reason"]


def fallen(points):
    return [[step, value - points * (step > 6)] for step, value in STEADY]


def test_a_claim_holds_where_its_mechanism_acts_and_is_inert_where_it_does_not():
    assert verdict(runs(), acts=ACTS)[0] == "held"
    idle = [{"clip": value} for value in (0.0, 0.004, 0.011)]
    word, reason = verdict(runs(method=idle), acts=ACTS)
    assert word == "inert"
    assert "late(clip_ratio/high_mean) of method is 0.005, expected >= 0.01" in reason
    assert "1 of 3 seeds pass" in reason
    assert verdict(runs(method=idle))[0] == "held"  # the same runs, without the gate


def test_a_gate_that_only_some_seeds_pass_holds_by_its_mean_and_says_so():
    some = [{"clip": value} for value in (0.005, 0.02, 0.02)]
    word, reason = verdict(runs(method=some), acts=ACTS)
    assert word == "held"
    assert "late(clip_ratio/high_mean) of method >= 0.01, which 2 of 3 seeds pass" in reason


def test_each_of_several_gates_counts():
    moves = abs(late(CLIP).of("plain") - early(CLIP).of("plain")) >= 0.5
    assert verdict(runs(), acts=(ACTS, moves))[0] == "inert"


@pytest.mark.parametrize("arm", ["method", "plain"])
def test_a_broken_arm_on_either_side_is_unhealthy_with_its_numbers(arm):
    broken = [{"held": fallen(points)} for points in (8.0, 9.0, 10.0)]
    word, reason = verdict(runs(**{arm: broken}))
    assert word == "unhealthy"
    assert f"accuracy change of {arm} is -8 (40.0 to 32.0 %), expected >= -1.5" in reason


@pytest.mark.parametrize(("points", "word"), [(2.4, "held"), (2.6, "unhealthy")])
def test_an_arm_may_end_one_and_a_half_points_below_its_start(points, word):
    """The last third stands one point above the start before the fall."""
    assert verdict(runs(plain=[{"held": fallen(points)}] * 3))[0] == word


def test_the_end_is_the_mean_of_the_last_third_and_not_the_last_point():
    assert verdict(runs(plain=[{"held": LATE_DIP}] * 3))[0] == "held"


def test_an_arm_that_the_claim_says_breaks_is_left_out():
    broken = runs(plain=[{"held": fallen(9.0)}] * 3)
    assert verdict(broken, healthy=("method",))[0] == "held"
    assert verdict(broken, healthy=("plain",))[0] == "unhealthy"
    assert verdict(broken, healthy=())[0] == "held"


@pytest.mark.parametrize("data", ["pocket", "prepared:pairs", "pocket+prepared:pairs"])
def test_scores_tell_health_where_a_preparation_chose_the_held_out_problems(data):
    """Where the held-out curve falls and the score does not, and the other way round."""
    better = {"scores": (40.0, 42.0)}
    for fall, after in ((9.0, 39.0), (0.0, 38.0)):
        plain = {"held": fallen(fall), "scores": (40.0, after), "data": data}
        word, reason = verdict(runs([better] * 3, [plain] * 3))
        falls = after < 39.0 if "prepared" in data else fall > 0
        assert word == ("unhealthy" if falls else "held"), reason
    unscored = {"held": fallen(9.0), "data": data}
    assert verdict(runs(plain=[unscored] * 3))[0] == "unhealthy"


def test_swapped_arms_have_the_same_gates_and_do_not_hold():
    swapped = replace(Claim("c", "s", BETTER), test=late("reward").of("plain") > BETTER.left)
    assert judge_claim(swapped, runs())["verdict"] == "refuted"
    broken = runs(plain=[{"held": fallen(9.0)}] * 3)
    rows = [judge_claim(claim, broken) for claim in (Claim("c", "s", BETTER), swapped)]
    assert [row["verdict"] for row in rows] == ["unhealthy", "unhealthy"]


def test_scores_and_then_the_reward_stand_for_held_out_accuracy():
    scored = runs(plain=[{"held": None}] * 3)
    for record in scored["plain"].values():
        row = {"mirrors": "gsm8k", "metric": "top1"}
        record["start_scores"] = [{**row, "value": 40.0}, {**row, "mirrors": "cmath", "value": 0.0}]
        record["scores"] = [{**row, "value": 30.0}]
    assert "(40.0 to 30.0 %)" in verdict(scored)[1]
    rewarded = runs(plain=[{"held": None}] * 3)
    assert verdict(rewarded)[0] == "held"  # the reward rises from 0.1
    for record in rewarded["plain"].values():
        record["curves"]["reward"] = [[0, 0.6], [9, 0.5]]
    assert "(60.0 to 50.0 %)" in verdict(rewarded)[1]


def test_an_accuracy_that_cannot_fall_is_replaced_by_one_that_can():
    """Held-out rows that the start cannot answer show no break that the scores show."""
    floor = runs(plain=[{"held": [[0, 0.0], [9, 0.0]]}] * 3)
    assert verdict(floor)[0] == "held"
    for record in floor["plain"].values():
        row = {"mirrors": "gsm8k", "metric": "top1"}
        record["start_scores"], record["scores"] = (
            [{**row, "value": value}] for value in (51.0, 10.0)
        )
    assert "(51.0 to 10.0 %)" in verdict(floor)[1]


def test_pages_show_the_accuracy_on_held_out_problems_though_it_cannot_fall():
    record = run("plain", 0, 0.5, held=[[0, 0.0], [9, 80.0]])
    row = {"mirrors": "gsm8k", "metric": "top1"}
    record |= {"start_scores": [{**row, "value": 40.0}], "scores": [{**row, "value": 90.0}]}
    assert accuracies(record, "plain") == [(0.0, 80.0), (40.0, 90.0), (10.0, 50.0)]
    assert AccuracyChange().stand(record, "plain") == (40.0, 90.0)
    (accuracy,) = [shown for shown in STATISTICS if shown.title == "Accuracy, %"]
    assert accuracy.read(record, "plain") == (0.0, 80.0)


def test_a_gate_that_cannot_be_read_is_undecided_with_the_reason():
    word, reason = verdict(runs(), acts=late("gap").of("method") >= 0.05)
    assert word == "undecided"
    assert "gap" in reason
    blind = runs(plain=[{"held": None}] * 3)
    for record in blind["plain"].values():
        del record["curves"]["reward"]
    about_clip = Claim("c", "s", late(CLIP).of("method") > late(CLIP).of("plain"))
    row = judge_claim(about_clip, blind)
    assert row["verdict"] == "undecided"
    assert "to compare with its start" in row["reason"]


def test_a_broken_arm_is_unhealthy_also_where_it_never_reaches_the_threshold():
    reach = steps_to(HELD, 45.0)
    test = reach.of("method") < reach.of("plain")
    reaching = [{"held": [[0, 40.0], [9, 50.0]]}] * 3
    broken = [{"held": fallen(9.0)}] * 3
    row = judge_claim(Claim("c", "s", test), runs(method=reaching, plain=broken))
    assert (row["verdict"], row["effect"], len(row["runs"])) == ("unhealthy", None, 6)
    steady = judge_claim(Claim("c", "s", test), runs(method=reaching))
    assert (steady["verdict"], steady["runs"]) == ("undecided", [])


def test_a_claim_about_the_start_is_refuted_and_not_gated():
    better = Claim("c", "s", final(HELD).of("method") > score("gsm8k").of(START))
    assert [gate.below for gate in better.gates] == []
    about_reward = Claim("c", "s", late("reward").of("method") > 0.0)
    assert [gate.below for gate in about_reward.gates] == ["unhealthy"]


def test_the_verdict_holds_the_values_of_its_gates_by_seed():
    gates = judge_claim(Claim("c", "s", BETTER, acts=ACTS), runs())["gates"]
    assert [(gate["below"], gate["arm"], gate["values"]) for gate in gates] == [
        ("inert", "method", [0.02] * 3),
        ("unhealthy", "method", [1.0] * 3),
        ("unhealthy", "plain", [1.0] * 3),
    ]
    assert gates[0]["bound"] == 0.01


def test_a_gate_is_part_of_a_claims_text_only_where_it_is_declared():
    plain, gated = Claim("c", "s", BETTER), Claim("c", "s", BETTER, acts=ACTS, healthy=())
    assert as_text(plain) == f"Claim(slug='c', statement='s', test={as_text(BETTER)})"
    assert "acts=" in as_text(gated)
    assert "healthy=()" in as_text(gated)


def test_a_claim_needs_the_runs_and_curves_of_its_gates():
    claim = Claim("c", "s", BETTER, acts=late(CLIP).of("control") >= 0.01, healthy=("methd",))
    assert claim.arms == ("method", "plain", "control")
    assert [*problems(claim, ["method", "plain"], [])] == [
        "no arm 'methd', which must stay healthy",
        "no arm 'control'",
    ]


def test_a_law_on_the_data_of_the_runs_may_be_a_gate():
    cut = law("core.laws.packed_rows:cut_ledgers", "wrapped")
    assert verdict(runs(), acts=cut >= 0.2)[0] == "held"
    word, reason = verdict(runs(), acts=(ACTS, cut >= 0.9))
    assert word == "inert"
    assert reason.endswith("expected >= 0.9, which 0 of 4 cases pass")


@pytest.mark.parametrize("acts", [BETTER, late(CLIP).of("method"), (ACTS, 0.01)])
def test_a_gate_is_a_comparison_with_a_number(acts):
    with pytest.raises(BadClaim, match="expected comparisons of a side with a number"):
        Claim("c", "s", BETTER, acts=acts)


@pytest.mark.parametrize("test", [Untestable("why"), law("core.laws.kl_variance", "k1") > 0.0])
def test_only_a_claim_that_runs_test_has_gates(test):
    with pytest.raises(BadClaim, match="are for claims that runs test"):
        Claim("c", "s", test, healthy=())


def test_a_description_shows_its_numbers_without_a_verdict_or_a_gate():
    row = judge_claim(Claim("c", "s", BETTER, describes="it must"), runs([{"held": fallen(9)}] * 3))
    assert (row["verdict"], row["reason"], row["p"], row["gates"]) == (
        "described", "it must", None, [],
    )  # fmt: skip
    assert row["effect"] == pytest.approx(0.29)
    assert row["low"] < row["effect"] < row["high"]
    assert judge_claim(Claim("c", "s", BETTER), runs())["verdict"] == "held"
    with pytest.raises(BadClaim, match="without gates describes"):
        Claim("c", "s", BETTER, acts=ACTS, describes="it must")


def fall_of(run):
    """By how much the accuracy of a run falls, of scores where its start chose the held-out
    problems."""
    if "prepared:" not in run["data"]["name"] or not run["start_scores"]:
        return fall(run["curves"][HELD])
    before, after = (
        {(row["mirrors"], row["mode"], row["metric"]): row["value"] for row in run[name]}
        for name in ("start_scores", "scores")
    )
    return mean(before[name] - after[name] for name in before.keys() & after.keys())


@pytest.mark.parametrize("slug", [*entries()])
def test_no_published_verdict_is_decided_over_a_broken_arm(slug):
    """The accuracy is read from the curves here, apart from the code of the gate."""
    records = read_records(slug)
    runs_by_digest = {run["digest"]: run for run in runs_of(records)}
    claims = {claim.slug: claim for claim in find_paper(slug).claims}
    verdicts = [row for record in claims_of(latest(records), "cpu") for row in record["verdicts"]]
    for row in verdicts:
        if row["runs"] and row["verdict"] in ("held", "refuted", "tie"):
            excepted = {*claims[row["id"]].arms} - {
                g.test.left.arm for g in claims[row["id"]].gates if g.below == "unhealthy"
            }
            judged = [run for run in map(runs_by_digest.get, row["runs"]) if HELD in run["curves"]]
            for arm in {run["arm"] for run in judged} - excepted:
                falls = [fall_of(run) for run in judged if run["arm"] == arm]
                assert mean(falls) <= 1.5, (row["id"], arm)


def fall(points):
    last_third = [value for step, value in points if step > 2 / 3 * points[-1][0]]
    return points[0][1] - mean(last_third)


def judged(claim, by_arm):
    """Return the part of a record of verdicts that holds the plan of a claim."""
    paper = replace(find_paper("ppo"), claims=(claim,))
    records = [record for by_seed in by_arm.values() for record in by_seed.values()]
    planned = plan_digests(paper, records)
    verdicts = [judge_claim(claim, by_arm)]
    return {"kind": "claims", "paper": "ppo", "verdicts": verdicts, "planned": planned}


def configured(learning_rate, seeds="012"):
    arms = {
        arm: {int(seed): run(arm, int(seed), reward + int(seed) / 100) for seed in seeds}
        for arm, reward in (("method", 0.8), ("plain", 0.5))
    }
    for records in arms.values():
        for record in records.values():
            record["config"] = {"learning_rate": learning_rate}
    return arms


def test_the_plan_of_a_claim_is_not_changed_after_its_runs():
    claim, runs_now = Claim("c", "s", BETTER, acts=ACTS), configured(1e-3)
    first = {**judged(claim, runs_now), "created": "1", "digest": "first"}
    reworded = replace(claim, statement="In other words.")
    assert judged(reworded, runs_now)["planned"] == first["planned"]
    changes = (
        replace(claim, acts=late(CLIP).of("method") >= 0.001),
        replace(claim, test=BETTER.by(0.1)),
        replace(claim, healthy=()),
        replace(claim, expects=Expected(effect=0.3, spread=0.1)),
    )
    for changed in changes:
        later = {**judged(changed, runs_now), "created": "2", "digest": "later"}
        (line,) = changed_plans([later, first], untold)
        assert line.startswith("ppo/later.json: c was changed after its judged runs had begun")
        on_new_runs = judged(changed, configured(1e-3, seeds="345"))
        new = {**on_new_runs, "created": "2", "digest": "new"}
        assert [*changed_plans([first, new], untold)] == []
        records = [record for by_seed in runs_now.values() for record in by_seed.values()]
        assert plan_changes(replace(find_paper("ppo"), claims=(changed,)), first, records) == ["c"]
    assert [*changed_plans([first, {**first, "created": "2", "digest": "again"}], untold)] == []


def untold(record, claim):
    del record, claim
    return False


def test_a_changed_plan_is_history_once_it_is_put_back_and_told():
    claim, runs_now = Claim("c", "s", BETTER, acts=ACTS), configured(1e-3)
    changed = replace(claim, healthy=())
    first = {**judged(claim, runs_now), "created": "1", "digest": "first"}
    between = {**judged(changed, runs_now), "created": "2", "digest": "between"}
    again = {**first, "created": "3", "digest": "again"}

    def told(record, slug):
        return (record["digest"], slug) == ("between", "c")

    assert [*changed_plans([first, between, again], told)] == []
    for records, announced in (
        ([first, between, again], untold),
        ([first, between], told),  # it was not put back
        ([first, again | {"created": "2"}, between | {"created": "3"}], told),
    ):
        (line,) = changed_plans(records, announced)
        assert line.startswith("ppo/between.json: c was changed")


def test_a_plan_holds_the_settings_of_the_arms_and_needs_the_runs_of_all():
    claim = Claim("c", "s", BETTER, acts=ACTS)
    one, other = judged(claim, configured(1e-3)), judged(claim, configured(1e-4))
    assert one["planned"] != other["planned"]
    assert judged(claim, {"method": configured(1e-3)["method"]})["planned"] == {}
    assert judged(Claim("c", "s", BETTER), configured(1e-3))["planned"] == {}


def test_the_seeds_of_an_expected_effect_are_the_first_number_that_detects_it():
    seeds = seeds_needed(1.0, 1.0)
    assert 8 <= seeds <= 11  # (1.96 + 0.84)^2 = 7.8 with known variance, more with Student's
    assert detectable(1.0 / seeds**0.5, seeds - 1) <= 1.0
    assert detectable(1.0 / (seeds - 1) ** 0.5, seeds - 2) > 1.0
    assert seeds_needed(2.0, 2.0) == seeds
    assert seeds_needed(1.0, 1.0, 0.015) > seeds
    assert seeds_needed(0.0, 1.0) is None


def test_the_plan_of_a_paper_lists_gates_and_the_seeds_of_expected_effects():
    above = replace(Claim("above", "s", BETTER.by(0.5)), expects=Expected(effect=1.5, spread=1.0))
    same = Claim("same", "s", BETTER.left.about(BETTER.right, within=1.5), acts=ACTS)
    same = replace(same, expects=Expected(effect=-0.5, spread=1.0))
    exact = Claim("exact", "s", law("core.laws.kl_variance:k1", 1.0) > 0.0)
    plans = claim_plans(replace(find_paper("ppo"), claims=(above, same, exact)))
    assert [plan.claim for plan in plans] == ["above", "same"]
    level = min(look.level for look in LOOKS)
    assert plans[0].seeds == plans[1].seeds == seeds_needed(1.0, 1.0, level)
    assert plans[1].gates == [
        ("inert", "late(clip_ratio/high_mean) of method >= 0.01"),
        ("unhealthy", "accuracy change of method >= -1.5"),
        ("unhealthy", "accuracy change of plain >= -1.5"),
    ]


def test_a_plan_without_gates_or_expected_effects_prints_no_empty_table(capsys):
    bare = ClaimPlan(claim="bare", gates=[], expects=None, seeds=None)
    print_claims([bare])
    assert capsys.readouterr().out == ""
    print_claims([replace(bare, gates=[("inert", "late(reward) of method >= 0")])])
    head, row = capsys.readouterr().out.split("\n")[1:3]
    assert head.startswith("gate of a claim  ")
    assert row.startswith("bare  ")
