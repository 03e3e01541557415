"""Sampling ratios, loss and gradient are TRL's in double precision for what an engine reports."""

import pytest
import torch
from peers import (
    canned,
    difference,
    double,
    exact_head,
    gradients,
    pair,
    repeated,
    shared_metrics,
    slices,
)

TOLERANCE, SINGLE = 1e-12, 3e-7
LIMITS = {
    "above": {"clip_max": 3.0, "clip_min": None},
    "both": {"clip_max": 1.2, "clip_min": 0.8},
    "below": {"clip_max": None, "clip_min": 0.9},
}


def reporting(rollout):
    """The same rollouts with what an engine says of their tokens; of one token it does not know."""

    def report(prompts, trainer):
        found = rollout(prompts, trainer)
        random = torch.Generator().manual_seed(1)
        pairs = zip(found["prompt_ids"], found["completion_ids"], strict=True)
        found["logprobs"] = [engines(trainer.model, *pair, random) for pair in pairs]
        found["logprobs"][2][0] = None
        return found

    return report


@torch.no_grad()
def engines(model, prompt, tokens, random):
    """Log-probabilities near the model's, in single precision, which TRL turns them to."""
    ids = torch.tensor([[*prompt, *tokens]])
    logps = model(ids).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
    own = logps.gather(-1, torch.tensor(tokens)[:, None]).squeeze(-1)
    return (own + 0.3 * torch.randn(len(tokens), generator=random)).float().tolist()


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize(
    "mode", ["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]
)
def test_correction(mode, limits, saved_llama, tiny_tokenizer, tmp_path, monkeypatch, measured):
    exact_head(monkeypatch)
    peers = pair(
        double(saved_llama),
        tiny_tokenizer,
        tmp_path,
        rollout=canned(tiny_tokenizer),  # replaced below
        beta=0.04,
        steps_per_generation=2,
        vllm_importance_sampling_mode=mode,
        **{f"vllm_importance_sampling_{name}": value for name, value in LIMITS[limits].items()},
    )
    for trainer in peers:  # an engine itself is not needed for what follows from its report
        trainer.args.use_vllm = True
        trainer._last_loaded_step = trainer.state.global_step
        trainer.rollout_func = reporting(canned(tiny_tokenizer))
        trainer.ref_model = double(trainer.ref_model)
    peers[1].use_vllm = True
    ratios, losses = [], []
    for trainer in peers:
        batches = slices(trainer, repeated(trainer, 16))
        trainer.model.zero_grad()
        loss = sum(trainer.compute_loss(trainer.model, dict(batch)) for batch in batches)
        loss.backward()
        losses.append(loss)
        ratios.append([batch["importance_sampling_ratio"] for batch in batches])
    for mine, other in zip(*ratios, strict=True):
        width = mine.size(1)
        assert (other[:, width:] == 1).all()
        assert measured(f"{mode}: ratio", difference(mine, other[:, :width])) < TOLERANCE
    assert len(torch.cat([r.flatten() for r in ratios[0]]).unique()) >= 3
    assert measured(f"{mode}: loss", difference(*losses)) < TOLERANCE
    found = difference(*(gradients(trainer) for trainer in peers))
    assert measured(f"{mode}: gradient", found) < TOLERANCE
    mine, other = (trainer._metrics["train"] for trainer in peers)
    assert shared_metrics(mine) == set(other)
    for name in other:
        assert measured(f"{mode}: metrics", difference(mine[name], other[name])) < SINGLE
