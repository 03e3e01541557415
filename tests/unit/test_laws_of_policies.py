"""The functions behind exact claims about policy gradients, against numbers worked out by hand."""

from dataclasses import replace
from math import exp, log

import numpy as np
import pytest
import torch

from core.laws import (
    cosine_reward,
    entropy,
    kl_correction,
    masks,
    sampling,
    spreads,
    support,
    tokens,
)
from core.losses import policy as losses
from core.losses.entropy import NORMALIZERS
from core.losses.sampling import MODES
from core.losses.surrogate import clipped_surrogate
from core.losses.token_weights import WEIGHTS


def test_a_token_has_the_clipped_loss_and_its_gradient():
    # -min(r A, clip(r, 0.8, 1.2) A), whose derivative by log pi is -r A where nothing is clipped
    ratios = (0.5, 1.0, 1.5)
    assert tokens.losses(1.0, ratios) == pytest.approx([-0.5, -1.0, -1.2])
    assert tokens.gradients(1.0, ratios) == pytest.approx([-0.5, -1.0, 0.0])
    assert tokens.losses(-1.0, ratios) == pytest.approx([0.8, 1.0, 1.5])
    assert tokens.gradients(-1.0, ratios) == pytest.approx([0.0, 1.0, 1.5])


def test_a_cap_bounds_the_loss_ends_the_gradient_and_changes_nothing_else(monkeypatch):
    assert tokens.largest_loss(-1.0, delta=4.0) == 4.0
    assert tokens.largest_loss(-1.0) == pytest.approx(100)
    assert tokens.gradient_sizes(-1.0, 3.9, 5.0, delta=4.0) == pytest.approx([3.9, 0.0])
    assert max(tokens.change_by_cap(4.0)) == 0
    assert max(tokens.change_by_cap(1.1)) > 0  # inside the clip, where it makes no sense

    def uncapped(r, ratio, c):
        return clipped_surrogate(r, ratio, replace(c, delta=None))

    row = replace(losses.LOSS_TYPES["grpo"], surrogate=uncapped)
    monkeypatch.setitem(losses.LOSS_TYPES, "grpo", row)
    assert tokens.largest_loss(-1.0, delta=4.0) == pytest.approx(100)
    assert tokens.gradient_sizes(-1.0, 5.0, delta=4.0) == pytest.approx([5.0])


def test_tokens_beyond_the_clip_on_the_gaining_side_are_idle():
    # of 0.1, 0.15 ... 6: above 1.28 at A = 1 (1.3 to 6), below 0.8 at A = -1 (0.1 to 0.75)
    assert tokens.idle_tokens("dapo", epsilon_high=0.28) == 95 + 14
    assert tokens.idle_tokens("cispo", epsilon_high=5.0) == 0


def bias_by_hand(policy, sampler, weights):
    """The spectral norm of (I - p 1') diag(mu w - pi), by the softmax's own derivative."""
    pi, mu, w = map(np.array, (policy, sampler, weights))
    jacobian = np.eye(len(pi)) - pi[:, None]
    return np.linalg.norm(jacobian @ np.diag(mu * w - pi), ord=2)


def test_the_bias_of_a_weight_is_that_of_the_score_function():
    for cap in (np.inf, 2.0, 1.0):
        limits = {} if cap == np.inf else {"clip_max": cap}
        expected = [
            bias_by_hand(p, mu, np.minimum(np.array(p) / np.array(mu), cap))
            for p, mu in sampling.PAIRS
        ]
        found = sampling.worst_bias("token_truncate", **limits)
        assert found == pytest.approx(expected, abs=1e-12)
    unweighed = [bias_by_hand(p, mu, np.ones(len(p))) for p, mu in sampling.PAIRS]
    assert sampling.worst_bias() == pytest.approx(unweighed, abs=1e-12)


