"""Papers of every family go through plan, run, record and page; the run layer names no family."""

import ast
from dataclasses import fields, replace
from pathlib import Path

import pytest
from transformers import TrainingArguments

from core.claims import score
from core.families.table import FAMILIES
from core.pages.render import render_outcome
from core.pages.runs import runs_table
from core.paper import Evaluation, Paper, cite
from core.records.passed import Passed
from core.run import order as run_layer
from core.run.check import Regrader
from core.run.order import run_order
from core.run.plan import make_plan
from core.run.request import Order
from core.settings.resolve import resolve
from core.stages import tools as stage_tools
from core.stages.chain import Chain
from core.stages.start import Chosen, Start
from core.verdicts.unmeasured import cannot_test
from eval.errors import BadValue, UnknownName
from eval.samples.evaluation import Decoding
from eval.sandbox import SandboxUnavailable
from eval.stats.summary import metrics
from papers.deepseekmath_grpo import PAPER
from papers.math import PAPER as MATH

SHORT = (
    "max_steps=2",
    "eval_limit=3",
    "eval_max_tokens=24",
    "at_k_samples=4",
    "heldout_problems=4",
    "per_device_train_batch_size=4",
)
SFT = Paper(
    slug="tiny-sft",
    title="Fine-tuning on worked answers",
    arxiv="0000.00001",
    family="sft",
    config=(cite("s1", learning_rate=1e-3),),
    model="pocket-instruct",
    data="pocket-worked",
    benchmarks=("gsm8k", "cmath"),
    arms={"sft": {}, "dft": {"loss_type": "dft"}},
)
SCORED = Paper(
    slug="tiny-scores",
    title="What two models answer",
    arxiv="0000.00002",
    family="evaluation",
    model="pocket-instruct",
    benchmarks=("gsm8k", "cmath"),
)


