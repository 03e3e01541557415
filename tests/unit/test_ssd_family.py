"""The family of self-distillation: its plan, a run from the frozen start, and what it refuses."""

from dataclasses import replace

import pytest

from core.families.table import listed_families
from core.paper import Evaluation
from core.run.order import run_order
from core.run.plan import make_plan
from core.run.request import Order
from core.settings.resolve import resolve
from core.stages.chain import Chain
from eval.errors import BadValue
from papers.ssd import PAPER

POCKET = replace(
    PAPER,
    arms={"ssd": {}},
    claims=(),
    evaluations=(Evaluation(),),
    profiles={"cpu": {"filter_empty": False}},
)

BRIEF = (
    "max_steps=2",
    "per_device_train_batch_size=2",
    "eval_limit=2",
    "eval_max_tokens=8",
    "at_k_limit=1",
    "heldout_problems=2",
)


def test_a_run_goes_from_its_plan_to_its_record(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    plan = make_plan(resolve(POCKET, arguments=BRIEF), 0)
    assert (plan.cost["updates"], plan.cost["completions"]) == (2, 4)
    (record,) = run_order(Order(paper=POCKET, arguments=BRIEF)).runs
    curves = record["curves"]
    losses = [value for _, value in curves["ssd/cross_entropy_loss"]]
    assert losses == pytest.approx([value for _, value in curves["loss"]], rel=1e-5)
    assert [step for step, _ in curves["held_out/accuracy"]] == [0, 2]
    assert record["config"]["rollout_policy"]["value"] == "reference"


def test_the_arms_differ_in_who_samples_and_in_what_is_kept():
    chains = {arm: Chain(resolve(PAPER, arm=arm), 0) for arm in PAPER.arms}
    assert len({chain.start.key for chain in chains.values()}) == 1
    assert len({chain.train.key for chain in chains.values()}) == len(PAPER.arms)
    assert listed_families("sft") >= {"ssd"}


@pytest.mark.parametrize("scale", ["gpu", "paper"])
def test_the_settings_of_the_paper_are_sampling_from_the_frozen_start(scale, tmp_path):
    resolved = resolve(PAPER, scale=scale)
    config = resolved.build(output_dir=tmp_path, seed=0, use_cpu=True)
    assert config.keeps_reference
    found = (config.temperature, config.top_k, config.top_p, config.filter_empty)
    assert found == (1.6, 20, 0.8, True)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("num_generations=4", "num_generations"),
        ("log_multimodal=false", "log_multimodal"),
        ("top_p=0", "top_p"),
        ("rewards=Accuracy", "rewards"),
    ],
)
def test_a_bad_setting_is_refused_by_the_plan(setting, message):
    with pytest.raises(BadValue, match=message):
        make_plan(resolve(POCKET, arguments=(*BRIEF, setting)), 0)
