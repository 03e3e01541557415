"""One micro-batch gives the loss, gradient and metrics that TRL gives, in double precision."""

import pytest
import torch
import trl
from peers import build, difference, double, exact_head, gradients, pair, shared_metrics
from trl.experimental.gmpo import GMPOTrainer

import core

TOLERANCE = 1e-12
SINGLE = 1e-7  # TRL averages what was clipped in single precision
LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo")
KL = {
    "no kl": {"beta": 0.0},
    "kl": {"beta": 0.04, "use_bias_correction_kl": False},
    "corrected kl": {"beta": 0.04, "use_bias_correction_kl": True},
}
CLIP = {
    "symmetric": {"epsilon": 0.2},
    "higher": {"epsilon": 0.1, "epsilon_high": 0.3},
    "capped": {"epsilon": 0.2, "epsilon_high": 0.28, "delta": 1.5},
    "capped inside": {"epsilon": 0.2, "delta": 1.1},
}


@pytest.fixture
def model(saved_llama):
    return double(saved_llama)


def micro_batch(model, *, rows=6, prompt=5, length=8, old=True, per_token=False, cut=False):
    """Random inputs with padding on both sides, ratios on both sides of every clip, a reference."""
    random = torch.Generator().manual_seed(3)

    def noise(scale):
        return scale * torch.randn(rows, length, generator=random, dtype=torch.float64)

    vocab = model.config.vocab_size
    prompt_lengths = torch.tensor([5, 3, 1, 4, 5, 2])[:, None]
    lengths = torch.tensor([8, 1, 5, 3, 7, 2])[:, None]
    inputs = {
        "prompt_ids": torch.randint(5, vocab, (rows, prompt), generator=random),
        "prompt_mask": (torch.arange(prompt) >= prompt - prompt_lengths).long(),
        "completion_ids": torch.randint(5, vocab, (rows, length), generator=random),
        "completion_mask": (torch.arange(length) < lengths).long(),
        "advantages": torch.tensor([1.2, -0.7, 0.0, -1.9, 0.3, 2.1]),
    }
    if cut:
        inputs["completion_mask"][[0, 3]] = 0
    if per_token:
        inputs["advantages"] = inputs["advantages"][:, None] + noise(0.5)
    inputs["num_items_in_batch"] = 2 * inputs["completion_mask"].sum() + 5
    ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
    mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
    with torch.no_grad():
        logps = model(input_ids=ids, attention_mask=mask).logits[:, :-1].log_softmax(-1)
    logps = logps.gather(-1, ids[:, 1:, None])[:, prompt - 1 :, 0]
    inputs["ref_per_token_logps"] = logps + noise(0.4)
    if old:
        inputs["old_per_token_logps"] = logps + noise(0.3)
    return inputs


def compare(ours, theirs, inputs):
    """Largest differences of loss, gradient and metrics after one call of `compute_loss`."""
    losses = []
    for trainer in (ours, theirs):
        trainer.model.zero_grad()
        loss = trainer.compute_loss(trainer.model, {k: v.clone() for k, v in inputs.items()})
        loss.backward()
        losses.append(loss)
    mine, other = ours._metrics["train"], theirs._metrics["train"]
    other.pop("entropy_coef", None)  # is logged here when the step ends
    assert shared_metrics(mine) == set(other)
    metrics = max(difference(mine[name], other[name]) for name in other)
    return difference(*losses), difference(gradients(ours), gradients(theirs)), metrics


def check(errors, measured, group):
    for kind, error in zip(("loss", "gradient", "metrics"), errors, strict=True):
        assert measured(f"{group}: {kind}", error) < (SINGLE if kind == "metrics" else TOLERANCE)


@pytest.mark.parametrize("clip", CLIP)
@pytest.mark.parametrize("kl", KL)
@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("loss_type", LOSSES)
def test_loss(loss_type, level, kl, clip, model, tiny_tokenizer, tmp_path, monkeypatch, measured):
    exact_head(monkeypatch)
    options = KL[kl] | CLIP[clip] | {"loss_type": loss_type, "importance_sampling_level": level}
    peers = pair(model, tiny_tokenizer, tmp_path, temperature=0.9, **options)
    group = f"{loss_type}, {level} ratio, {kl}"
    check(compare(*peers, micro_batch(model)), measured, group)
    check(compare(*peers, micro_batch(model, old=False)), measured, group)
    check(compare(*peers, micro_batch(model, per_token=True)), measured, group)
    check(compare(*peers, micro_batch(model, cut=True)), measured, group)


ROWS = {
    "luspo": {"loss_type": "luspo", "importance_sampling_level": "sequence"},
    "cispo": {"loss_type": "cispo", "epsilon_high": 1.1},
    "sapo": {"loss_type": "sapo"},
    "vespo": {"loss_type": "vespo", "vespo_k_neg": 2.0},
    "gmpo": {"loss_type": "gmpo", "epsilon": 0.2, "use_bias_correction_kl": False},
    "off-policy mask": {"off_policy_mask_threshold": 0.01},
    "bonus": {"entropy_coef": 0.1},
    "bonus, grpo": {"entropy_coef": 0.1, "loss_type": "grpo"},
}


@pytest.mark.parametrize("row", ROWS)
def test_row(row, model, tiny_tokenizer, tmp_path, monkeypatch, measured):
    exact_head(monkeypatch)
    options = {"beta": 0.04, "temperature": 0.9, "gradient_accumulation_steps": 2, **ROWS[row]}
    if row == "gmpo":  # of TRL a trainer of its own
        theirs = {**options, "loss_type": "grpo"}
        peers = (
            build(core, model, tiny_tokenizer, tmp_path, **options),
            build(trl, model, tiny_tokenizer, tmp_path, kind=GMPOTrainer, **theirs),
        )
        for trainer in peers:
            trainer.model.train()
            trainer.current_gradient_accumulation_steps = 2
    else:
        peers = pair(model, tiny_tokenizer, tmp_path, **options)
    check(compare(*peers, micro_batch(model)), measured, row)
    check(compare(*peers, micro_batch(model, old=False)), measured, row)
    if row != "gmpo":  # TRL adds a constant for a completion without tokens
        check(compare(*peers, micro_batch(model, per_token=True)), measured, row)
        check(compare(*peers, micro_batch(model, cut=True)), measured, row)


@pytest.mark.parametrize("window", [1, 2, 3])
@pytest.mark.parametrize("loss_type", LOSSES)
def test_window(loss_type, window, model, tiny_tokenizer, tmp_path, monkeypatch, measured):
    """A rollout of six micro-batches, three to a window, of which the last may be shorter."""
    exact_head(monkeypatch)
    options = {"gradient_accumulation_steps": 3, "steps_per_generation": 6, "beta": 0.04}
    peers = pair(model, tiny_tokenizer, tmp_path, loss_type=loss_type, **options)
    for trainer in peers:
        trainer.current_gradient_accumulation_steps = window
    check(compare(*peers, micro_batch(model)), measured, "shorter windows")


def test_head(saved_llama, tiny_tokenizer, tmp_path, measured):
    """TRL's own single-precision head, in float32: the same up to rounding."""
    options = {"beta": 0.04, "epsilon_high": 0.28, "temperature": 0.7}
    peers = pair(saved_llama, tiny_tokenizer, tmp_path, **options)
    inputs = {
        name: rows.float() if rows.is_floating_point() else rows
        for name, rows in micro_batch(saved_llama).items()
    }
    for kind, error in zip(("loss", "gradient", "metrics"), compare(*peers, inputs), strict=True):
        assert measured(f"float32 with TRL's fused head: {kind}", error) < 1e-5
