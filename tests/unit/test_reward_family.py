"""Papers of reward models go through plan, run, record, check and page; they answer nothing."""

from dataclasses import replace

import pytest
import torch

from core.models.load import load_policy
from core.models.scorers import REWARD_HEAD, load_drawn_scorer
from core.pages.render import render_outcome
from core.records.pair_files import read_run_pairs
from core.records.passed import Passed
from core.run.check import Regrader
from core.run.order import run_order
from core.run.plan import make_plan
from core.run.request import Order
from core.settings.resolve import resolve
from core.verdicts.derived_pairs import pair_problems
from eval.errors import BadValue
from papers.reward_centering import PAPER as CENTERING

SHORT = ("max_steps=3", "heldout_problems=30", "heldout_every=2", "logging_steps=1")
ORDERED = "pairs/accuracy"


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty folder for runs/, results/ and reports/."""
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    return tmp_path


def test_a_paper_of_reward_models_goes_from_its_plan_to_its_page(root):
    stages = [stage.name for stage, _ in make_plan(resolve(CENTERING, arguments=SHORT), 20).stages]
    assert stages == ["data", "start", "train", "rewards", "rewards"]
    outcome = run_order(Order(paper=CENTERING, seeds=(20,), arguments=SHORT))
    (record,) = outcome.runs
    assert record["scores"] == record["start_scores"] == []
    assert record["train"]["steps"] == 3
    assert len(read_run_pairs(record)["held_out"]["trained_chosen"]) == 30
    assert (
        list(pair_problems(record)) == list(Regrader(Passed(ask_again=True)).problems(record)) == []
    )
    page = render_outcome(CENTERING, outcome).path.read_text()
    assert "quantities of pairs" in page
    assert "accuracy in % before" not in page
    assert list(root.glob("runs/train-*/model/model.safetensors"))


def test_the_head_before_training_is_the_one_that_training_begins_with(root):
    """The curve's first and last points are those of the start and of the trained model."""
    del root
    (record,) = run_order(Order(paper=CENTERING, seeds=(20,), arguments=SHORT)).runs
    points = dict(record["curves"]["held_out/accuracy"])
    quantity = record["probabilities"][ORDERED]
    assert [*points] == [0, 2, 3]
    ends = [100 * quantity[side] for side in ("before", "after")]
    assert [points[0], points[3]] == pytest.approx(ends)
    means = record["probabilities"]["rewards/mean"]
    assert abs(means["before"] - means["after"]) > 1e-3


def test_training_stops_at_a_share_of_pairs_in_order(root):
    del root
    target = ("heldout_target=10", "max_steps=9", *SHORT[1:])
    (record,) = run_order(Order(paper=CENTERING, seeds=(20,), arguments=target)).runs
    assert record["train"]["steps"] == 2
    unreached = ("heldout_target=100", *SHORT)
    with pytest.raises(BadValue, match=r"heldout_target=100: .* are right after 3 steps"):
        run_order(Order(paper=CENTERING, seeds=(21,), arguments=unreached))


@pytest.mark.parametrize(
    "setting", ["benchmarks=gsm8k", "eval_limit=3", "heldout_kl=true", "heldout_nll=true"]
)
def test_settings_of_answers_are_refused(setting):
    name = setting.partition("=")[0]
    with pytest.raises(BadValue, match=f"{name}=.*nothing in a run of the family reward uses it"):
        resolve(CENTERING, arguments=(setting,))


def test_a_paper_of_reward_models_with_benchmarks_is_refused():
    with pytest.raises(BadValue, match=r"benchmarks=.*nothing in a run of the family reward"):
        resolve(replace(CENTERING, benchmarks=("gsm8k",)), scale="paper")


def test_a_new_head_is_drawn_by_the_seed_and_torchs_generator_is_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, same = (load_drawn_scorer("nano-20", REWARD_HEAD, seed) for seed in (20, 20))
    assert torch.equal(torch.rand(3), expected)
    body, head = load_policy("nano-20").model.state_dict(), one.score.weight
    assert head.shape == (1, body["norm.weight"].shape[0])
    assert torch.equal(head, same.score.weight)
    assert not torch.equal(head, load_drawn_scorer("nano-21", REWARD_HEAD, 21).score.weight)
    assert all(torch.equal(value, body[name]) for name, value in one.model.state_dict().items())
