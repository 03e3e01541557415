"""Mixtures of experts: TRL adds the load-balancing loss of their routers, and so do we."""

import copy
import logging
from dataclasses import fields
from inspect import signature

import pytest
import trl
from architectures import built
from datasets import Dataset
from grpo_runs import digits, double, logs
from peers import QUIET, difference, exact_head, gradients, pair
from test_loss import micro_batch
from transformers import AutoModelForSequenceClassification

import core
from core.forward import router
from core.forward.batches import token_batch
from core.forward.logps import token_logps
from core.forward.router import router_weight
from eval.errors import BadValue

EXACT = 1e-12
SINGLE = 1e-6  # as rotations, which TRL turns further where a prompt is padded, and some metrics
KINDS = ("mixtral", "qwen3_moe")
WEIGHTS = {"the model's own": None, "set": 0.7, "off": 0.0}
OWN = 0.3  # large enough to show
ROWS = [
    {
        "prompt": f"{a}+{b}=",
        "completion": f"{a + b} is it",
        "optimal_value": 0.5,
        "chosen": f"{a + b} is it",
        "rejected": f"{a * b + 20}",
        "reference": f"it is {a + b}",
    }
    for a in range(4)
    for b in range(3)
]


@pytest.fixture(params=KINDS)
def model(request, tmp_path):
    """A model in double precision that also lies in a folder, from which TRL loads its own."""
    found = built(request.param, router_aux_loss_coef=OWN)
    found.set_experts_implementation("eager")  # the other one has no double precision
    found.save_pretrained(tmp_path / "model")
    found.config._name_or_path = str(tmp_path / "model")
    return double(found)


def check(losses, vectors, metrics, measured, group, tolerance=EXACT):
    assert vectors[1].abs().max() > 1e-3
    assert measured(f"experts, {group}: loss", difference(*losses)) < tolerance
    assert measured(f"experts, {group}: gradient", difference(*vectors)) < tolerance
    mine, other = metrics
    assert set(mine) == set(other)
    for name in other:
        assert measured(f"experts, {group}: metrics", difference(mine[name], other[name])) < SINGLE


@pytest.mark.parametrize(("weight", "padded"), [*((w, False) for w in WEIGHTS), ("set", True)])
def test_grpo(weight, padded, model, tiny_tokenizer, tmp_path, monkeypatch, measured):
    """Of a whole micro-batch, although one completion has no gradient of its own."""
    exact_head(monkeypatch)
    options = {"router_aux_loss_coef": WEIGHTS[weight], "gradient_accumulation_steps": 2}
    ours, theirs = pair(model, tiny_tokenizer, tmp_path, temperature=0.9, **options)
    assert ours.router_aux_loss_coef == theirs.router_aux_loss_coef
    assert ours.aux_loss_enabled is theirs.aux_loss_enabled is (weight != "off")
    inputs = micro_batch(model)
    if not padded:
        inputs["prompt_mask"][:] = 1
    losses = [ours.learn(ours.model, {k: v.clone() for k, v in inputs.items()}, None)]
    losses.append(theirs.compute_loss(theirs.model, {k: v.clone() for k, v in inputs.items()}))
    losses[1].backward()
    metrics = [trainer._metrics["train"] for trainer in (ours, theirs)]
    assert ("aux_loss" in metrics[0]) is (weight != "off")
    vectors = [gradients(trainer) for trainer in (ours, theirs)]
    group = f"grpo, {weight}{', padded prompts' if padded else ''}"
    check(losses, vectors, metrics, measured, group, SINGLE if padded else EXACT)


@pytest.mark.filterwarnings("ignore")  # TRL's own
@pytest.mark.parametrize(("weight", "items"), [*((w, 17) for w in WEIGHTS), ("set", None)])
def test_sft(weight, items, model, tiny_tokenizer, tmp_path, monkeypatch, measured):
    exact_head(monkeypatch)
    settings = {k: v for k, v in QUIET.items() if "gen" not in k and "completion" not in k}
    pairs = []
    for package in (core, trl):
        args = package.SFTConfig(
            str(tmp_path),
            loss_type="nll",
            gradient_accumulation_steps=2,
            router_aux_loss_coef=WEIGHTS[weight],
            **settings,
        )
        trainer = package.SFTTrainer(
            model=copy.deepcopy(model),
            args=args,
            train_dataset=Dataset.from_list(ROWS),
            processing_class=tiny_tokenizer,
        )
        trainer.model.train()
        trainer.current_gradient_accumulation_steps = 2
        pairs.append(trainer)
    batch = next(iter(pairs[0].get_train_dataloader()))
    losses = [t.compute_loss(t.model, dict(batch), num_items_in_batch=items) for t in pairs]
    for loss in losses:
        loss.backward()
    metrics = [trainer._metrics["train"] for trainer in pairs]
    assert ("aux_loss" in metrics[0]) is (weight != "off")
    check(losses, [gradients(t) for t in pairs], metrics, measured, f"sft, {weight}")


