"""The families of distillation: the role of the teacher, and quantities derived from files."""

import json
from dataclasses import replace

import pytest

from core.claims import START, Claim, probability
from core.distillation.teacher_quantities import TEACHER_SAMPLES, answer_columns
from core.families.distillation import OF_STEPS
from core.families.table import listed_families
from core.paper import Evaluation
from core.records.pair_files import read_pairs
from core.run.order import run_order
from core.run.plan import make_plan
from core.run.request import Order
from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.stages.divergences import FILE, TOKENS
from core.verdicts.derived_pairs import pair_problems
from eval.errors import BadValue, UnknownName
from papers.gkd import PAPER

KL = probability("kl_to_teacher")
POCKET = replace(
    PAPER,
    slug="tiny-gkd",
    arms={"mixed": {}},
    claims=(Claim("nearer", "It gets nearer.", KL.of("mixed") < KL.of(START)),),
    benchmarks=("gsm8k",),
    evaluations=(Evaluation(),),
    profiles={},
)
BRIEF = (
    "max_steps=2",
    "per_device_train_batch_size=2",
    "eval_limit=2",
    "eval_max_tokens=8",
    "at_k_limit=1",
    "heldout_problems=2",
)


def test_a_run_goes_from_its_plan_to_a_record_whose_file_gives_its_quantities(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    plan = make_plan(resolve(POCKET, arguments=BRIEF), 0)
    assert (plan.cost["updates"], plan.cost["completions"]) == (2, 4)
    (record,) = run_order(Order(paper=POCKET, arguments=BRIEF)).runs
    moved = record["probabilities"]["kl_to_teacher"]
    assert moved["n"] == 2
    assert moved["before"] > 0 < moved["after"]
    assert [step for step, _ in record["curves"]["held_out/accuracy"]] == [0, 2]
    assert {"loss", "entropy", "on_policy_fraction"} <= record["curves"].keys()
    assert list(pair_problems(record)) == []
    folders = list((tmp_path / "runs").glob("divergences-*"))
    assert len(folders) == 2
    for folder in folders:
        tokens, sums = (read_pairs(folder / name) for name in (TOKENS, FILE))
        assert {name: answer_columns(tokens[name]) for name in sums} == sums
        assert tokens.keys() - sums.keys() == {TEACHER_SAMPLES}
        taught = answer_columns(tokens[TEACHER_SAMPLES])
        assert taught["problem"] == [0, 1]
        assert sum(taught["tokens"]) == len(tokens[TEACHER_SAMPLES]["logp"])
    forged = {**moved, "after": moved["after"] / 2}
    changed = {**record, "probabilities": {"kl_to_teacher": forged}}
    assert "kl_to_teacher" in "".join(pair_problems(changed))


def test_all_families_with_a_teacher_are_listed_as_one():
    assert listed_families("distillation") == {
        *("distillation", "gkd", "gold", "iw_opd", "minillm", "sdft", "sdpo"),
    }


def test_of_problems_that_no_task_has_no_step_is_judged(tmp_path):
    rows = [{"prompt": f"What is {i} + 1?", "answer": f"{i + 1}"} for i in range(70)]
    path = tmp_path / "sums.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    measured = {}
    for data in ("", f"data={path}"):
        plan = Chain(resolve(PAPER, arm="on-reverse", arguments=(data,) if data else ()), seed=0)
        (stage, _), *_ = [pair for pair in plan.quantity_pairs if pair[0].name == "divergences"]
        measured[data] = {*stage.quantities}
    judged, others = measured.values()
    assert judged & {*OF_STEPS}
    assert others == judged - {*OF_STEPS}


def test_a_run_without_a_teacher_is_refused_before_it_begins():
    lonely = replace(POCKET, profiles={"cpu": {"roles": {}}})
    with pytest.raises(BadValue, match="the family gkd needs a teacher"):
        make_plan(resolve(lonely, arguments=BRIEF), 0)
    named = replace(
        POCKET,
        profiles={"cpu": {"data": "pocket-worked", "teacher_model_name_or_path": "pocket-teacher"}},
    )
    with pytest.raises(BadValue, match="is no setting of a run: set roles="):
        make_plan(resolve(named, arguments=BRIEF), 0)
    other = replace(POCKET, profiles={"cpu": {"roles": {"tutor": "pocket-teacher"}}})
    with pytest.raises(UnknownName, match="tutor"):
        resolve(other, arguments=BRIEF)
