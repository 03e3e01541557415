"""Profiles: algorithms by the words of a command, their trainings, and scores from records."""

from typing import Any

import pytest

from core.paper.registry import find_paper, whole_papers
from core.profiles.entries import ENTRIES
from core.profiles.mechanisms import MECHANISMS, PLAIN
from core.profiles.naming import OF_THE_WORLD, find_algorithm
from core.profiles.probes import PROBES
from core.profiles.profiling import find_probes, make_profile
from core.profiles.runs import FACTORS, ProfileRuns, chain_of, profile_paper
from core.profiles.scores import aggregates, effect_of, score_rows
from core.profiles.trainings import TRAININGS
from core.records.schema import TrialRow
from core.settings.refusals import check_run
from eval.errors import BadValue, ReproError, UnknownName

OWN = """
import torch
from core import GRPOTrainer

class Squared(GRPOTrainer):
    def advantages(self, scored):
        advantages = super().advantages(scored)
        return advantages.sign() * advantages.square()
"""
POLICY_GRADIENT = [
    paper
    for paper in whole_papers()
    if paper.family in ("grpo", "rloo", "ppo") and not paper.not_run
]


@pytest.fixture(autouse=True)
def no_plugins(monkeypatch):
    """The files that a test names are registered for it alone."""
    monkeypatch.setenv("REPRO_PLUGINS", "")


def settings(words, training="choice"):
    return chain_of(find_algorithm(words), training, 20).resolved


def key(algorithm, training="choice"):
    training_stage: Any = chain_of(algorithm, training, 20).train
    return training_stage.key


def scored(*records) -> Any:
    (row,) = score_rows(*records)
    return row


@pytest.mark.parametrize("paper", POLICY_GRADIENT, ids=lambda paper: paper.slug)
def test_every_policy_gradient_paper_enters_most_trainings(paper):
    algorithm = find_algorithm([paper.slug])
    reasons = {}
    for name in TRAININGS:
        try:
            check_run(chain_of(algorithm, name, 20).resolved)
        except ReproError as error:
            reasons[name] = str(error)
    assert len(reasons) <= 1 or paper.slug == "gfpo"  # whose groups of 24 fill no rollout of 512
    assert all("\n" not in reason for reason in reasons.values())


def test_an_algorithm_has_its_own_settings_and_the_world_has_the_others():
    resolved = settings(["dapo"])
    assert resolved.config["rollout_selection"] == "filled"
    assert resolved.config["epsilon_high"] == 0.28
    plain = settings(["grpo"])
    for name in OF_THE_WORLD & resolved.config.keys():
        assert resolved.config[name] == plain.config[name]
    assert settings(["dapo"], "small-groups").config["num_generations"] == 4


def test_corrections_of_the_sampler_act_where_the_sampler_is_another_one():
    name = "vllm_importance_sampling_correction"
    assert settings(["tis"], "old-sampler").config[name] is True
    assert settings(["dapo"], "old-sampler").config[name] is False
    assert name not in settings(["tis"]).config
    assert settings(["tis"]).config["loss_type"] == "dapo"


def test_settings_win_over_those_of_the_algorithm_and_are_in_its_name():
    algorithm = find_algorithm(["dapo", "epsilon_high=0.4", "beta=0.1"])
    assert algorithm.name == "dapo epsilon_high=0.4 beta=0.1"
    assert algorithm.settings["epsilon_high"] == 0.4
    assert find_algorithm(["loss_type=dr_grpo"]).settings == {"loss_type": "dr_grpo"}
    arm = find_algorithm(["dapo:no-dynamic-sampling"])
    assert arm.settings["rollout_selection"] == "all"


def test_a_file_holds_a_paper_with_arms_or_a_class_whatever_its_name_begins_with(tmp_path):
    paper = tmp_path / "own_paper.py"
    paper.write_text(
        "from dataclasses import replace\nfrom papers.dr_grpo import PAPER as BASE\n"
        "PAPER = replace(BASE, slug='own-paper')\n"
    )
    assert find_algorithm([str(paper)]).settings["loss_type"] == "dr_grpo"
    assert find_algorithm([f"{paper}:no-std"]).settings["loss_type"] == "grpo"
    small = tmp_path / "small_name.py"
    small.write_text(OWN.replace("Squared", "squared"))
    assert find_algorithm([f"{small}:squared"]).trainer == f"{small}:squared"


