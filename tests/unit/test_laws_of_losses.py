"""Laws of policy losses: by hand, and broken where what they test is another loss."""

from math import comb, exp

import pytest
import torch

from core.laws import clipping, gates, gradients, groups, head_rounding, horizon, ratios
from core.laws.gradients import METHODS, gradient_gap, loss_gap

EXACT = 1e-12


def test_one_ratio_for_an_answer_is_one_for_each_token_until_the_policy_moves():
    assert max(gradient_gap("gspo", "grpo")) < EXACT
    assert min(gradient_gap("gspo", "grpo", 3e-4)) > 1e-6
    assert max(gradient_gap("cispo", "dapo")) < EXACT
    assert min(gradient_gap("cispo", "dapo", 0.3)) > 1e-3
    assert max(gradient_gap("grpo", "gmpo")) < EXACT
    assert min(gradient_gap("grpo", "dapo")) > 1e-3  # another mean


def test_gspo_token_is_gspo_whether_an_answer_is_clipped_or_not():
    assert max(loss_gap("gspo-token", "gspo", 1e-3)) < EXACT
    assert min(loss_gap("gspo-token", "grpo", 1e-3)) > 1e-4
    stopped = [gradients.gradient(r, METHODS["gspo"])[1] == 0 for r in gradients.batches(1e-3)]
    assert 0 < torch.stack(stopped)[:, :, 0].double().mean() < 1


def test_tokens_of_an_answer_weigh_the_same_by_its_ratio_alone():
    assert max(ratios.weight_variance("gspo")) < 1e-30
    assert min(ratios.weight_variance("grpo")) > 1e-6


def test_a_token_without_advantage_moves_only_with_its_answer():
    assert set(ratios.idle_tokens_moved("gspo-token")) == {0.0}
    assert set(ratios.idle_tokens_moved("grpo")) == {0.0}
    assert set(ratios.idle_tokens_moved("gspo")) == {1.0}


def test_an_answer_is_clipped_as_a_whole_by_its_ratio():
    assert set(ratios.clipped_in_part("gspo-token")) == {0.0}
    assert min(ratios.clipped_in_part("grpo")) > 0
    shares = [share for batch in ratios.clipped_shares("gspo-token") for share in batch]
    assert set(shares) == {0.0, 1.0}


def test_the_geometric_mean_is_below_the_arithmetic_one():
    pairs = zip(ratios.objective_sizes("gmpo"), ratios.objective_sizes("grpo"), strict=True)
    assert all(geometric < arithmetic for geometric, arithmetic in pairs)


def test_an_outlier_multiplies_the_geometric_mean_by_e_to_one_over_the_length():
    expected = [exp(1 / length) - 1 for length in gradients.LENGTHS] * gradients.BATCHES
    assert ratios.outlier_effects("gmpo") == pytest.approx(expected, rel=1e-12)
    assert all(a > b for a, b in zip(ratios.outlier_effects("grpo"), expected, strict=True))


@pytest.mark.parametrize("length", [1, 7, 10])
def test_luspo_is_gspo_times_the_length(length):
    assert ratios.gradient_quotients("luspo", "gspo", length) == pytest.approx(
        [length] * 4 * gradients.BATCHES, rel=1e-12
    )


def test_the_longest_of_six_answers_has_a_sixth_or_its_share_of_tokens():
    lengths = gradients.LENGTHS
    assert ratios.longest_shares("grpo") == pytest.approx([1 / 6] * 8, rel=1e-12)
    share = max(lengths) / sum(lengths)
    assert ratios.longest_shares("dapo") == pytest.approx([share] * 8, rel=1e-12)


def test_tokens_that_a_clip_silences():
    assert clipping.silent_tokens("cispo") == [0.0, 0.0]
    above = sum(ratio > 1.2 for ratio in clipping.MOVED)
    below = sum(ratio < 0.8 for ratio in clipping.MOVED)
    assert clipping.silent_tokens("grpo") == [above, below]


def test_a_cap_bounds_the_weight_and_a_clip_does_not_on_the_losing_side():
    assert clipping.greatest_weights("cispo") == pytest.approx([5.0, 5.0])
    assert clipping.cap("cispo") == 5.0
    assert clipping.greatest_weights("grpo") == pytest.approx([1.0, 100.0])


def test_the_slope_of_a_soft_gate_is_1_at_1_and_falls_alike_on_both_sides():
    assert gates.gate_slopes(1.0) == pytest.approx([1.0] * 8, rel=EXACT)
    assert gates.gate_slopes(1.5) == pytest.approx(gates.gate_slopes(0.5), rel=EXACT)
    assert max(gates.gate_slopes(1.5)) < 1
    assert gates.gate_slopes(2.0)[2] == pytest.approx(1 / torch.tensor(0.5).double().cosh() ** 2)


def test_a_soft_gate_leaves_every_token_a_gradient_and_damps_more_when_hot():
    assert min(gates.least_weights("sapo")) > 0.4
    assert gates.least_weights("grpo") == [0.0, 0.0]
    weights = [gates.loss_weight(1.5, tau) for tau in (0.95, 1.0, 1.05)]
    assert weights == sorted(weights, reverse=True)
    assert weights[0] > weights[2]
    # at ratio 1 every temperature weighs the same
    assert gates.loss_weight(1.0, 0.95) == pytest.approx(gates.loss_weight(1.0, 1.05), rel=EXACT)


