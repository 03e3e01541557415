"""Gradient checkpointing, bfloat16 and compilation keep a run's numbers within stated bounds."""

import shutil

import pytest
import torch
from datasets import Dataset
from grpo_runs import digits, logs, prompts, weights
from torch._dynamo.utils import counters
from torch.utils._python_dispatch import TorchDispatchMode

from core import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer
from core.forward.checkpoints import ATTENTION

ROWS = [{"prompt": f"{a}+{b}=", "completion": f"{a + b} is it"} for a in range(4) for b in range(3)]
COMMON = {
    "max_steps": 3,
    "per_device_train_batch_size": 4,
    "learning_rate": 1e-3,
    "lr_scheduler_type": "constant",
    "logging_steps": 1,
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
}
GRPO = {"num_generations": 4, "max_completion_length": 8, "beta": 0.05, "num_iterations": 2}
TRAINERS = ("sft", "grpo")


@pytest.fixture
def make(build_llama, tiny_tokenizer, tmp_path):
    """Build a trainer of either kind on the same data; the rollouts of GRPO are always the same."""

    def rollout(rows, trainer):
        random = torch.Generator().manual_seed(trainer.state.global_step)
        ids = torch.randint(5, 60, (len(rows), 8), generator=random).tolist()
        asked = [tiny_tokenizer(row[0]["content"]).input_ids for row in rows]
        return {"prompt_ids": asked, "completion_ids": ids, "logprobs": None}

    def build(kind, layers=2, **changes):
        folder, model = str(tmp_path / "out"), build_llama(seed=1, num_hidden_layers=layers)
        if kind == "sft":
            args = SFTConfig(output_dir=folder, **COMMON | changes)
            rows = Dataset.from_list(ROWS)
            return SFTTrainer(model, args, train_dataset=rows, processing_class=tiny_tokenizer)
        args = GRPOConfig(output_dir=folder, **COMMON | GRPO | changes)
        return GRPOTrainer(
            model, digits, args, prompts(), processing_class=tiny_tokenizer, rollout_func=rollout
        )

    return build


def run(trainer):
    """Losses by step, and how far each weight has moved."""
    start = weights(trainer.model).clone()
    trainer.train()
    losses = torch.tensor([float(loss) for loss in logs(trainer, "loss")])
    return losses, weights(trainer.model) - start


def apart(found, expected):
    """Length of the difference over the length of what is expected."""
    return ((found - expected).norm() / expected.norm()).item()


@pytest.mark.parametrize("kind", TRAINERS)
def test_gradient_checkpointing_changes_no_bit(kind, make):
    recomputed = []
    trainer = make(kind, gradient_checkpointing=True)
    layer = trainer.model.model.layers[0].mlp
    layer.register_forward_pre_hook(lambda *_: recomputed.append(torch.is_grad_enabled()))
    found, plain = run(trainer), run(make(kind))
    micro_batches = 3
    assert sum(recomputed) == 2 * micro_batches  # forward, and again going backward
    assert all(torch.equal(a, b) for a, b in zip(found, plain, strict=True))


class AttentionCalls(TorchDispatchMode):
    """Counter of the calls of torch's fused attention."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Count the operator if it is attention, and call it."""
        self.count += func in ATTENTION
        return func(*args, **kwargs or {})


@pytest.mark.parametrize("kind", TRAINERS)
def test_selective_checkpoints_compute_attention_once_and_change_no_bit(kind, make):
    results = []
    for keywords in ({"selective": True}, {"selective": False}, None):
        trainer = make(kind, gradient_checkpointing=True, gradient_checkpointing_kwargs=keywords)
        with AttentionCalls() as calls:
            results.append((run(trainer), calls.count))
    (selective, fewest), *others = results
    assert fewest > 0
    for found, count in others:
        assert count > fewest
        assert all(torch.equal(a, b) for a, b in zip(found, selective, strict=True))


@pytest.mark.parametrize("kind", TRAINERS)
def test_bfloat16_is_off_by_percents(kind, make):
    """Weights stay in 32 bits; products have 8: losses within 2 %, weights within 0.2 %."""
    start = weights(make(kind).model)
    (losses, moved), (plain, expected) = run(make(kind, bf16=True)), run(make(kind))
    assert moved.dtype == torch.float32
    assert 1e-6 < apart(losses, plain) < 0.02
    assert apart(start + moved, start + expected) < 0.002


def test_bfloat16_has_one_policy(make):
    """The same rounding in every forward pass of a step: while the policy is the same, ratio 1."""
    trainer = make("grpo", bf16=True, max_steps=1)
    trainer.train()
    assert logs(trainer, "kl") == [0.0]
    assert logs(trainer, "clip_ratio/region_mean") == [0.0]


INDUCTOR = pytest.param(  # a step of one layer, for a C++ compiler takes seconds for each graph
    "sft",
    "inductor",
    {"layers": 1, "max_steps": 1},
    marks=pytest.mark.skipif(shutil.which("g++") is None, reason="inductor on a CPU needs g++"),
)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize(
    ("kind", "backend", "few"), [("grpo", "aot_eager", {"max_steps": 2}), INDUCTOR]
)
def test_compilation_keeps_five_digits(kind, backend, few, make):
    torch._dynamo.reset()
    counters.clear()
    trainer = make(kind, torch_compile=True, torch_compile_backend=backend, **few)
    found, plain = run(trainer), run(make(kind, **few))
    assert counters["stats"]["unique_graphs"] > 0
    assert type(trainer.model_wrapped).__name__ == "OptimizedModule"
    assert apart(found[0], plain[0]) < 1e-5
    assert 0 < apart(found[1], plain[1]) < 1e-4  # other sums, so not the same bits
