"""Models in roles beside the policy: filled by name or by a preparation, keyed, handed over."""

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import kl_div, log_softmax
from transformers import AutoModelForSequenceClassification

from core.families.sft import SFT
from core.families.table import FAMILIES
from core.models.folders import locate
from core.models.load import load_policy, load_tokenizer
from core.run.order import run_order
from core.run.plan import make_plan
from core.run.request import Order
from core.settings.resolve import resolve
from core.stages.chain import Chain
from eval.errors import BadValue, UnknownName
from papers.deepseekmath_grpo import PAPER

SHORT = ("max_steps=2", "eval_limit=3", "eval_max_tokens=24", "heldout_problems=0",
         "at_k_samples=4", "per_device_train_batch_size=4")  # fmt: skip
GROUPS = ("num_generations=2", "max_completion_length=12")


class Taught(SFT):
    """Fine-tuning towards the probabilities of a teacher."""

    name = "taught"
    roles = ("teacher",)

    def trainer(self, training):
        trainer, teacher = super().trainer(training), load_policy(training.roles["teacher"])

        def towards_the_teacher(outputs, labels, num_items_in_batch):
            del num_items_in_batch
            ids = trainer.batch_ids
            with torch.no_grad():
                goal = log_softmax(teacher(ids).logits, -1)
            mask = labels[:, 1:] != -100
            ours = log_softmax(outputs.logits, -1)
            return kl_div(ours, goal, log_target=True, reduction="none").sum(-1)[:, :-1][mask].sum()

        plain = trainer.compute_loss

        def compute_loss(model, inputs, *rest, **more):
            trainer.batch_ids = inputs["input_ids"]
            return plain(model, inputs, *rest, **more)

        trainer.compute_loss, trainer.compute_loss_func = compute_loss, towards_the_teacher
        return trainer


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty folder for runs/, results/ and reports/."""
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path / "root"))
    monkeypatch.setitem(FAMILIES, Taught.name, Taught())
    return tmp_path


TRAINED = {"family": "sft", "max_steps": 1, "per_device_train_batch_size": 4,
           "heldout_problems": 0, "learning_rate": 1e-3}  # fmt: skip
TEACHING = replace(
    PAPER,
    slug="taught",
    benchmarks=("gsm8k",),
    claims=(),
    preparations={"elder": TRAINED},
    arms={
        "by-elder": {"family": "taught", "roles": {"teacher": "prepared:elder"}},
        "by-itself": {"family": "taught", "roles": {"teacher": "pocket-instruct"}},
    },
)


@pytest.mark.usefixtures("few_worked")
def test_a_family_is_handed_the_models_that_fill_its_roles(root):
    del root
    plan = [stage.name for stage, _ in make_plan(resolve(TEACHING, arguments=SHORT), 0).stages]
    assert plan == ["data", "start", "train", "data", "train", "eval", "eval"]
    arms = ("by-elder", "by-itself")
    runs = run_order(Order(paper=TEACHING, arms=arms, arguments=SHORT)).runs
    losses = {run["arm"]: run["curves"]["loss"][0][1] for run in runs}
    assert losses["by-elder"] > losses["by-itself"] == pytest.approx(0, abs=1e-6)
    kept = {run["arm"]: run["config"]["roles"]["value"] for run in runs}
    assert kept["by-elder"] == {"teacher": "prepared:elder"}


def keys(**changes):
    """The key of a training by a teacher."""
    paper = replace(TEACHING, **changes)
    return Chain(resolve(paper, arguments=SHORT)).train.key


def test_a_training_depends_on_what_its_roles_are_filled_with_and_not_on_a_name(root):
    del root
    other = {"by-elder": {"family": "taught", "roles": {"teacher": "prepared:sage"}}}
    assert keys() == keys(preparations={"sage": TRAINED}, arms=other)
    assert keys() != keys(preparations={"elder": TRAINED | {"max_steps": 2}})
    itself = {"by-elder": {"family": "taught", "roles": {"teacher": "pocket-instruct"}}}
    assert keys() != keys(arms=itself)


def test_arms_that_begin_with_equal_preparations_of_two_names_are_one_training(root):
    del root
    arms = {name: {"model": f"prepared:{name}-cold"} for name in ("a", "b")}
    made = {"a-cold": TRAINED, "b-cold": TRAINED}
    paper = replace(TEACHING, preparations=made, arms=arms)
    with pytest.raises(BadValue, match="arms a and b come to one training"):
        make_plan(resolve(paper), 0)
    other = replace(paper, preparations=made | {"b-cold": TRAINED | {"max_steps": 2}})
    assert make_plan(resolve(other), 0)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"teahcer": "pocket-base"}, "no role of a model in the family taught 'teahcer': did you "
         "mean teacher"),
        ({"teacher": "prepared:eldre"}, "no preparation 'eldre': did you mean elder"),
        ({"teacher": "pocket-bsae"}, "no model 'pocket-bsae'"),
    ],
)  # fmt: skip
def test_a_role_that_is_not_there_or_filled_by_nobody_is_refused(root, roles, message):
    del root
    paper = replace(TEACHING, arms={"by-elder": {"family": "taught", "roles": roles}})
    with pytest.raises(UnknownName, match=message):
        run_order(Order(paper=paper, arguments=SHORT))


def test_a_family_without_roles_takes_none():
    with pytest.raises(UnknownName, match="no role of a model in the family sft 'teacher'"):
        resolve(replace(TEACHING, arms={"a": {"family": "sft", "roles": {"teacher": "x"}}}))


@pytest.fixture
def reward_model(tmp_path):
    """A sequence classifier with one label, made of the weights of the pocket model."""
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(
        locate("pocket-instruct"), num_labels=1
    )
    model.save_pretrained(tmp_path / "rewarding")
    load_tokenizer("pocket-instruct").save_pretrained(tmp_path / "rewarding")
    return str(tmp_path / "rewarding")


def test_a_reward_model_pays_beside_the_rewards_of_the_paper(root, reward_model):
    del root
    paper = replace(PAPER, slug="paid", benchmarks=("gsm8k",), claims=())
    asked = (*SHORT, *GROUPS, f"roles={{'reward': {reward_model!r}}}")
    (record,) = run_order(Order(paper=paper, arguments=asked)).runs
    curves = record["curves"]
    paid = [value for _, value in curves["rewards/rewarding/mean"]]
    right = [value for _, value in curves["rewards/accuracy/mean"]]
    both = [value for _, value in curves["reward"]]
    assert all(paid)
    assert both == pytest.approx([a + b for a, b in zip(paid, right, strict=True)], abs=1e-5)


@pytest.mark.usefixtures("few_worked")
def test_a_model_that_never_learned_to_reward_is_refused(root):
    del root
    paper = replace(PAPER, slug="paid", benchmarks=("gsm8k",), claims=(),
                    preparations={"cold": TRAINED})  # fmt: skip
    asked = (*SHORT, *GROUPS, "roles={'reward': 'prepared:cold'}")
    with pytest.raises(BadValue, match=r"its files lack score\.weight"):
        run_order(Order(paper=paper, arguments=asked))