def test_truncation_takes_bias_from_any_pair_and_none_where_all_ratios_are_below_the_cap(
    monkeypatch,
):
    random = np.random.default_rng(0)
    pairs = [tuple(map(tuple, random.dirichlet(np.ones(4), size=2))) for _ in range(60)]
    monkeypatch.setattr(sampling, "PAIRS", pairs)
    without = sampling.worst_bias()
    truncated = sampling.worst_bias("token_truncate", clip_max=2.0)
    assert all(a < b for a, b in zip(truncated, without, strict=True))
    near = [max(a / b for a, b in zip(*pair, strict=True)) <= 2 for pair in pairs]
    assert [bias < 1e-12 for bias in truncated] == near


def test_the_variance_over_signs_is_that_of_the_weights_and_falls_with_the_cap(monkeypatch):
    # with signs drawn for themselves: sum of mu (1 - mu) w^2 |e_a - p|^2
    def by_hand(policy, sampler, cap):
        pi, mu = np.array(policy), np.array(sampler)
        w = np.minimum(pi / mu, cap)
        norms = ((np.eye(len(pi)) - pi) ** 2).sum(1)
        return (mu * (1 - mu) * w**2 * norms).sum()

    expected = [by_hand(*pair, 2.0) for pair in sampling.FAR]
    assert sampling.gradient_variance("token_truncate", clip_max=2.0) == pytest.approx(expected)
    broken = replace(MODES["token_truncate"], bound=lambda ratio, _: ratio)
    monkeypatch.setitem(MODES, "token_truncate", broken)
    assert sampling.gradient_variance("token_truncate", clip_max=2.0) > expected


def test_masked_weights_are_the_ratio_inside_and_nothing_outside():
    inside = [0.0] * 4 + [0.51, 0.7, 1.0, 1.5, 2.0, 3.0, 4.99] + [0.0] * 3
    assert sampling.ratios_within(0.5, 5.0) == inside
    masked = sampling.weights("token_mask", 0.5, 5.0)
    assert masked == pytest.approx(inside, rel=1e-12, abs=0)
    bounded = np.clip(sampling.RATIOS, 0.5, 5.0)
    assert sampling.weights("token_truncate", 0.5, 5.0) == pytest.approx(bounded)


def test_a_masked_weight_has_the_smaller_second_moment_but_not_always_the_smaller_variance():
    masked = sampling.second_moment("token_mask", clip_min=0.5, clip_max=5.0)
    truncated = sampling.second_moment("token_truncate", clip_max=5.0)
    assert all(a < b for a, b in zip(masked, truncated, strict=True))
    # ratios 9, 1/6, 0.1 and 1/15: 5 and the others; all of them are outside of the mask
    assert truncated[2] == pytest.approx(0.1 * 25 + 0.3 * (1 / 36 + 0.01 + 1 / 225))
    assert masked[2] == 0
    # at ratios 0.4 and 1.6, each sampled as often as the other: 0 and 1.6 are wider apart
    ratios = torch.tensor([[0.4, 1.6]], dtype=torch.float64)
    mask = sampling.correction("token_mask", clip_min=0.5, clip_max=5.0)
    cap = sampling.correction("token_truncate", clip_max=5.0)
    weights = [MODES[c.mode].bound(ratios, c).var() for c in (mask, cap)]
    assert weights[0] > weights[1]


def test_the_corrected_kl_is_unbiased_in_value_and_gradient_and_the_plain_one_is_not():
    assert max(kl_correction.value_error(corrected=True)) < 1e-12
    assert max(kl_correction.gradient_error(corrected=True)) < 1e-12
    assert min(kl_correction.value_error(corrected=False)) > 1e-4
    assert min(kl_correction.gradient_error(corrected=False)) > 1e-2


def test_far_below_the_reference_the_plain_gradient_is_the_ratio_and_the_corrected_its_logarithm():
    plain = kl_correction.gradient_far_below(corrected=False)
    assert plain == pytest.approx([9999.0] * 4)  # |1 - u|
    expected = [rho * log(1e4) for rho in kl_correction.FAR_BELOW]  # rho log u
    assert kl_correction.gradient_far_below(corrected=True) == pytest.approx(expected, rel=1e-9)