def test_a_class_of_trainers_trains_in_place_of_its_family(tmp_path):
    file = tmp_path / "squared.py"
    file.write_text(OWN)
    algorithm = find_algorithm([f"{file}:Squared"])
    assert (algorithm.name, algorithm.family) == ("Squared", "grpo")
    own, plain = settings([f"{file}:Squared"]), settings(["grpo"])
    assert own.run.trainer == f"{file}:Squared"
    assert key(algorithm) != key(PLAIN)
    assert own.config == plain.config


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["dappo"], "no algorithm 'dappo': did you mean dapo"),
        (["cmath"], "cmath: the family evaluation can be trained in no world"),
        (["papo"], "papo is not run here: "),
        (["dapo", "learning_rate=1e-3"], "learning_rate=1e-3: the worlds of a profile decide it"),
        (["dapo", "rewards=Accuracy"], "rewards=Accuracy: the worlds of a profile decide it"),
        (["dapo", "epsilon_hgih=0.3"], "no field 'epsilon_hgih': did you mean epsilon_high"),
        (["dapo", "grpo"], "dapo and grpo: expected one algorithm"),
        (["core:GRPOConfig"], "expected a class that extends a trainer of core"),
        (["nowhere.at_all:Trainer"], "import failed with ModuleNotFoundError"),
        ([f"{__file__}:Missing"], "the file defines no class Missing, and no PAPER with arms"),
    ],
)
def test_a_word_that_names_no_algorithm_is_refused_in_a_line(words, line):
    with pytest.raises(ReproError) as caught:
        find_algorithm(words)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_probes_and_too_few_seeds_are_refused():
    with pytest.raises(UnknownName, match="did you mean many-updates"):
        find_probes(["many-update"])
    with pytest.raises(UnknownName, match="no probe ''"):
        find_probes(["", ""])  # of `--only ,`
    for seeds in (2, 17):
        with pytest.raises(BadValue, match="expected 3 to 16"):
            make_profile(["dapo"], find_probes(None), against="grpo", seeds=seeds, jobs=1)


def test_every_probe_has_a_pair_of_mechanisms_and_a_measure_that_its_runs_have():
    for probe in PROBES.values():
        assert probe.question.endswith("?")
        assert {probe.mechanism, probe.without} <= MECHANISMS.keys()
        with_it, without = probe.pair
        keys = {key(one, probe.place) for one in (with_it, without)}
        assert len(keys) == 2
    claimed = {claim.slug for claim in profile_paper(PLAIN).claims}
    assert claimed == PROBES.keys()


def test_a_family_that_does_not_sample_enters_with_right_answers_of_the_start():
    resolved = settings(["dft"])
    assert resolved.run.data == "prepared:right-answers-choice"
    assert resolved.family.name == "sft"
    made = resolved.prepared["right-answers-choice"]
    assert made.family.name == "rejection-sampling"
    assert not find_algorithm(["dft"]).enters(TRAININGS["old-sampler"])
    assert "sft" in ENTRIES


@pytest.fixture
def no_effects(monkeypatch):
    """No published effects: those of the records of a test alone."""
    monkeypatch.setattr("core.profiles.scores.EFFECTS", {})


def record(name, values, *, gain=50.0, probe="learns", statistic=0.8):
    place = PROBES[probe].place
    seeds = [*range(20, 20 + len(values))]
    return {
        "arm": name,
        "kernels": {},
        "rates": {place: {"best": 3e-4} for place in ("choice", "many", "length")},
        "seeds": seeds,
        "probes": {
            probe: {"seeds": seeds, "values": values, "statistic": [statistic] * len(values)}
        },
        "trainings": {place: {"runs": [{"accuracy": [30.0, 30.0 + gain]}] * len(values)}},
    }


