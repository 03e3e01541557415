"""Trainings that come before: trained once, shown by a plan, shared by all that name them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from core.cli.showing import as_data, print_paper
from core.paper import Evaluation
from core.records.files import folder_files
from core.run.order import run_order
from core.run.plan import make_plan
from core.run.request import Order
from core.settings.canonical import digest_of
from core.settings.resolve import resolve
from core.stages.chain import Chain
from eval.errors import BadValue, UnknownName
from papers.deepseekmath_grpo import PAPER

SHORT = (
    "max_steps=2",
    "eval_limit=3",
    "eval_max_tokens=24",
    "at_k_samples=4",
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
    prepared = Chain(resolve(paper, arguments=few)).prepared["cold-start"].train
    for record in outcome.runs:
        assert (record["start_model"], record["train"]["steps"]) == ("prepared:cold-start", 2)
        assert record["model"]["digest"] == digest_of(folder_files(Path(prepared.model)))
        assert str(root) not in json.dumps(record)
    assert make_plan(resolve(paper), 0).cost["parameters"] == 984_192


def test_papers_that_describe_one_preparation_share_it_and_what_follows():
    one, same = (Chain(resolve(in_a_row("sft", slug=slug))) for slug in ("one", "other"))
    assert one.prepared["cold-start"].train.key == same.prepared["cold-start"].train.key
    assert one.train.key == same.train.key != one.prepared["cold-start"].train.key
    longer = in_a_row("sft", preparations={"cold-start": {"family": "sft", "max_steps": 2}})
    assert Chain(resolve(longer)).train.key != one.train.key
    assert (
        Chain(resolve(longer, arguments=("max_steps=9",))).prepared["cold-start"].train.key
        == Chain(resolve(longer)).prepared["cold-start"].train.key
    )


@pytest.mark.parametrize(
    ("preparations", "message"),
    [
        ({"cold-strat": {}}, "no preparation 'cold-start': did you mean cold-strat"),
        ({"cold-start": {}, "rl": {}}, "rl is an arm and a preparation"),
        (
            {"cold-start": {"family": "evaluation"}},
            "the preparation cold-start of the family evaluation gives no",
        ),
        (
            {"cold-start": {"model": "prepared:b"}, "b": {"model": "prepared:cold-start"}},
            "preparations wait for each other: cold-start > b > cold-start",
        ),
    ],
)
def test_a_preparation_that_cannot_be_made_is_refused(preparations, message):
    with pytest.raises((BadValue, UnknownName), match=message):
        make_plan(resolve(in_a_row("grpo", preparations=preparations)), 0)


def test_what_comes_before_and_what_is_asked_is_shown(capsys):
    asked = Evaluation(mode="tir", samples=4, temperature=0.7)
    paper = in_a_row("sft", evaluations=(Evaluation(), asked))
    print_paper(paper, "")
    text = capsys.readouterr().out
    assert "preparations\n  cold-start: family='sft', max_steps=1" in text
    assert "asked    all of these: tir, 4 samples at temperature 0.7, top_p 1" in text
    data = as_data(paper, "")
    assert data["preparations"]["cold-start"]["max_steps"] == 1
    assert [each["mode"] for each in data["evaluations"]] == ["cot", "tir"]


def test_what_a_preparation_names_is_looked_up_when_an_arm_is_run():
    cold = {"family": "sft", "data": "pocket"}
    with pytest.raises(BadValue, match="data=pocket has no column completion"):
        make_plan(resolve(in_a_row("sft", preparations={"cold-start": cold})), 0)
