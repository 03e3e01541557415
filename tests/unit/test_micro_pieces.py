"""A micro-batch in pieces has the loss, gradient and metrics that it has as a whole."""

import pytest
import torch
from grpo_runs import double, of_loss

from core import GRPOTrainer
from core.forward import micro_pieces as cutting
from core.losses.policy import LOSS_TYPES

EXACT = 1e-10


def ends(completion_ids, **_):
    """Differs within a group but for the second prompt's, whose advantages are then 0."""
    return [0.0 if ids[0] < 20 else float(ids[-2] % 5) for ids in completion_ids]


def rollout(prompts, trainer):  # noqa: ARG001 - the caller's signature
    """Four completions of each of two prompts; those of the second all start alike."""
    draw = torch.Generator().manual_seed(trainer._step)
    ids = [torch.randint(20, 64, (4 + i % 3,), generator=draw).tolist() for i in range(8)]
    rows = [[7 if i > 3 else row[0], *row[1:], 1] for i, row in enumerate(ids)]
    return {
        "prompt_ids": [[9, 8, 7 + i // 4] for i in range(8)],
        "completion_ids": rows,
        "logprobs": None,
    }


def step(make_grpo, build_llama, loss_type, beta, mean_tokens, monkeypatch):
    """Gradient norm, loss and metrics of two steps, and how many tokens had a gradient."""
    monkeypatch.setitem(cutting.TOKENS, "cpu", mean_tokens)
    trainer = make_grpo(
        ends,
        model=double(build_llama()),
        rollout=rollout,
        per_device_train_batch_size=8,
        gradient_accumulation_steps=1,
        **of_loss(loss_type),
        beta=beta,
        use_bias_correction_kl=False,
    )
    trainer.train()
    rows = [row for row in trainer.state.log_history if "loss" in row]
    logged = [statistic.name for statistic in LOSS_TYPES[loss_type].logs]
    names = ("loss", "grad_norm", "entropy", *logged)
    values = [[row[name] for name in names] for row in rows]
    weights = torch.cat([p.detach().flatten() for p in trainer.model.parameters()])
    return torch.tensor(values, dtype=torch.float64), weights


@pytest.mark.parametrize("beta", [0.0, 0.04])
@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_pieces_change_nothing(loss_type, beta, make_grpo, build_llama, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(GRPOTrainer, "learns", lambda _, b: torch.ones(len(b["advantages"])).bool())
        whole, weights = step(make_grpo, build_llama, loss_type, beta, 10**6, monkeypatch)
    for tokens in (1, 25):
        parts, other = step(make_grpo, build_llama, loss_type, beta, tokens, monkeypatch)
        assert (parts - whole).abs().max() < 1e-6  # transformers logs in single precision
        assert (other - weights).abs().max() < EXACT


def batch():
    mask = torch.tensor([[1, 1, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1]])
    prompts = torch.tensor([[5, 6], [7, 8], [5, 6], [7, 8]])
    return {
        "prompt_ids": prompts,
        "prompt_mask": torch.ones_like(prompts),
        "completion_ids": torch.arange(12).view(4, 3),
        "completion_mask": mask,
        "num_items_in_batch": torch.tensor(9),
    }


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [(1, [[0], [2], [1], [3]]), (7, [[0, 2], [1, 3]]), (100, [[0, 2, 1, 3]])],
)
def test_prompts_stay_together_within_the_budget(tokens, expected, monkeypatch):
    monkeypatch.setitem(cutting.TOKENS, "cpu", tokens)
    assert cutting.pieces(batch(), torch.ones(4, dtype=torch.bool)) == (expected, [])
    for rows in expected:
        piece = cutting.take(cutting.with_counts(batch()), rows)
        assert (piece["completion_ids"][:, 0] // 3).tolist() == rows
        assert (piece["rows"], piece["tokens"], piece["num_items_in_batch"]) == (4, 9, 9)


def test_completions_without_gradient_are_pieces_of_their_own(monkeypatch):
    monkeypatch.setitem(cutting.TOKENS, "cpu", 100)
    some = torch.tensor([False, True, True, False])
    assert cutting.pieces(batch(), some) == ([[2, 1]], [[0, 3]])
    assert cutting.pieces(batch(), torch.zeros(4, dtype=torch.bool)) == ([[0, 2, 1, 3]], [])


@pytest.mark.parametrize(
    ("few", "expected"), [(9, ([[2, 1]], [[0, 3]])), (10, ([[0, 2, 1, 3]], []))]
)
def test_on_a_gpu_few_tokens_without_gradient_join_the_others(few, expected, monkeypatch):
    """The two completions without gradient have 10 tokens with their prompts."""
    monkeypatch.setattr(cutting, "TOKENS", {})
    monkeypatch.setattr(cutting, "FEW_TOKENS", few)
    assert cutting.pieces(batch(), torch.tensor([False, True, True, False])) == expected


def test_a_zero_advantage_has_no_gradient_only_without_kl_and_bonus(make_grpo):
    advantages = {"advantages": torch.tensor([0.0, 1.0]), "completion_ids": torch.ones(2, 3)}
    assert make_grpo(beta=0.0).learns(advantages).tolist() == [False, True]
    assert make_grpo(beta=0.1).learns(advantages).tolist() == [True, True]
    assert make_grpo(entropy_coef=0.1).learns(advantages).tolist() == [True, True]
    by_token = {"advantages": torch.tensor([[0.0, 0.0], [0.0, 1.0]])}
    assert make_grpo(beta=0.0).learns(by_token).tolist() == [False, True]
