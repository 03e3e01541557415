import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.configs.grpo import GRPOConfig
from core.losses.aggregate import (
    AGGREGATES,
    Scale,
    constant_length,
    global_token_mean,
    prompt_mean,
    sequence_mean,
    token_mean,
    token_sum,
)
from core.losses.batch import PolicyConfig, Rollout
from core.losses.kl import k1, k2, k3
from core.losses.loss_statistics import clipped_high, clipped_low
from core.losses.masked import masked_mean, nanstd
from core.losses.policy import LOSS_TYPES, policy_loss
from core.losses.ratio import RATIOS, sequence_ratio, token_ratio
from core.losses.surrogate import clipped_surrogate

MASK = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]])


def rows(*values):
    return torch.tensor(values, dtype=torch.float64)


def rollout(log_ratio, advantages, mask=None, **more):
    logps = rows(*log_ratio) - 2.0
    return Rollout(
        logps=logps.requires_grad_(),
        old_logps=torch.full_like(logps, -2.0),
        advantages=rows(*advantages).reshape(len(logps), -1),
        mask=torch.ones(logps.shape, dtype=torch.long) if mask is None else mask,
        **more,
    )


def scale(tokens=4, **more):
    return Scale(rollout_tokens=torch.tensor(tokens), **more)


def test_masked_means_skip_padding():
    x = rows([1, 2, 6, 99], [5, 99, 99, 99])
    assert masked_mean(x, MASK).tolist() == [3.0, 5.0]
    assert token_mean(x, MASK, scale()).item() == 14 / 4


def test_mean_of_nothing_is_zero():
    nothing = torch.zeros(2, 4, dtype=torch.long)
    assert masked_mean(torch.ones(2, 4), nothing).tolist() == [0.0, 0.0]
    assert token_mean(torch.ones(2, 4), nothing, scale()).item() == 0.0


def test_nanstd_is_the_sample_deviation_of_what_is_there():
    x = rows([1, math.nan, 4, 7], [2, math.nan, math.nan, math.nan])
    assert nanstd(x, 1)[0].item() == pytest.approx(3.0)
    assert nanstd(x, 1)[1].isnan()
    assert nanstd(x).item() == pytest.approx(torch.tensor([1.0, 4, 7, 2]).std().item())
    assert nanstd(x, 1, keepdim=True).shape == (2, 1)


def test_token_ratio_is_the_quotient_of_probabilities():
    r = rollout([[0.0, math.log(2), -math.log(4)]], [1.0])
    assert token_ratio(r)[0].tolist() == pytest.approx([1.0, 2.0, 0.25])


def test_sequence_ratio_is_the_geometric_mean_over_kept_tokens():
    r = rollout([[math.log(2), math.log(8), 5.0]], [1.0], torch.tensor([[1, 1, 0]]))
    assert sequence_ratio(r).tolist() == [pytest.approx([4.0])]


@pytest.mark.parametrize("level", RATIOS)
def test_ratio_of_an_unmoved_policy_is_one(level):
    assert RATIOS[level].ratio(rollout([[0.0] * 4] * 2, [1.0, -1.0], MASK)).unique().item() == 1.0


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope"),
    [
        (1.0, 2.0, -2.0, -2.0),
        (1.1, 2.0, -2.2, -2.0),
        (1.5, 2.0, -2.56, 0.0),  # the upper bound stops it at 1.28
        (0.5, 2.0, -1.0, -2.0),
        (0.5, -2.0, 1.6, 0.0),  # the lower bound stops it at 0.8
        (1.5, -2.0, 3.0, 2.0),
        (9.0, -2.0, 8.0, 0.0),  # delta stops it at 4
    ],
)
def test_clipped_surrogate_by_hand(ratio, advantage, loss, slope):
    r = rollout([[0.0]], [advantage])
    moved = rows([ratio]).requires_grad_()
    c = PolicyConfig(epsilon=0.2, epsilon_high=0.28, delta=4.0)
    found = clipped_surrogate(r, moved, c)
    found.sum().backward()
    assert found.item() == pytest.approx(loss)
    assert moved.grad.item() == pytest.approx(slope)


def test_clip_counts_where_the_gradient_stops():
    r = rollout([[0.0] * 4], [[1.0, 1.0, -1.0, -1.0]])
    ratio = rows([0.5, 1.5, 0.5, 1.5])
    assert clipped_high(r, ratio, PolicyConfig())[0].tolist() == [0, 1, 0, 0]
    assert clipped_low(r, ratio, PolicyConfig())[0].tolist() == [0, 0, 1, 0]


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=6), st.integers(0, 99))
def test_k3_is_never_negative_and_unbiased(logits, seed):
    p = torch.tensor(logits, dtype=torch.float64).log_softmax(0)
    noise = torch.randn(len(p), generator=torch.Generator().manual_seed(seed))
    q = (p + noise).log_softmax(0)
    each = k3(p.unsqueeze(0), q.unsqueeze(0))
    assert (each >= -1e-12).all()
    kl = (p.exp() * (p - q)).sum().item()
    assert (p.exp() * each).sum().item() == pytest.approx(kl, abs=1e-9)
    assert (p.exp() * k1(p.unsqueeze(0), q.unsqueeze(0))).sum().item() == pytest.approx(kl)


