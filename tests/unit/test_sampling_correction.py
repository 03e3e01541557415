"""Laws of the ratio that corrects for an engine's own probabilities."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.losses.aggregate import Scale
from core.losses.batch import PolicyConfig, Rollout
from core.losses.policy import policy_loss
from core.losses.sampling import MODES, Correction, sampling_ratio

OPEN = {"clip_min": None, "clip_max": None}


def rows(seed, spread=1.0, b=5, t=7):
    """Log-probabilities of both sides and a mask with something to keep in every row."""
    random = torch.Generator().manual_seed(seed)
    ours = -torch.rand(b, t, generator=random, dtype=torch.float64) * 3
    theirs = ours + spread * torch.randn(b, t, generator=random, dtype=torch.float64)
    mask = (torch.rand(b, t, generator=random) < 0.7).long()
    mask[:, 0] = 1
    return ours, theirs, mask


@given(
    st.sampled_from(sorted(MODES)), st.integers(0, 10**6), st.floats(0.1, 0.9), st.floats(1.1, 5)
)
def test_ratios_stay_within_their_limits_or_are_0(mode, seed, low, high):
    ours, theirs, mask = rows(seed)
    c = Correction(mode=mode, clip_min=low, clip_max=high)
    ratio = sampling_ratio(ours, theirs, mask, c)
    assert ratio.shape == (mask.shape if mode.startswith("token") else (len(mask), 1))
    inside = (ratio >= low) & (ratio <= high)
    assert (inside | (ratio == 0)).all()
    free = sampling_ratio(ours, theirs, mask, Correction(mode=mode, **OPEN))
    if mode == "geometric_mask":  # a weight of 0 or 1, see below
        return
    unchanged = (free >= low) & (free <= high)
    assert torch.equal(ratio[unchanged], free[unchanged])
    if mode.endswith("_mask"):
        assert (ratio[~unchanged] == 0).all()


@given(st.integers(0, 10**6), st.floats(0.1, 0.99), st.floats(1.01, 5))
def test_geometric_rejection_keeps_whole_completions_unweighed(seed, low, high):
    ours, theirs, mask = rows(seed)
    c = Correction(mode="geometric_mask", clip_min=low, clip_max=high)
    ratio = sampling_ratio(ours, theirs, mask, c)
    for row, (difference, kept) in enumerate(zip(ours - theirs, mask.bool(), strict=True)):
        mean = difference[kept].mean().exp()
        assert ratio[row, 0] == float(low <= mean <= high)


@given(st.integers(0, 10**6), st.integers(2, 5))
def test_geometric_rejection_does_not_depend_on_the_length(seed, times):
    """A completion that is repeated has the same mean, while the product of its ratios grows."""
    ours, theirs, mask = (part.repeat(1, times) for part in rows(seed))
    c = Correction(mode="geometric_mask", clip_min=0.7, clip_max=1.4)
    width = ours.size(1) // times
    short = sampling_ratio(ours[:, :width], theirs[:, :width], mask[:, :width], c)
    assert torch.equal(sampling_ratio(ours, theirs, mask, c), short)


@pytest.mark.parametrize("mode", MODES)
def test_equal_policies_and_unknown_or_untrained_tokens_have_ratio_1(mode):
    ours, theirs, mask = rows(0)
    c = Correction(mode=mode)
    assert (sampling_ratio(ours, ours, mask, c) == 1).all()
    unknown = torch.where(mask.bool(), torch.nan, theirs)
    assert (sampling_ratio(ours, unknown, mask, c) == 1).all()
    elsewhere = torch.where(mask.bool(), ours, torch.nan)
    assert (sampling_ratio(ours, elsewhere, mask, c) == 1).all()


def test_a_sequence_counts_the_product_of_its_tokens():
    ours, theirs, mask = rows(1)
    tokens = sampling_ratio(ours, theirs, mask, Correction(mode="token_truncate", **OPEN))
    whole = sampling_ratio(ours, theirs, mask, Correction(mode="sequence_truncate", **OPEN))
    torch.testing.assert_close(tokens.prod(-1, keepdim=True), whole)


def test_the_corrected_gradient_is_that_of_the_trained_policy():
    """Over a whole vocabulary: drawing from q and weighing by p / q has the mean under p."""
    random = torch.Generator().manual_seed(3)
    logits = torch.randn(6, generator=random, dtype=torch.float64)
    engine = (logits + 0.5 * torch.randn(6, generator=random, dtype=torch.float64)).log_softmax(-1)
    advantages = torch.randn(6, 1, generator=random, dtype=torch.float64)

    def gradient(draw, ratio):
        z = logits.clone().requires_grad_()
        logps = z.log_softmax(-1).unsqueeze(1)  # each token as a completion of one
        r = Rollout(
            logps=logps,
            old_logps=logps.detach(),
            advantages=advantages * draw.unsqueeze(1) * len(logits),  # its share of the draws
            mask=torch.ones(6, 1).long(),
            sampling_ratio=ratio,
        )
        policy_loss(r, PolicyConfig(), Scale(rollout_tokens=torch.tensor(6))).loss.backward()
        return z.grad

    p, q = logits.softmax(-1), engine.exp()
    c = Correction(mode="token_truncate", **OPEN)
    ratio = sampling_ratio(p.log().unsqueeze(1), engine.unsqueeze(1), torch.ones(6, 1).long(), c)
    torch.testing.assert_close(gradient(q, ratio), gradient(p, None))
    assert not torch.allclose(gradient(q, None), gradient(p, None))
