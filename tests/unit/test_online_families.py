"""The families of online preferences: runs with rewards and judges, and arms in a nano world."""

from dataclasses import replace

import pytest

import core
from core.families.table import FAMILIES, listed_families
from core.paper import Paper
from core.rewards import Accuracy, Judged
from core.run.order import run_order
from core.run.plan import make_plan
from core.run.request import Order
from core.settings.differences import from_trl
from core.settings.resolve import resolve
from core.stages.chain import Chain
from eval.errors import BadValue
from eval.judging.judges import Cyclic
from papers.nca import PAPER as NCA

BRIEF = (
    "max_steps=2",
    "per_device_train_batch_size=2",
    "max_completion_length=8",
    "eval_limit=2",
    "eval_max_tokens=8",
    "at_k_limit=1",
    "at_k_samples=2",
    "heldout_problems=2",
)
NAMES = ("online_dpo", "xpo", "nash_md")
TINY = Paper(
    slug="tiny-online",
    title="Pairs that are sampled while training",
    arxiv="0000.00004",
    family="online_dpo",
    model="pocket-instruct",
    data="pocket",
    rewards=(Accuracy(),),
    benchmarks=("gsm8k",),
    arms={
        "online_dpo": {"missing_eos_penalty": 0.5},
        "xpo": {"family": "xpo", "rewards": (Judged(Cyclic()),)},
        "nash_md": {"family": "nash_md", "rewards": (Judged(Cyclic()),)},
    },
)
CHOICE = replace(
    NCA,
    slug="online-choice",
    family="online_dpo",
    claims=(),
    profiles={"cpu": {"regime": "choice-online"}},
    arms={
        "online-dpo": {},
        "offline-policy": {"rollout_policy": "reference"},
        "xpo": {"family": "xpo", "alpha": 0.1},
        "nash": {"family": "nash_md", "rewards": (Judged(Cyclic()),)},
        "grpo": {"family": "grpo", "num_generations": 8},
    },
)


@pytest.mark.parametrize("arm", NAMES)
def test_an_arm_is_trained(arm, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    (record,) = run_order(Order(paper=TINY, arms=(arm,), arguments=BRIEF)).runs
    assert len(record["curves"]["rewards/margins"]) == 2
    assert record["config"]["max_completion_length"]["value"] == 8
    own = {"online_dpo": "objective/scores", "xpo": "loss/xpo", "nash_md": "loss/score"}
    assert own[arm] in record["curves"]
    assert "samples" in record["train"] or record["train"]["steps"] == 2


def test_a_paper_has_the_kl_of_its_paper_and_a_script_that_of_trl(tmp_path):
    resolved = resolve(TINY, arm="nash_md", arguments=BRIEF)
    assert resolved.build(output_dir=tmp_path, seed=0).kl_weight == "sequence"
    assert FAMILIES["nash_md"].config_class()(str(tmp_path), use_cpu=True).kl_weight == "token"


def test_arms_in_a_world_start_from_one_model():
    chains = {arm: Chain(resolve(CHOICE, arm=arm), 20) for arm in CHOICE.arms}
    assert len({chain.start.key for chain in chains.values()}) == 1
    assert len({chain.train.key for chain in chains.values()}) == len(chains)


def test_the_plan_counts_two_completions_of_each_prompt():
    plan = make_plan(resolve(CHOICE, arm="online-dpo"), 20)
    assert (plan.cost["updates"], plan.cost["completions"]) == (96, 96 * 64)
    (text,) = [line for line in plan.batches.splitlines() if "one rollout" in line]
    assert "32 prompts x 2 completions each = 64 completions" in text
    later = make_plan(resolve(CHOICE, arm="online-dpo", arguments=("steps_per_generation=8",)), 20)
    assert "older policy" in later.batches
    assert "clip" not in later.batches


def test_the_difference_to_trl_names_the_kl():
    paper = replace(TINY, family="nash_md", rewards=(Judged(Cyclic()),), arms={"nash": {}})
    found = {row.field: (row.left, row.right) for row in from_trl(paper)}
    assert [part.value for part in found["kl_weight"]] == ["sequence", "token"]


def test_xpo_is_listed_with_online_dpo():
    assert listed_families("online_dpo") == {"online_dpo", "xpo"}
    assert listed_families("nash_md") == {"nash_md"}


@pytest.mark.parametrize(
    ("arm", "setting", "message"),
    [
        ("online_dpo", "beta=0", "beta=0"),
        ("online_dpo", "beta=lots", "beta='lots'"),
        ("online_dpo", "num_generations=4", "num_generations"),
        ("nash_md", "mixture_coef=2", "mixture_coef"),
        ("nash_md", "rollout_engine=hf", "only the native engine"),
        ("xpo", "alpha=[0.1,-1]", "alpha"),
    ],
)
def test_a_bad_setting_is_refused_by_the_plan(arm, setting, message):
    with pytest.raises(BadValue, match=message):
        make_plan(resolve(TINY, arm=arm, arguments=(*BRIEF, setting)), 0)


@pytest.mark.parametrize(
    ("words", "beta"), [(["0.2"], 0.2), (["0.2", "0.1"], [0.2, 0.1]), ([], 0.1)]
)
def test_the_command_line_of_a_script_takes_a_value_or_one_for_each_epoch(words, beta, tmp_path):
    option = ["--beta", *words] if words else []
    given = ["--output_dir", str(tmp_path), "--use_cpu", "true", *option]
    (config,) = core.TrlParser(core.NashMDConfig).parse_args_and_config(given)
    assert config.beta == beta


def test_a_value_for_each_epoch_is_a_setting_of_a_run(tmp_path):
    resolved = resolve(TINY, arm="online_dpo", arguments=(*BRIEF, "beta=[0.2,0.1]"))
    assert resolved.build(output_dir=tmp_path, seed=0).beta == [0.2, 0.1]