def test_k3_varies_less_than_k1_between_near_policies():
    p = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64).log()
    q = torch.tensor([0.45, 0.33, 0.22], dtype=torch.float64).log()

    def variance(estimate):
        mean = (p.exp() * estimate).sum()
        return (p.exp() * (estimate - mean).square()).sum().item()

    assert variance(k3(p[None], q[None])) < 0.1 * variance(k1(p[None], q[None]))


def test_k2_is_half_the_square():
    assert k2(rows([1.0]), rows([-1.0])).item() == 2.0


def test_aggregates_by_hand():
    x = rows([1, 2, 6, 99], [5, 99, 99, 99])
    assert sequence_mean(x, MASK, scale()).item() == 4.0
    assert token_mean(x, MASK, scale()).item() == 3.5
    assert constant_length(x, MASK, scale(max_length=7)).item() == 1.0
    assert global_token_mean(x, MASK, scale(28)).item() == 0.5
    assert sequence_mean(x, MASK, scale(accumulation=2)).item() == 2.0
    assert token_sum(x, MASK, scale()).item() == 7.0
    one_group = scale(group_tokens=rows(2.0, 2.0))  # four tokens of two completions
    assert prompt_mean(x, MASK, one_group).item() == 3.5
    two_groups = scale(group_tokens=rows(3.0, 1.0))
    assert prompt_mean(x, MASK, two_groups).item() == (9 / 3 + 5) / 2
    # two updates of one micro-batch each from a rollout of 28 tokens on 2 processes: 7 tokens
    share = scale(28, accumulation=1, micro_batches=2, processes=2)
    assert global_token_mean(x, MASK, share).item() == 2.0


@given(st.data())
@settings(max_examples=40)
@pytest.mark.parametrize("name", [name for name, row in AGGREGATES.items() if row.split_invariant])
def test_micro_batches_add_up_to_the_whole(name, data):
    parts = data.draw(st.sampled_from([1, 2, 4, 8]))
    lengths = data.draw(st.lists(st.integers(0, 5), min_size=8, max_size=8))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 999)))
    mask = (torch.arange(5) < torch.tensor(lengths).unsqueeze(1)).long()
    loss = torch.randn(8, 5, generator=generator, dtype=torch.float64)
    aggregate, tokens = AGGREGATES[name].mean, int(mask.sum())
    groups = mask.view(4, -1).sum(1).clamp(min=1).div(2).double().repeat_interleave(2)
    whole = aggregate(loss, mask, scale(tokens, max_length=5, group_tokens=groups))
    cut = {"max_length": 5, "accumulation": parts, "micro_batches": parts}
    pieces = zip(loss.chunk(parts), mask.chunk(parts), groups.chunk(parts), strict=True)
    split = [aggregate(x, m, scale(tokens, group_tokens=g, **cut)) for x, m, g in pieces]
    assert sum(split).item() == pytest.approx(whole.item(), abs=1e-12)


@pytest.mark.parametrize("level", RATIOS)
def test_ratio_one_gives_the_gradient_of_reinforce(level):
    """Of the mean over its tokens; of the product of them all, that of their sum."""
    r = rollout([[0.0] * 4] * 2, [2.0, -1.0], MASK)
    c = PolicyConfig(loss_type="grpo", importance_sampling_level=level)
    policy_loss(r, c, scale()).loss.backward()
    times = MASK.sum(1, keepdim=True) if level == "completion" else 1
    expected = -r.advantages * MASK / MASK.sum(1, keepdim=True) / 2
    torch.testing.assert_close(r.logps.grad, expected * times)


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_padding_changes_nothing(loss_type):
    generator = torch.Generator().manual_seed(3)
    noise = torch.randn(3, 2, 4, generator=generator, dtype=torch.float64)
    c = PolicyConfig(loss_type=loss_type, beta=0.1)

    def loss(extra):
        def wide(x, value=7.0):
            return torch.nn.functional.pad(x, (0, extra), value=value)

        r = Rollout(
            logps=wide(noise[0]),
            old_logps=wide(noise[1]),
            ref_logps=wide(noise[2]),
            advantages=rows([1.0], [-2.0]),
            mask=wide(MASK, 0),
        )
        return policy_loss(r, c, scale(max_length=9)).loss.item()

    assert loss(5) == pytest.approx(loss(0), rel=1e-12)


@pytest.mark.parametrize(
    ("corrected", "slope"),
    [(False, lambda log_u: 1 - log_u.exp()), (True, lambda log_u: -log_u)],
)
def test_bias_correction_keeps_the_kl_and_changes_its_gradient(corrected, slope):
    """At ratio 1 the plain gradient is 1 - u; the corrected one is log(pi / pi_ref)."""
    log_u = rows([0.3, -0.7, 1.1])
    r = rollout([[0.0] * 3], [0.0], ref_logps=log_u - 2.0)
    c = PolicyConfig(loss_type="grpo", beta=0.5, use_bias_correction_kl=corrected)
    found = policy_loss(r, c, scale())
    found.loss.backward()
    torch.testing.assert_close(found.kl.detach(), log_u.exp() - log_u - 1)
    torch.testing.assert_close(r.logps.grad, 0.5 * slope(log_u) / 3)


def test_without_reference_there_is_no_kl():
    assert policy_loss(rollout([[0.0]], [1.0]), PolicyConfig(), scale()).kl is None


def test_config_offers_exactly_the_tables_rows():
    assert GRPOConfig.CHOICES["loss_type"] == tuple(LOSS_TYPES)
    assert GRPOConfig.CHOICES["importance_sampling_level"] == tuple(RATIOS)
