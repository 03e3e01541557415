"""`--claims` compares arms at the best of several learning rates, which no test problem chooses."""

import json
from dataclasses import replace

import pytest

from core.claims import START, Claim, score
from core.pages.report import report_files
from core.records.answers import content_of, name_of
from core.records.fair import is_tuned
from core.records.places import record_file
from core.records.record import read_records, standard
from core.records.schema import runs_of, tunings_of
from core.run.leftovers import leftovers
from core.run.order import run_order
from core.run.plan import make_plan
from core.run.request import Order
from core.settings.resolve import resolve
from core.settings.run_settings import TRIAL_SEED
from core.verdicts.consistency import derived_problems
from papers.deepseekmath_grpo import PAPER

pytestmark = pytest.mark.long
GSM8K = score("gsm8k")
ABOVE = Claim("above", "s", GSM8K.of("grpo") > GSM8K.of("online-rft"))
RISES = Claim("rises", "s", GSM8K.of("rft") > GSM8K.of(START))
BROKEN = 1.0  # a learning rate after which no problem is solved
FAIR = replace(
    PAPER,
    claims=(ABOVE, RISES),
    benchmarks=("gsm8k",),
    arms={
        "grpo": {"learning_rate": BROKEN, "rate_factors": (1e-5, 1.0)},
        "online-rft": {**PAPER.arms["online-rft"], "rate_factors": (1.0, 1e4)},
        "rft": {**PAPER.arms["rft"], "rate_factors": ()},
    },
    profiles={
        "cpu": {
            "max_steps": 2,
            "num_generations": 8,
            "per_device_train_batch_size": 16,
            "max_completion_length": 48,
            "eval_max_tokens": 48,
            "eval_limit": 4,
            "at_k_samples": 4,
            "heldout_problems": 8,
        }
    },
)
ORDER = Order(paper=FAIR, arms=tuple(FAIR.arms), seeds=(0,), fair=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An empty folder for everything that this file runs."""
    return tmp_path_factory.mktemp("fair")


@pytest.fixture(autouse=True)
def root(folder, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(folder))
    return folder


@pytest.fixture
def outcome(root):
    """What the order came to; made by the first test, and there for the others."""
    del root
    return run_order(ORDER)


def stages(folder, name):
    """The end notes of all stages of a name, by their key."""
    notes = folder.glob(f"runs/{name}-*/done.json")
    return {path.parent.name[-16:]: json.loads(path.read_text()) for path in notes}


def trial_keys(arm):
    return [stage.key for _, stage, _ in make_plan(resolve(FAIR, arm=arm), 0).trials]


def test_the_choice_is_that_of_the_held_out_curve(outcome):
    ends = {
        tuning["arm"]: {one["factor"]: one["curve"][-1] for one in tuning["trials"]}
        for tuning in outcome.tunings
    }
    assert {arm: {*found} for arm, found in ends.items()} == {
        "grpo": {1e-5, 1.0},
        "online-rft": {1.0, 1e4},
    }
    assert ends["grpo"][1.0][1] < ends["grpo"][1e-5][1]
    assert ends["online-rft"][1e4][1] < ends["online-rft"][1.0][1]
    assert [tuning["best"] for tuning in outcome.tunings] == [1e-5, 1.0]


def test_every_arm_runs_at_its_own_rate_and_once_more_where_another_is_better(outcome):
    ran = [(run["arm"], run["config"]["learning_rate"]) for run in outcome.runs]
    rates = {(arm, rate["value"]): rate["source"] for arm, rate in ran}
    assert [arm for arm, _ in ran] == ["grpo", "grpo", "online-rft", "rft"]
    assert rates["grpo", 1e-5] == f"best of 2 on valid, seed {TRIAL_SEED}"
    assert rates["grpo", BROKEN] == "arm grpo"
    assert len(rates) == 4
    shown = runs_of(standard(read_records()))
    assert {(run["arm"], run["config"]["learning_rate"]["value"]) for run in shown} == (
        rates.keys() - {("grpo", BROKEN)}
    )


def test_verdicts_stand_at_the_best_rates_and_beside_them_at_the_arms_own(outcome):
    above, rises = outcome.claims["verdicts"]
    own_above, own_rises = outcome.claims["own_rates"]
    assert own_above["left"]["values"] == [0] < above["left"]["values"]
    assert own_above["right"] == above["right"]
    assert own_rises["runs"] == rises["runs"]


def test_no_trial_is_asked_a_test_problem_and_no_judged_run_has_its_seed(outcome, root):
    trials = {key for arm in FAIR.arms for key in trial_keys(arm)}
    trained = stages(root, "train")
    assert len(trials) == 4
    assert len(trained) == len(trials) + len(outcome.runs)
    seeds = {key: note["inputs"]["seed"] for key, note in trained.items()}
    assert {key for key, seed in seeds.items() if seed == TRIAL_SEED} == trials
    answered = {note["inputs"]["policy"] for note in stages(root, "eval").values()}
    assert not answered & trials
    assert answered > trained.keys() - trials


def test_the_same_command_trains_nothing_again(outcome, root):
    before = {path: path.stat().st_mtime_ns for path in root.glob("runs/*/done.json")}
    again = run_order(ORDER)
    assert {path: path.stat().st_mtime_ns for path in root.glob("runs/*/done.json")} == before
    assert again.claims["digest"] == outcome.claims["digest"]
    assert again.tunings == outcome.tunings


def test_a_plan_shows_the_trials_with_their_cost_and_state(outcome):
    del outcome
    plan = make_plan(resolve(FAIR), 0)
    assert [(rate, state) for rate, _, state in plan.trials] == [(1e-5, "done"), (1.0, "done")]
    assert plan.cost["completions of trials, with --claims"] == 2 * plan.cost["completions"]
    alone = make_plan(resolve(FAIR, arm="rft"), 0)
    assert alone.trials == []
    assert not any("trials" in name for name in alone.cost)


def test_the_page_shows_what_was_tried_and_both_verdicts(outcome, tmp_path):
    page = report_files(FAIR, standard(read_records()), "cpu", tmp_path)["report.md"]
    assert "with each arm at its own learning rate: " in page
    assert "takes 1e-05; at the edge: a rate beyond may be better" in page
    assert "its own; at the edge" in page
    assert all(tuning["digest"] in page for tuning in outcome.tunings)


def forged(change):
    """The records of the order after a change of one, which is named as it is then."""
    records = json.loads(json.dumps(read_records()))
    changed = change(records)
    changed["content"] = content_of(changed)
    changed["digest"], old = name_of(changed), changed["digest"]
    return json.loads(json.dumps(records).replace(old, changed["digest"]))


def problems(records):
    """What does not follow, but for what two steps cannot tell apart: arms by their curves."""
    return [line for line in derived_problems(FAIR, records) if " are those of " not in line]


def tuning_of(records):
    return tunings_of(records)[0]


def tuned_run(records):
    return next(run for run in runs_of(records) if is_tuned(run))


def choose_another(records):
    tuning_of(records)["best"] = 1.0
    return tuning_of(records)


def raise_the_worse(records):
    tuning_of(records)["trials"][1]["curve"][-1][1] = 100.0
    return tuning_of(records)


def other_rates(records):
    tuning_of(records)["trials"][0]["learning_rate"] = 3e-5
    return tuning_of(records)


def judged_seed(records):
    tuning_of(records)["seed"] = 0
    return tuning_of(records)


def no_trial(records):
    gone = tuning_of(records)
    records.remove(gone)
    return gone


def other_rate(records):
    tuned_run(records)["config"]["learning_rate"]["value"] = 2e-5
    return tuned_run(records)


def own_verdict(records):
    claims = next(record for record in records if record["kind"] == "claims")
    claims["own_rates"][0]["verdict"] = "held"
    return claims


FORGERIES = {
    choose_another: "its best factor is 1.0, its curves give 1e-05",
    raise_the_worse: "its curves give 1",
    other_rates: "it tried [[1e-05, 3e-05]",
    judged_seed: "its seed is 0, that of trials is 1000",
    no_trial: "its learning rate was chosen by trials that are not there",
    other_rate: "'value': 2e-05}, its arm asks for {",
    own_verdict: "those at the arms' own learning rates",
}


def test_records_are_derived_again(outcome):
    del outcome
    assert problems(read_records()) == []


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda one: one.__name__)
def test_a_forgery_of_what_was_tried_is_seen(forgery, outcome):
    del outcome
    assert FORGERIES[forgery] in "\n".join(problems(forged(forgery)))


def test_trials_are_kept_while_their_record_stands(outcome):
    assert leftovers() == []
    for tuning in outcome.tunings:
        record_file(FAIR.slug, tuning["digest"]).unlink()
    trials = {key for arm in FAIR.arms for key in trial_keys(arm)}
    left = [one.path.name for one in leftovers() if one.path.name.startswith("train-")]
    assert {name[-16:] for name in left} == set(trials)
    assert all(name.startswith(f"train-{FAIR.slug}-") for name in left)
