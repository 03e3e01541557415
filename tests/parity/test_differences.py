"""Where we do not do as TRL 1.16 does: each difference shown by its numbers."""

import pytest
import torch
from peers import canned, difference, double, exact_head, gradients, pair, repeated, slices


@pytest.fixture
def model(saved_llama):
    return double(saved_llama)


def losses(trainer, batches):
    return torch.stack([trainer.compute_loss(trainer.model, batch) for batch in batches]).detach()


def two_rollouts(model, tokenizer, folder, **options):
    """Both trainers with the micro-batches of one optimizer step, each of a rollout of its own."""
    ours, theirs = pair(
        model,
        tokenizer,
        folder,
        gradient_accumulation_steps=2,
        steps_per_generation=1,
        rollout=canned(tokenizer),  # replaced below
    )
    for name, value in options.items():  # TRL has no such fields
        setattr(ours.args, name, value)
    ours.rollout_func, theirs.rollout_func = canned(tokenizer), canned(tokenizer)
    rows = [[dict(row) for row in repeated(ours, 8)] for _ in range(2)]
    torch.manual_seed(5)
    batches = ours.optimizer_step_batches([list(r) for r in rows])
    torch.manual_seed(5)
    peers = [slices(theirs, r, seed=None)[0] for r in rows]
    tokens = torch.stack([batch["completion_mask"].sum() for batch in peers]).double()
    assert tokens[0] != tokens[1]
    return ours, batches, theirs, peers, tokens


def test_dapo_over_two_rollouts_weighs_every_token_alike(
    model, tiny_tokenizer, tmp_path, monkeypatch
):
    """One optimizer step over two rollouts: ours divides by the tokens of the step.

    TRL divides each rollout's share by that rollout's own tokens, so that a token of the shorter
    rollout weighs more; arXiv 2503.14476 eq. 12 is one mean over all tokens.
    """
    exact_head(monkeypatch)
    ours, batches, theirs, peers, tokens = two_rollouts(model, tiny_tokenizer, tmp_path)
    theirs_losses = losses(theirs, peers)
    sums = theirs_losses * tokens * 2  # TRL: sum / (tokens of the rollout * 2)
    assert difference(losses(ours, batches), sums / tokens.sum()) < 1e-12
    assert difference(losses(ours, batches).sum(), theirs_losses.sum()) > 1e-3


def test_dapo_by_rollouts_is_trls(model, tiny_tokenizer, tmp_path, monkeypatch, measured):
    exact_head(monkeypatch)
    ours, batches, theirs, peers, _ = two_rollouts(
        model, tiny_tokenizer, tmp_path, token_normalizer="rollout"
    )
    for mine, other in zip(batches, peers, strict=True):
        pairs = (ours, mine), (theirs, other)
        found = [trainer.compute_loss(trainer.model, dict(batch)) for trainer, batch in pairs]
        for loss in found:
            loss.backward()
        assert measured("dapo by rollouts: loss", difference(*found)) < 1e-12
    both = difference(gradients(ours), gradients(theirs))
    assert measured("dapo by rollouts: gradient", both) < 1e-12