@pytest.mark.parametrize("temperature", gates.TEMPERATURES)
def test_the_bound_of_the_mean_gate_holds_and_is_nearly_reached(temperature):
    errors, bounds = gates.mean_gate_errors(temperature), gates.mean_gate_bounds(temperature)
    assert all(error <= bound for error, bound in zip(errors, bounds, strict=True))
    assert max(error / bound for error, bound in zip(errors, bounds, strict=True)) > 0.99


def test_the_gamma_gate_is_1_at_1_and_greatest_at_k_over_lambda():
    assert gates.gamma_shape() == pytest.approx([1, 1, 2 / 3, 3 / 2], abs=1e-3)
    assert gates.gamma_constants() == [1, 1, 2 / 3, 3 / 2]
    ends = torch.tensor([-12.0, 4.0], dtype=torch.float64)
    assert all(gates.gamma(ends, sign).max() < 1e-6 for sign in gates.SIGNS)


def test_the_gamma_gate_has_no_gradient_and_is_reinforce_on_policy():
    assert max(gates.gamma_gradient_gap()) < EXACT
    assert max(gates.reinforce_gap("vespo")) < EXACT
    assert max(gates.reinforce_gap("dapo")) < EXACT
    assert min(gates.reinforce_gap("grpo")) > 1e-3


def test_variances_of_a_log_normal_ratio_are_those_of_its_formula():
    plain = gates.ratio_variances(gate=False)
    expected = [exp(d**2) - 1 for d in gates.DEVIATIONS for _ in gates.SIGNS]
    assert plain == pytest.approx(expected, rel=1e-6)
    gated = gates.ratio_variances(gate=True)
    assert max(gated) < 0.2
    assert all(a < b for a, b in zip(gated, plain, strict=True))


def test_dynamic_sampling_keeps_no_group_without_signal():
    assert groups.groups_without_signal("filled") == 0
    assert groups.groups_without_signal("all") == 2  # of 2^8, all right and all wrong


@pytest.mark.parametrize("steps", [1, 2, 6])
def test_weights_of_tokens_are_off_by_the_steps_that_they_leave_out(steps):
    expected = [abs((q / p) ** (steps - 1) - 1) for p, q in horizon.PAIRS]
    assert horizon.biases("token", steps) == pytest.approx(expected, abs=EXACT)
    assert horizon.biases("sequence", steps) == pytest.approx([0.0] * 4, abs=EXACT)


def test_the_variance_of_a_product_of_weights_multiplies():
    chi = [p**2 / q + (1 - p) ** 2 / (1 - q) for p, q in horizon.PAIRS]
    expected = [(one**32 - 1) / (one**8 - 1) for one in chi]
    assert horizon.growth_of_variance("sequence", 32, 8) == pytest.approx(expected, rel=1e-9)
    assert horizon.growth_of_variance("token", 32, 8) == pytest.approx([1.0] * 4, rel=1e-9)


def test_a_bound_on_the_product_keeps_the_answers_between_its_counts():
    p, q = horizon.PAIRS[0]
    within = [0.5 <= (p / q) ** k * ((1 - p) / (1 - q)) ** (16 - k) <= 2 for k in range(17)]
    share = sum(
        comb(16, k) * q**k * (1 - q) ** (16 - k) for k, inside in enumerate(within) if inside
    )
    assert horizon.kept("sequence_mask", 0.5, 2.0, 16)[0] == pytest.approx(share, rel=1e-12)
    assert all(
        long < short
        for long, short in zip(
            horizon.kept("sequence_mask", 0.5, 2.0, 256),
            horizon.kept("sequence_mask", 0.5, 2.0, 16),
            strict=True,
        )
    )


def test_a_bound_on_the_geometric_mean_keeps_no_fewer_long_answers():
    """The mean log ratio nears -KL(sampler || policy), which lies within the bounds here."""
    short, long = (horizon.kept("geometric_mask", 0.95, 1.05, steps) for steps in (16, 256))
    assert all(after > before for before, after in zip(short, long, strict=True))
    p, q = horizon.PAIRS[0]
    means = [(p / q) ** (k / 16) * ((1 - p) / (1 - q)) ** (1 - k / 16) for k in range(17)]
    share = sum(
        comb(16, k) * q**k * (1 - q) ** (16 - k)
        for k, mean in enumerate(means)
        if 0.95 <= mean <= 1.05
    )
    assert short[0] == pytest.approx(share, rel=1e-12)


def test_answers_spread_less_than_independent_tokens_by_the_root_of_their_length():
    assert ratios.log_spread("token") == pytest.approx([ratios.DRIFT] * 8, rel=1e-12)
    roots = [ratios.DRIFT / length**0.5 for length in range(1, 9)]
    assert ratios.log_spread("sequence") == pytest.approx(roots, rel=1e-12)
    assert ratios.log_spread("completion")[3] == pytest.approx(2 * ratios.DRIFT, rel=1e-12)


def test_a_clip_stops_the_tokens_beyond_it():
    above = [sum(ratio > 1 + width for ratio in clipping.MOVED) for width in (0.2, 10)]
    below = sum(ratio < 0.8 for ratio in clipping.MOVED)
    assert [clipping.silent_at(0.2), clipping.silent_at(10.0)] == [[above[0], below], [above[1], 0]]


def test_a_head_in_32_bits_rounds_thousands_of_times_less():
    for law in (head_rounding.lost_correlation, head_rounding.rounding_gap):
        narrow, wide, exact = (law(dtype) for dtype in ("bfloat16", "float32", "float64"))
        assert all(a > 1000 * b for a, b in zip(narrow, wide, strict=True))
        assert max(map(abs, exact)) < 1e-9