BASE = record("grpo", [80.0, 82.0, 84.0])
KNOWN = {"grpo": [BASE], "shuffled-rewards": [record("shuffled-rewards", [30.0, 31.0, 35.0])]}


@pytest.mark.usefixtures("no_effects")
def test_an_algorithm_scores_zero_if_it_is_the_base_and_minus_one_if_it_is_chance():
    row = scored(BASE, BASE, KNOWN)
    assert row.score.value == 0
    assert row.values == (0.0, 0.0, 0.0)
    chance = scored(KNOWN["shuffled-rewards"][0], BASE, KNOWN)
    assert chance.score.value == pytest.approx(-1.0)
    effect: Any = effect_of(PROBES["learns"], KNOWN)
    assert effect.value == pytest.approx(50.0)
    both: Any = aggregates([chance])
    assert both.mean.value == pytest.approx(-1.0, abs=0.05)
    assert both.improvement.value == 0


@pytest.mark.parametrize(
    ("known", "base", "reason"),
    [
        ({"grpo": [BASE]}, BASE, "its pair, grpo and shuffled-rewards, is not recorded"),
        (
            {"grpo": [BASE], "shuffled-rewards": [record("x", [70.0, 90.0, 60.0])]},
            BASE,
            "grpo differs from shuffled-rewards by",
        ),
        (KNOWN, record("grpo", [80.0, 82.0, 84.0], statistic=0.1), "expected late(reward) >= 0.25"),
    ],
)
@pytest.mark.usefixtures("no_effects")
def test_a_probe_that_cannot_be_read_has_a_reason_and_no_score(known, base, reason):
    row = scored(record("new", [81.0, 83.0, 86.0]), base, known)
    assert row.score is None
    assert reason in row.reason
    assert row.difference.value == pytest.approx(4 / 3)


@pytest.mark.usefixtures("no_effects")
def test_a_policy_that_learnt_nothing_does_not_score_by_staying_as_it_was():
    probe, mechanism = PROBES["wrong-length"], PROBES["wrong-length"].mechanism
    base = record("grpo", [40.0, 42.0, 44.0], probe=probe.name, statistic=40.0)
    pair = record(mechanism, [20.0, 21.0, 25.0], probe=probe.name)
    known = {"grpo": [base], mechanism: [pair]}
    learnt = record("new", [20.0, 22.0, 24.0], probe=probe.name)
    still = record("still", [20.0, 22.0, 24.0], probe=probe.name, gain=1.0)
    row = scored(learnt, base, known)
    assert row.score.value == pytest.approx(1.0, abs=0.05)
    row = scored(still, base, known)
    assert row.score is None
    assert row.reason == "did not learn: +1.0 points, grpo +50.0"


def test_papers_are_found_by_the_words_that_name_algorithms():
    assert find_algorithm(["dr-grpo"]).settings == {
        **{"loss_type": "dr_grpo", "scale_rewards": "none", "beta": 0.0, "epsilon": 0.2}
    }
    assert find_paper("dr-grpo").main_arm == "dr-grpo"


@pytest.mark.parametrize(
    ("base", "accuracies", "chosen"),
    [
        ("length", (88.75, 98.0, 99.5), 1.0),  # 98 and 99.5 cannot be told apart
        ("length", (60.0, 82.0, 84.1), 3.0),
        ("many", (34.0, 31.25, 26.5), 1 / 3),
        ("choice", (82.25, 92.0, 90.0), 3.0),  # the usual one there
        ("choice", (82.25, 92.1, 90.0), 1.0),
    ],
)
def test_the_usual_rate_is_taken_unless_another_is_better_by_more_than_chance(
    base, accuracies, chosen
):
    rows: list[TrialRow] = [
        {"factor": factor, "learning_rate": factor, "steps": 160, "curve": [[160, accuracy]]}
        for factor, accuracy in zip(FACTORS, accuracies, strict=True)
    ]
    for trials in (rows, rows[::-1]):
        runs = ProfileRuns(trials={base: trials}, records={}, failures={})
        assert runs.best(base)["factor"] == chosen


def test_the_usual_rates_are_among_those_tried():
    assert {training.usual for training in TRAININGS.values()} <= {*FACTORS}
