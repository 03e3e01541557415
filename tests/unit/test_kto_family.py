"""The families of labelled answers: their data in both forms, and arms beside one of pairs."""

import json
from dataclasses import replace

import pytest

from core.families.table import find_family
from core.paper import Paper, cite
from core.run.order import run_order
from core.run.plan import make_plan
from core.run.request import Order
from core.settings.refusals import check_run
from core.settings.resolve import resolve
from core.stages.chain import Chain
from eval.errors import BadValue
from papers.nca import PAPER as NCA

TEXTS = [(f"What is {n} + 1?", f"It is {n + 1}.", f"It is {n}.") for n in range(20)]
FORMS = {
    "labelled": [
        {"prompt": p, "completion": text, "label": label}
        for p, *answers in TEXTS
        for text, label in zip(answers, (True, False), strict=True)
    ],
    "pairs": [{"prompt": p, "chosen": c, "rejected": r} for p, c, r in TEXTS],
    "whole pairs": [{"chosen": f"{p} {c}", "rejected": f"{p} {r}"} for p, c, r in TEXTS],
}
BRIEF = ("model=pocket-instruct", "max_steps=2", "eval_limit=4", "at_k_limit=1", "at_k_samples=2")
KTO = Paper(
    slug="tiny-kto",
    title="Labelled answers",
    arxiv="0000.00003",
    family="kto",
    config=(cite("s1", beta=0.5),),
    model="pocket-instruct",
    data="ultrafeedback-unpaired",
    benchmarks=("gsm8k",),
    arms={
        "kto": {},
        "apo": {"loss_type": "apo_zero_unpaired"},
        "bco": {"family": "bco", "batch_scope": "step"},
    },
)
CHOICE = replace(
    NCA,
    slug="labelled-choice",
    claims=(),
    profiles={"cpu": {"regime": "choice-pairs"}},
    arms={"dpo": {}, "kto": {"family": "kto"}, "bco": {"family": "bco"}},
)


@pytest.mark.parametrize(("form", "arm"), [*((f, "kto") for f in FORMS), ("labelled", "bco")])
def test_data_in_both_forms_is_trained_on(form, arm, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in FORMS[form]))
    order = Order(paper=KTO, arms=(arm,), arguments=(f"data={path}", *BRIEF))
    (record,) = run_order(order).runs
    assert record["data"]["rows"] == len(FORMS[form])
    assert len(record["curves"]["rewards/margins"]) == 2
    assert {"kto": "kl", "bco": "delta"}[arm] in record["curves"]
    assert record["config"]["train_sampling_strategy"]["value"] == "random"


def test_data_in_neither_form_is_refused_before_it_is_loaded(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text('{"prompt": "1", "chosen": "2"}\n')
    with pytest.raises(BadValue, match="has no column completion, which kto trains on"):
        check_run(resolve(KTO, arm="kto", arguments=(f"data={path}",)))


@pytest.mark.parametrize("arm", ["kto", "bco"])
def test_an_arm_in_a_world_of_pairs_has_its_pairs_model_and_rate(arm):
    one, other = (Chain(resolve(CHOICE, arm=name), 20) for name in (arm, "dpo"))
    assert one.resolved.reads == ("chosen", "rejected")
    assert one.start.key == other.start.key
    assert [stage.key for stage in one.preparations] == [stage.key for stage in other.preparations]
    assert one.train.key != other.train.key
    config = one.resolved.preview()
    assert (config.learning_rate, config.beta) == (other.resolved.preview().learning_rate, 0.1)
    assert config.train_sampling_strategy == "random"


def test_a_plan_says_what_an_update_reads():
    plan = make_plan(resolve(KTO, arm="kto", arguments=("data=ultrafeedback-unpaired",)), 0)
    assert plan.cost["rows"] == 64 * 72
    family, config = find_family("kto"), resolve(KTO, arm="apo").preview()
    work = family.work(config, 1, {})
    assert (work.micro_batch, work.completion, work.reference) == (64, 256, True)
