"""Quantities of probabilities: what they are, and that a run measures them before and after."""

import math
from dataclasses import replace

import pytest
import torch

from core.claims import START, Claim, final, probability
from core.data.load import load_training_data
from core.forward.quantities import QUANTITIES, completion_logps, quantities, token_mean
from core.models.load import load_policy, load_tokenizer
from core.pages.probabilities import cell
from core.pages.render import render_outcome
from core.paper import Evaluation
from core.records.mistakes import mistakes
from core.records.schema import QuantityChange, RunRecord
from core.run.order import run_order
from core.run.plan import make_plan
from core.run.request import Order
from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.stages.watch.heldout import completed_rows
from core.verdicts.unmeasured import lacking
from eval.errors import BadValue
from papers.dft import PAPER

FEW = ("max_steps=2", "eval_limit=3", "at_k_samples=4", "eval_max_tokens=24", "heldout_problems=6",
       "per_device_train_batch_size=4", "learning_rate=1e-3")  # fmt: skip
PAPER_ = replace(PAPER, claims=(), evaluations=(Evaluation(),), slug="tiny-dft")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty folder for runs/, results/ and reports/."""
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def model():
    return load_policy("pocket-instruct")


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer("pocket-instruct")


@pytest.fixture(scope="module")
def rows():
    return list(load_training_data("pocket-worked").select(range(11)))


def test_log_probabilities_are_those_of_one_row_alone(model, tokenizer, rows):
    together = completion_logps(model, tokenizer, rows)
    for row, found in zip(rows, together, strict=True):
        template = tokenizer.apply_chat_template
        prompt = template(row["prompt"], add_generation_prompt=True)["input_ids"]
        whole = template(row["prompt"] + row["completion"])["input_ids"]
        with torch.inference_mode():
            logits = model(torch.tensor([whole])).logits[0].log_softmax(-1)
        said = torch.tensor(whole[len(prompt) :])
        alone = logits[len(prompt) - 1 : -1].gather(-1, said[:, None]).squeeze(-1)
        assert found.float() == pytest.approx(alone, abs=2e-5)


def test_a_quantity_is_the_mean_over_all_tokens_and_not_over_rows():
    rows = [torch.tensor([0.5, 0.01, 0.99]).log(), torch.tensor([0.5]).log()]
    found = dict(quantities(("nll", "extreme_share"), rows))
    tokens = torch.cat(rows)
    assert found["nll"].value == pytest.approx(-tokens.mean().item())
    assert found["extreme_share"].value == pytest.approx(0.5)
    assert {one.n for one in found.values()} == {2}


def test_the_loss_without_the_end_leaves_out_the_last_token_of_each_row():
    rows = [torch.tensor([0.5, 0.25, 0.001]).log(), torch.tensor([0.125, 0.9]).log()]
    found = dict(quantities(("nll/without_end",), rows))["nll/without_end"]
    assert found.value == pytest.approx((1 + 2 + 3) * math.log(2) / 3)


def test_the_interval_covers_the_true_mean_as_often_as_it_says():
    random = torch.Generator().manual_seed(0)
    hits = 0
    for _ in range(400):
        lengths = torch.randint(1, 9, (40,), generator=random).tolist()
        shifts = torch.randn(40, generator=random)
        rows = [torch.randn(n, generator=random) + s for n, s in zip(lengths, shifts, strict=True)]
        found = token_mean(rows)
        hits += found.low <= 0.0 <= found.high
    assert 0.91 < hits / 400 < 0.98


@pytest.mark.usefixtures("few_worked")
def test_a_run_measures_before_and_after_and_its_page_shows_it(root):
    del root
    asked = resolve(PAPER_, arguments=FEW)
    stages = [stage.name for stage, _ in make_plan(asked, 0).stages]
    assert stages.count("probabilities") == 2
    outcome = run_order(Order(paper=PAPER_, arms=("sft",), arguments=FEW))
    (record,) = outcome.runs
    names = set(asked.family.probabilities)
    assert set(record["probabilities"]) == names | {f"{name}/training" for name in names}
    assert list(mistakes(record, RunRecord)) == []
    nll = probability("nll/training")
    assert nll.read(record, "sft") != nll.read(record, START)
    chain = Chain(resolve(PAPER_, arm="sft", arguments=FEW))
    before, after = (stage.outputs() or {} for stage in chain.probabilities)
    assert nll.read(record, START) == before["nll/training"]["value"]
    assert nll.read(record, "sft") == after["nll/training"]["value"]
    held = [row for row in before if not row.endswith("/training")]
    assert all(before[name]["n"] == 6 for name in held)
    page = render_outcome(PAPER_, outcome).path.read_text()
    assert f"{after['nll']['value']:.3f}" in page
    assert all(stage.is_done for stage in chain.probabilities)


def keys(*arguments):
    """The keys of what is computed of both models."""
    names = tuple(one.partition("=")[0] + "=" for one in arguments)
    few = [one for one in FEW if not one.startswith(names)] if names else FEW
    chain = Chain(resolve(PAPER_, arm="sft", arguments=(*few, *arguments)))
    return [stage.key for stage in chain.probabilities]


def test_the_keys_follow_the_policy_the_rows_and_their_number():
    first, trained = keys()
    assert keys("learning_rate=2e-3")[0] == first != keys("model=pocket-base")[0]
    assert keys("learning_rate=2e-3")[1] != trained
    assert not set(keys("heldout_problems=7")) & {first, trained}
    assert not set(keys("data=pocket-worked+pocket-worked")) & {first, trained}
    assert keys("heldout_problems=0") == []


@pytest.mark.parametrize(
    ("before", "after"), [(-0.3, -0.1), (120.0, 140.0)], ids=["below 0", "above 100"]
)
def test_a_quantity_is_no_percentage(before, after):
    change = QuantityChange(
        before=before,
        after=after,
        before_interval=[before - 1, before + 1],
        after_interval=[after - 1, after + 1],
        n=2,
    )
    assert (cell([change], "before").low, cell([change], "after").high) == (before - 1, after + 1)


def test_every_family_declares_quantities_that_there_are():
    from core.families.table import FAMILIES

    declared = {
        name
        for family in FAMILIES.values()
        for name in (*family.probabilities, *family.claimed_probabilities)
    }
    assert declared <= set(QUANTITIES)
    assert declared


@pytest.mark.usefixtures("few_worked")
def test_the_held_out_loss_along_a_training_is_first_that_of_the_start_and_last_of_the_policy(root):
    del root
    asked = (*FEW, "heldout_nll=true", "heldout_every=1")
    chain = Chain(resolve(PAPER_, arm="dft", arguments=asked))
    for stage in chain.training:
        stage.run()
    curve = chain.train.run()["curves"]["held_out/nll"]
    ends = [stage.run()["nll"]["value"] for stage in chain.quantity_pairs[0]]
    assert [step for step, _ in curve] == [0, 1, 2]
    assert [curve[0][1], curve[-1][1]] == pytest.approx(ends, abs=1e-6)
    assert abs(ends[0] - ends[1]) > 1e-3
    loss = final("held_out/nll").of("dft") < 1.0
    (told,) = lacking(Claim("low", "Low.", loss), resolve(PAPER_).run, ())
    assert told == "the loss of held-out completions is not logged (heldout_nll=false)"
    assert not lacking(Claim("low", "Low.", loss), chain.resolved.run, ())


def test_a_held_out_loss_of_rows_without_completions_is_refused():
    with pytest.raises(BadValue, match="no column completion, only id, answer; leave it out"):
        completed_rows([{"id": "1", "answer": "2"}])
    with pytest.raises(BadValue, match="heldout_nll is set and heldout_problems is not"):
        resolve(PAPER_, arguments=("heldout_nll=true", "heldout_problems=0"))
