"""Regimes: bundles of settings between the scale's profile and what a paper says."""

from dataclasses import replace

import pytest

from core.families.profiles import SCALES
from core.families.regimes import CPU, PREPARATIONS, REGIMES
from core.pages.verdicts import one_rate
from core.paper import Paper
from core.run.plan import make_plan, plan_batches
from core.settings.effective import effective
from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.stages.data import read_rows, split_rows
from core.verdicts.trials import trials_of
from eval.errors import BadValue, UnknownName
from papers.dr_grpo import PAPER

PLAIN = replace(PAPER, slug="plain", profiles={"cpu": {"benchmarks": ()}}, claims=(), arms={})
OFF = {"off2": 2, "off4": 4, "off8": 8, "off16": 16}


def with_regime(regime: str, **profile: object) -> Paper:
    """The plain paper in a regime, with more that its profile says."""
    return replace(PLAIN, profiles={"cpu": {"benchmarks": (), "regime": regime, **profile}})


@pytest.mark.parametrize("regime", CPU)
def test_every_regime_samples_as_many_completions_in_as_many_groups(regime):
    config = resolve(with_regime(regime)).preview()
    updates = OFF.get(regime, 8 if regime.endswith("8") else 1)
    assert config.max_steps == 36 * updates
    assert (config.rollout_size, config.num_generations) == (128, 16)
    assert config.rollout_uses == updates * config.gradient_accumulation_steps
    assert resolve(with_regime(regime)).family.cost(config).samples == 36 * 128


@pytest.mark.parametrize("regime", CPU)
def test_all_arms_of_a_regime_have_one_learning_rate_but_of_the_on_policy_one(regime):
    assert bool(trials_of(resolve(with_regime(regime)))) == (regime == "on")


@pytest.mark.parametrize("regime", CPU)
def test_a_regime_is_the_same_training_as_its_settings_written_out(regime):
    bundle = {name: value for name, value in CPU[regime].items() if name != "rate_factors"}
    written = replace(PLAIN, profiles={"cpu": {"benchmarks": (), **bundle}})
    named = resolve(with_regime(regime))
    assert effective(named) == effective(resolve(written))
    assert Chain(named).train.key == Chain(resolve(written)).train.key
    if bundle:
        assert {named.values[name].source for name in bundle} == {f"regime {regime}"}


def test_the_profile_of_a_paper_and_its_arms_win_over_the_regime_and_it_over_the_scale():
    arms = {
        "main": {},
        "cut": {"at": {"cpu": {"regime": "tight"}}},
        "slow": {"learning_rate": 1e-9},
    }
    paper = replace(with_regime("off8", max_steps=16), arms=arms)
    main, cut, slow = (resolve(paper, arm=arm).values for arm in arms)
    assert main["max_steps"].source == "plain at cpu"
    assert main["learning_rate"].source == "regime off8"
    assert main["num_generations"].source == "profile cpu"
    assert slow["learning_rate"].value == 1e-9
    assert cut["regime"].source == "arm cut at cpu"
    assert cut["max_completion_length"].source == "regime tight"
    assert cut["learning_rate"].source == "profile cpu"  # nothing is left of the other regime
    asked = resolve(paper, arm="cut", arguments=("regime=off2",)).values
    assert (asked["steps_per_generation"].value, asked["regime"].source) == (2, "command line")
    assert "regime off8" in str(make_plan(resolve(paper), 0).as_data())


def test_a_regime_that_is_not_there_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match="no regime 'of8': did you mean off8"):
        resolve(with_regime("of8"))


@pytest.mark.parametrize("scale", [scale for scale in SCALES if scale not in REGIMES])
def test_a_regime_at_a_scale_without_any_is_refused(scale):
    with pytest.raises(BadValue, match=rf"regime=off8 \(arm main\): there is none at {scale}"):
        resolve(replace(PLAIN, arms={"main": {"regime": "off8"}}), scale=scale)


def test_the_easy_regime_begins_with_a_filter_which_papers_share_and_may_replace():
    easy = resolve(with_regime("easy"))
    other = resolve(replace(with_regime("easy"), slug="other"))
    own = {"easy-prompts": {"family": "difficulty-filter", "data": "pocket", "rate_above": 0.5}}
    stages = [Chain(one).preparations[-1].key for one in (easy, other)]
    assert stages[0] == stages[1]
    replaced = resolve(replace(with_regime("easy"), preparations=own))
    assert Chain(replaced).preparations[-1].key != stages[0]


def test_an_easy_run_trains_on_few_prompts_and_is_scored_on_those_that_pocket_holds_out(
    tmp_path, monkeypatch
):
    """More than the filter keeps: none of them is taken from its rows."""
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    filtered = {**PREPARATIONS["easy-prompts"], "num_prompts": 96, "num_generations": 4}
    paper = with_regime("easy", max_steps=1, heldout_problems=60)
    chain = Chain(resolve(replace(paper, preparations={"easy-prompts": filtered})))
    for stage in [*chain.preparations, *chain.training]:
        found = stage.run()
    train, held_out = split_rows(read_rows(chain.data.folder), 60)
    pocket = read_rows(chain.preparations[0].folder)
    valid = {row["id"] for row in pocket if row["split"] == "valid"}
    assert 0 < len(train) < len(held_out) == 60
    assert {row["id"] for row in held_out} <= valid
    assert not valid.intersection(row["id"] for row in train)
    assert min(row["pass_rate"] for row in train) > 0.7
    assert found["curves"]["held_out/accuracy"][0][0] == 0


def test_the_tiny_regime_has_thirty_prompts_and_all_that_is_held_out():
    tiny = resolve(with_regime("tiny"))
    assert "30 prompts" in plan_batches(tiny.preview(), tiny)


def test_an_arm_of_another_family_has_what_a_regime_says_around_its_trainer():
    arms = {"main": {}, "distilled": {"family": "sft", "data": "pocket-worked"}}
    values = resolve(replace(with_regime("base8"), arms=arms), arm="distilled").values
    assert values["model"].value == "pocket-base"
    assert values["learning_rate"].source == "profile cpu"


def test_a_page_says_that_the_arms_of_a_regime_share_one_learning_rate():
    def run(regime, source):
        said = {"regime": {"value": regime, "source": "x"}} if regime else {}
        return {"config": {**said, "learning_rate": {"value": 1e-4, "source": source}}}

    shared = one_rate([run("off8", "regime off8"), run("off8", "arm hot")])
    assert shared.startswith("In the regime off8 all arms have one learning rate, 0.0001")
    assert one_rate([run("on", "profile cpu"), run(None, "profile cpu")]) == ""


def test_a_bare_regime_of_the_command_line_says_what_of_the_paper_has_no_effect():
    told = resolve(PAPER, arguments=("regime=length",)).caution
    assert told.startswith("in the regime length the paper's ")
    assert "scale_rewards" in told
    assert "epsilon" not in told.replace("epsilon_", "")
    assert resolve(PAPER, arm="grpo-length").caution == ""  # the arm itself names its regime
    assert resolve(PAPER, arguments=("regime=off8",)).caution == ""