BOTH = replace(
    PAPER,
    slug="two-families",
    benchmarks=("gsm8k",),
    claims=(),
    arms={"grpo": {}, "sft": {"family": "sft", "learning_rate": 1e-3}},
)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty folder for runs/, results/ and reports/."""
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("few_worked")
def test_a_paper_that_fine_tunes_goes_from_its_plan_to_its_page(root):
    plan = make_plan(resolve(SFT, arguments=SHORT), 0)
    scored = [*["eval"] * 4, *["probabilities"] * 2]
    assert [stage.name for stage, _ in plan.stages] == ["data", "start", "train", *scored]
    assert (plan.cost["updates"], plan.cost["rows"]) == (2, 8)
    outcome = run_order(Order(paper=SFT, arguments=SHORT))
    (record,) = outcome.runs
    assert {row["mirrors"] for row in record["scores"]} == {"gsm8k", "cmath"}
    assert [step for step, _ in record["curves"]["held_out/accuracy"]] == [0, 2]
    losses = [value for _, value in record["curves"]["loss"]]
    assert len(losses) == 2
    assert min(losses) > 0
    assert losses[0] != losses[1]
    assert record["data"]["name"] == "pocket-worked"
    again = make_plan(resolve(SFT, arguments=SHORT), 0)
    assert {state for _, state in again.stages} == {"done"}
    page = render_outcome(SFT, outcome).path.read_text()
    assert "held-out" in page
    assert "mean reward" not in page
    assert list(root.glob("runs/train-*/model/model.safetensors"))


def test_a_paper_that_trains_nothing_goes_from_its_plan_to_its_page(root):
    few = ("eval_limit=3", "eval_max_tokens=24", "at_k_samples=4")
    outcome = run_order(Order(paper=SCORED, arguments=few))
    (record,) = outcome.runs
    assert record["start_scores"] == []
    assert record["curves"] == record["data"] == {}
    assert record["train"]["steps"] == 0
    assert {row["n"] for row in record["scores"]} == {3}
    assert not list(root.glob("runs/train-*")) + list(root.glob("runs/data-*"))
    assert "Nothing is trained" in render_outcome(SCORED, outcome).path.read_text()
    (start, *scores) = [stage for stage, _ in make_plan(resolve(SCORED, arguments=few), 0).stages]
    assert (start.name, [stage.subject for stage in scores]) == (
        "start",
        ["pocket-gsm8k", "pocket-cmath"],
    )


def test_an_arm_of_another_family_sees_as_many_samples_of_the_same_task():
    main, other = resolve(BOTH), resolve(BOTH, arm="sft")
    assert other.family.name == "sft"
    assert (other.run.model, other.run.benchmarks) == (main.run.model, main.run.benchmarks)
    assert (other.run.rewards, other.config["learning_rate"]) == ((), 1e-3)
    assert "num_generations" not in other.values
    costs = [make_plan(each, 0).cost for each in (main, other)]
    assert costs[0]["completions"] == costs[1]["rows"] == 4608
    assert other.values["max_steps"].source == "4608 samples as arm grpo"
    assert resolve(BOTH, arm="sft", arguments=("max_steps=3",)).config["max_steps"] == 3
    with pytest.raises(UnknownName, match="no field 'num_generations'"):
        resolve(BOTH, arm="sft", arguments=("num_generations=4",))


@pytest.mark.usefixtures("few_worked")
@pytest.mark.long
def test_an_arm_of_another_family_runs(root):
    (record,) = run_order(Order(paper=BOTH, arms=("sft",), arguments=SHORT)).runs
    assert (record["train"]["steps"], record["arm"], record["main"]) == (2, "sft", False)
    assert record["data"]["name"] == "pocket-worked"
    assert "loss" in record["curves"]
    assert (root / "runs" / "results" / "two-families").is_dir()


def test_a_paper_asks_in_any_mode_and_draws_answers_as_it_says(root):
    del root
    ways = (
        Evaluation(),
        Evaluation(benchmarks=("gsm8k",), mode="tir"),
        Evaluation(benchmarks=("cmath",), mode="few-shot", samples=2, temperature=0.8, top_p=0.9),
    )
    few = ("eval_limit=3", "eval_max_tokens=24", "at_k_samples=4")
    paper = replace(SCORED, evaluations=ways)
    (record,) = run_order(Order(paper=paper, arguments=few)).runs
    rows = {(r["mirrors"], r["mode"], r["metric"], r.get("temperature")) for r in record["scores"]}
    greedy = {(name, "cot", "top1", None) for name in ("gsm8k", "cmath")}
    drawn = {("cmath", "few-shot", name, 0.8) for name in metrics(2)}
    assert rows == greedy | {("gsm8k", "tir", "top1", None)} | drawn
    assert {row["programs"] > 0 for row in record["scores"] if row["mode"] == "cot"} == {False}
    assert list(Regrader(Passed(ask_again=True)).problems(record)) == []
    read = score("gsm8k").of("main").measure.read(record, "main")
    assert read == next(r["value"] for r in record["scores"] if r["mirrors"] == "gsm8k")
    keys = {
        each.key for each in Chain(resolve(paper, arguments=few)).evaluations(Start(Chosen("a")))
    }
    assert len(keys) == 4


def test_settings_name_the_modes_in_which_all_is_asked(root):
    del root
    ways = (Evaluation(), Evaluation(mode="few-shot"))  # in one mode they are the same question
    asked = ("benchmarks=gsm8k", "eval_limit=3", "eval_max_tokens=24", "eval_modes=tir,few-shot")
    outcome = run_order(Order(paper=replace(SCORED, evaluations=ways), arguments=asked))
    (record,) = outcome.runs
    assert [row["mode"] for row in record["scores"]] == ["tir", "few-shot"]
    assert list(Regrader(Passed(ask_again=True)).problems(record)) == []
    table = runs_table(SCORED, outcome.runs, "cpu")
    assert [block.title for block in table.blocks] == [
        "Tool-integrated reasoning",
        "Few-shot prompts",
    ]


def test_a_claim_about_a_mode_that_is_not_asked_will_have_no_verdict():
    without = cannot_test(PAPER, resolve(PAPER, arguments=("eval_modes=tir",)).run)
    assert "gsm8k is not answered in the mode cot" in without["grpo-improves-policy"]
    both = cannot_test(PAPER, resolve(PAPER, arguments=("eval_modes=cot,tir",)).run)
    assert "grpo-improves-policy" not in both


def test_a_score_by_level_needs_the_evaluations_of_the_paper():
    lacks = cannot_test(MATH, resolve(MATH, arguments=("eval_temperature=0.0",)).run)
    assert "math is not split by level: eval_temperature=0" in lacks["math-level-order"]
    assert "math-level-order" not in cannot_test(MATH, resolve(MATH).run)


@pytest.mark.parametrize(
    "asked", ["eval_modes=tir", "heldout_benchmarks=gsm8k heldout_mode=pal"], ids=["after", "while"]
)
def test_programs_that_cannot_be_run_are_named_before_anything_trains(root, monkeypatch, asked):
    def nowhere(**_):
        raise SandboxUnavailable("no backend works")

    monkeypatch.setattr(stage_tools, "Sandbox", nowhere)
    stage_tools.check_tools.cache_clear()
    with pytest.raises(SandboxUnavailable, match="no backend works"):
        run_order(Order(paper=PAPER, arguments=("max_steps=1", *asked.split())))
    assert not (root / "runs").exists()


def test_an_evaluation_of_what_is_not_scored_names_what_is():
    paper = replace(SCORED, evaluations=(Evaluation(benchmarks=("math",)),))
    with pytest.raises(
        UnknownName, match="no benchmark of an evaluation 'math': did you mean cmath"
    ):
        make_plan(resolve(paper), 0)


@pytest.mark.parametrize(
    ("paper", "arguments", "message"),
    [
        (SCORED, ("data=pocket",), "data='pocket' .command line.: nothing in a run of the family"),
        (SCORED, ("launch=ddp", "processes=2"), "launch='ddp' .*family evaluation uses it"),
        (
            replace(SFT, rewards=(max,)),
            (),
            "rewards=.*tiny-sft.: nothing in a run of the family sft",
        ),
    ],
)
def test_a_setting_that_nothing_reads_is_refused(paper, arguments, message):
    with pytest.raises(BadValue, match=message):
        resolve(paper, arguments=arguments)


@pytest.mark.parametrize("name", ["weights", "average_lag"])
def test_weights_are_averaged_in_fine_tuning_alone(name):
    assert [family.name for family in FAMILIES.values() if name not in family.unused] == ["sft"]


def test_a_field_of_a_training_is_refused_where_nothing_is_trained():
    with pytest.raises(BadValue, match=r"learning_rate=0\.1: nothing is trained here"):
        resolve(SCORED, arguments=("learning_rate=0.1",)).preview()


def test_held_out_rows_without_answers_are_refused(root):
    del root
    asked = resolve(SFT, arguments=(*SHORT, "heldout_every=1"))
    train = Chain(asked).train
    train.data.run()
    rows = train.data.folder / "rows.jsonl"
    rows.write_text(rows.read_text().replace('"answer"', '"reply"'))
    (train.data.folder / "done.json").unlink()
    with pytest.raises(BadValue, match="heldout_problems=4: the data has no column answer"):
        train.run()


def own_fields():
    """The names of the fields that a family's config has beside those of every trainer."""
    shared = {field.name for field in fields(TrainingArguments)}
    configs = [family.config_class() for family in FAMILIES.values()]
    base = {field.name for field in fields(FAMILIES["evaluation"].config_class())}
    alike = {field.name for field in fields(Decoding)} | {"delta"}  # also a difference of scores
    return {field.name for config in configs for field in fields(config)} - shared - base - alike


def names_in(path):
    """Every attribute, keyword and text of a module, without its docstrings."""
    tree = ast.parse(path.read_text())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    texts = {id(n.body[0].value) for n in ast.walk(tree)
             if isinstance(n, documented) and isinstance(n.body[0], ast.Expr)}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword):
            yield node.arg
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts
        ):
            yield node.value


def test_the_run_layer_names_no_family_and_no_field_of_one():
    folder = Path(run_layer.__file__).parent
    forbidden = own_fields() | FAMILIES.keys()
    assert "num_generations" in forbidden
    found = {
        path.name: names & forbidden
        for path in sorted(folder.rglob("*.py"))
        if (names := set(names_in(path))) & forbidden
    }
    assert found == {}
