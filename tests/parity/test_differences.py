"""Where we do not do as TRL 1.16 does: each difference shown by its numbers."""

import pytest
import torch
from architectures import built
from peers import canned, difference, double, exact_head, gradients, pair, repeated, slices

from core.forward.batches import token_batch
from core.forward.logps import token_logps


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
    ours, batches, theirs, peers, tokens = two_rollouts(
        model, tiny_tokenizer, tmp_path, token_normalizer="step"
    )
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


def test_learned_positions_do_not_move_with_padding(tiny_tokenizer, tmp_path):
    """GPT-2 samples a short prompt from position 0 on; TRL trains it behind its padding."""
    ours, theirs = pair(built("gpt2"), tiny_tokenizer, tmp_path, disable_dropout=True)
    prompts, completions = [[5, 6], [7, 8, 9, 10, 11]], [[20, 21, 22], [23, 24]]
    batch = token_batch(prompts, completions, 0, None)
    ids, mask = (
        torch.cat([batch[f"prompt_{part}"], batch[f"completion_{part}"]], dim=1)
        for part in ("ids", "mask")
    )
    width = batch["completion_ids"].size(1)
    with torch.no_grad():
        plain = ours.model(input_ids=torch.tensor([prompts[0] + completions[0]])).logits
        truth = plain[0, 1:-1].log_softmax(-1).gather(-1, torch.tensor(completions[0])[:, None])
        mine = token_logps(ours.model, batch, 1.0).logps[0]
        other = theirs._get_per_token_logps_and_entropies(theirs.model, ids, mask, width)[0][0]
    assert (mine - truth[:, 0]).abs().max() < 1e-5
    assert (other - truth[:, 0]).abs().max() > 0.1
