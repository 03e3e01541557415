"""Trainings that come before: trained once, shown by a plan, shared by all that name them."""

import json
from dataclasses import replace

import pytest

from core.run.order import Order, run_order
from core.run.plan import make_plan
from core.run.resolve import resolve
from core.run.stages.chain import Chain
from eval.errors import BadValue, UnknownName
from papers.deepseekmath_grpo import PAPER

SHORT = (
    "max_steps=2",
    "eval_limit=3",
    "eval_max_tokens=24",
    "heldout_problems=4",
    "per_device_train_batch_size=4",
    "num_generations=2",
    "max_completion_length=12",
)


def in_a_row(family, **changes):
    """A paper whose arms begin with what a preparation of some family trained."""
    few = {"max_steps": 1, "per_device_train_batch_size": 4, "heldout_problems": 0}
    cold = few | ({"num_generations": 2} if family == "grpo" else {})
    made = {
        "slug": "tiny-rows",
        "benchmarks": ("gsm8k",),
        "claims": (),
        "preparations": {"cold-start": {"family": family, **cold, "learning_rate": 1e-3}},
        "arms": {name: {"model": "prepared:cold-start", "beta": beta}
                 for name, beta in (("rl", 0.04), ("freer", 0.0))},
    }  # fmt: skip
    return replace(PAPER, **made | changes)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty folder for runs/, results/ and reports/."""
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("family", ["grpo", pytest.param("sft", marks=pytest.mark.long)])
def test_a_preparation_is_trained_once_for_all_that_begin_with_it(root, family):
    paper, few = in_a_row(family), SHORT
    stages = [stage.name for stage, _ in make_plan(resolve(paper, arguments=few), 0).stages]
    own = ["start", "train", "eval", "eval"]
    assert stages == ["data", "start", "train", *(["data"] if family == "sft" else []), *own]
    outcome = run_order(Order(paper=paper, arms=("rl", "freer"), arguments=few))
    assert len(list(root.glob("runs/train-*"))) == 3
    prepared = Chain(resolve(paper, arguments=few)).before.train
    for record in outcome.runs:
        assert (record["start_model"], record["train"]["steps"]) == ("prepared:cold-start", 2)
        assert record["model"]["digest"] == prepared.outputs()["weights"]
        assert str(root) not in json.dumps(record)
    assert make_plan(resolve(paper), 0).cost["parameters"] == 1_115_264


def test_papers_that_describe_one_preparation_share_it_and_what_follows():
    one, same = (Chain(resolve(in_a_row("sft", slug=slug))) for slug in ("one", "other"))
    assert one.before.train.key == same.before.train.key
    assert one.train.key == same.train.key != one.before.train.key
    longer = in_a_row("sft", preparations={"cold-start": {"family": "sft", "max_steps": 2}})
    assert Chain(resolve(longer)).train.key != one.train.key
    assert (
        Chain(resolve(longer, arguments=("max_steps=9",))).before.train.key
        == Chain(resolve(longer)).before.train.key
    )


@pytest.mark.parametrize(
    ("preparations", "message"),
    [
        ({"cold-strat": {}}, "no preparation 'cold-start': did you mean cold-strat"),
        ({"cold-start": {}, "rl": {}}, "rl is an arm and a preparation"),
        ({"cold-start": {"family": "evaluation"}}, "the preparation cold-start trains nothing"),
        (
            {"cold-start": {"model": "prepared:b"}, "b": {"model": "prepared:cold-start"}},
            "preparations wait for each other: cold-start > b > cold-start",
        ),
    ],
)
def test_a_preparation_that_cannot_be_made_is_refused(preparations, message):
    with pytest.raises((BadValue, UnknownName), match=message):
        make_plan(resolve(in_a_row("grpo", preparations=preparations)), 0)