def test_the_off_policy_mask_leaves_out_what_the_rule_says_and_no_kl(monkeypatch):
    assert masks.wrongly_treated(0.5) == 0
    assert masks.gradient_of_masked(0.5, 0.0) == 0
    # k3 times the ratio r of a token: its gradient is -r log u, a third of it in the mean
    moved = [max(masks.DRIFTS) + one for one in masks.SPREAD]
    expected = max(exp(-one) * (one - 0.1) / 3 for one in moved)
    assert masks.gradient_of_masked(0.5, 0.01) == pytest.approx(0.01 * expected, rel=1e-12)
    monkeypatch.setitem(WEIGHTS, "near_policy", lambda *_: None)
    assert masks.wrongly_treated(0.5) == 3 * 3  # three advantages below 0, three drifts too far
    assert masks.gradient_of_masked(0.5, 0.0) > 0


def test_the_divisor_of_all_tokens_makes_the_gradient_the_kept_share_of_the_papers(monkeypatch):
    assert entropy.divisor_ratio() == pytest.approx(entropy.kept_share(), rel=1e-12)
    assert entropy.kept_share() == pytest.approx([1 / 9, 2 / 9, 3 / 9, 5 / 9, 7 / 9])
    monkeypatch.setitem(NORMALIZERS, "all", NORMALIZERS["kept"])
    assert entropy.divisor_ratio() == pytest.approx([1.0] * 5)


def test_the_controller_follows_the_rule_up_to_its_limit_and_back(monkeypatch):
    rule = {"target": 0.2, "delta": 1e-4, "coef_min": 0.0, "coef_max": 0.005}
    assert max(entropy.controller_gap(**rule)) == 0
    monkeypatch.setattr(entropy, "next_coefficient", lambda coefficient, *_: coefficient)
    assert max(entropy.controller_gap(**rule)) == pytest.approx(1e-4)


def test_the_cosine_reward_has_its_ends_and_its_order():
    assert cosine_reward.endpoints() == pytest.approx(cosine_reward.closed_form(), abs=1e-12)
    assert cosine_reward.least_step("group") > 0
    assert cosine_reward.least_step("group", short=900, long=100) < 0


def test_a_nearly_constant_group_is_bounded_by_the_batch_only_beside_mixed_ones():
    # 7 of 8: the wrong one is at -7/8 over sqrt(1/8), the deviation of the group
    alone = 7 / 8 / (np.sqrt(1 / 8) + 1e-4)
    assert spreads.largest_advantage("group", (7, 4, 4, 4)) == pytest.approx(alone)
    assert spreads.largest_advantage("batch", (7, 4, 4, 4)) < alone
    assert spreads.largest_advantage("batch", (7, 8, 8, 8)) > alone


def test_the_token_laws_call_the_loss_of_the_project(monkeypatch):
    def doubled(r, ratio, c):
        return 2 * clipped_surrogate(r, ratio, c)

    plain = tokens.losses(-1.0, (0.9, 1.1))
    row = replace(losses.LOSS_TYPES["grpo"], surrogate=doubled)
    monkeypatch.setitem(losses.LOSS_TYPES, "grpo", row)
    assert tokens.losses(-1.0, (0.9, 1.1)) == pytest.approx([2 * one for one in plain])


def test_over_the_support_of_the_sampler_equal_weights_have_the_ratio_1():
    assert max(support.ratio_error(keeps_support=True)) < 1e-12
    # top-p 0.9 leaves 0.95 of the first, 0.96 of the second and 0.97 of the third
    expected = (0.05 + 0.04 + 0.03) / 3
    assert support.ratio_error(keeps_support=False)[0] == pytest.approx(expected)