def test_a_weight_without_a_router_is_refused(build_llama):
    with pytest.raises(
        BadValue, match=r"router_aux_loss_coef=0\.1: LlamaForCausalLM is not a Mixture-of-Experts"
    ):
        router_weight(build_llama(), 0.1)
    assert router_weight(build_llama(), None) == router_weight(build_llama(), 0.0) == 0.0


def test_a_router_without_a_loss_is_refused():
    """Its decisions are there, but transformers makes no loss of them."""
    model = built("glm4_moe")
    assert router_weight(model, None) == 0.0
    batch = token_batch([[5, 6]], [[7, 8]], 0, None)
    with pytest.raises(BadValue, match="set router_aux_loss_coef=0"):
        token_logps(model, batch, 1.0, with_router=router_weight(model, 0.1) > 0)


class Lines(logging.Handler):
    """What a logger says."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


@pytest.mark.parametrize(
    ("kind", "changes", "coefficient", "warns"),
    [
        ("glm4_moe", {}, None, True),
        ("glm4_moe", {}, 0.0, False),
        ("qwen3_moe", {"router_aux_loss_coef": 0.0}, None, True),
        ("qwen3_moe", {"router_aux_loss_coef": 0.1}, None, False),
        ("llama", {}, None, False),
    ],
)
def test_experts_without_the_loss_are_warned_about(kind, changes, coefficient, warns):
    router.logger.warning_once.cache_clear()
    heard = Lines()
    router.logger.addHandler(heard)
    try:
        router_weight(built(kind, **changes), coefficient)
    finally:
        router.logger.removeHandler(heard)
    assert any("trained without; set router_aux_loss_coef" in line for line in heard.lines) is warns


REFUSING = {"OnlineDPOTrainer", "XPOTrainer", "NashMDTrainer", "SSDTrainer"}
REFUSING |= {"DistillationTrainer", "GKDTrainer", "GOLDTrainer", "IWOPDTrainer"}
REFUSING |= {"MiniLLMTrainer", "SDFTTrainer", "SDPOTrainer"}
SCORING = {"RewardTrainer", "PRMTrainer", "VerifierTrainer"}  # of classifiers, which return none
DENOISING = {"UniformDiffusionTrainer"}  # of models that read in both directions
TRAINERS = [
    n for n in core.__all__ if n.endswith("Trainer") and n not in REFUSING | SCORING | DENOISING
]


@pytest.mark.parametrize("name", sorted(REFUSING))
def test_trainers_without_that_loss_refuse_to_balance_experts(name, tmp_path):
    config = getattr(core, name.replace("Trainer", "Config"))
    with pytest.raises(ValueError, match="router_aux_loss_coef"):
        config(output_dir=str(tmp_path), use_cpu=True, router_aux_loss_coef=0.1)


def test_scoring_trainers_warn_that_they_do_not_balance_experts(tiny_tokenizer, tmp_path, caplog):
    settings = built("qwen3_moe").config
    settings.num_labels = 1
    model = AutoModelForSequenceClassification.from_config(settings)
    core.RewardTrainer(
        model=model,
        args=core.RewardConfig(str(tmp_path), use_cpu=True, bf16=False, report_to="none"),
        train_dataset=Dataset.from_list(ROWS),
        processing_class=tiny_tokenizer,
    )
    assert "which is trained without its load-balancing loss" in caplog.text


@pytest.mark.parametrize("name", TRAINERS)
def test_every_trainer_balances_experts_unless_it_is_told_not_to(name, tiny_tokenizer, tmp_path):
    gates = []
    for weight in (None, 0.0):
        config = getattr(core, name.replace("Trainer", "Config"))
        settings = {"logging_steps": 1, "max_steps": 1, "optim": "sgd", "save_strategy": "no"}
        # Without the field it is the model's own weight that is trained with.
        names = {field.name for field in fields(config)}
        has_field = "router_aux_loss_coef" in names
        settings |= {"router_aux_loss_coef": weight} if has_field else {}
        samples = {"max_completion_length", "temperature"} <= names
        settings |= {"max_completion_length": 8} if samples else {}
        own = OWN if has_field or weight is None else 0.0
        args = config(
            str(tmp_path),
            learning_rate=1.0,
            lr_scheduler_type="constant",
            max_grad_norm=0.0,
            use_cpu=True,
            bf16=False,
            report_to="none",
            disable_tqdm=True,
            gradient_checkpointing=False,
            **settings,
        )
        trainer_class = getattr(core, name)
        starts = [vars(c)["__init__"] for c in trainer_class.__mro__ if "__init__" in vars(c)]
        needs = {name for start in starts[:-1] for name in signature(start).parameters}
        trainer = trainer_class(
            model=built("qwen3_moe", router_aux_loss_coef=own),
            args=args,
            train_dataset=Dataset.from_list(ROWS),
            processing_class=tiny_tokenizer,
            **({"reward_funcs": digits} if "reward_funcs" in needs else {}),
        )
        trainer.train()
        assert bool(logs(trainer, "aux_loss")) is (weight is None)
        gates.append(trainer.model.model.layers[0].mlp.gate.weight.detach())
    assert (gates[0] - gates[1]).abs().max() > 1e-5
