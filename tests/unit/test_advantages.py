import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.configs.grpo import GRPOConfig
from core.losses.advantages import (
    AGGREGATIONS,
    SCALES,
    STABILISER,
    correct_coefficient,
    leave_one_out,
    normalise,
    process_advantages,
    sum_then_normalize,
    weighted_sum,
)
from core.losses.estimators import ESTIMATORS, AdvantageSettings, Scored, token_advantages
from core.losses.returns import reward_to_go, whiten, with_kl

NAN = math.nan
ONE = torch.ones(1, dtype=torch.float64)
REWARDS = st.lists(st.floats(-5, 5, width=32), min_size=8, max_size=8)


def column(values):
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1)


def advantages(values, scale="group", group=4, aggregation="sum_then_normalize"):
    return AGGREGATIONS[aggregation].combine(column(values), ONE, group, scale).values


def test_group_advantage_by_hand():
    found = advantages([1.0, 0.0, 0.0, 1.0])
    deviation = math.sqrt(1 / 3)  # of 1 0 0 1 with divisor 3
    assert found.tolist() == pytest.approx([s * 0.5 / (deviation + 1e-4) for s in (1, -1, -1, 1)])


def test_scale_none_only_centres():
    assert advantages([1.0, 0.0, 0.0, 3.0], "none").tolist() == [0.0, -1.0, -1.0, 2.0]


def test_scale_batch_divides_by_the_spread_of_all():
    values = [1.0, 0.0, 0.0, 3.0, 5.0, 5.0, 5.0, 5.0]
    spread = torch.tensor(values, dtype=torch.float64).std().item() + 1e-4
    expected = [x / spread for x in (0, -1, -1, 2, 0, 0, 0, 0)]
    assert advantages(values, "batch").tolist() == pytest.approx(expected)


def test_scale_centred_batch_divides_by_the_spread_of_what_is_left_of_all():
    """Not by that of the rewards, which the difference between the groups widens."""
    deviations = [0.0, -1.0, -1.0, 2.0, 0.0, 0.0, 0.0, 0.0]
    spread = math.sqrt(6 / 7) + 1e-4
    found = advantages([1.0, 0.0, 0.0, 3.0, 5.0, 5.0, 5.0, 5.0], "centred_batch")
    assert found.tolist() == pytest.approx([x / spread for x in deviations])


@given(REWARDS)
def test_centred_batch_scales_to_a_unit_std(values):
    spread = (column(values).view(-1, 4) - column(values).view(-1, 4).mean(1, keepdim=True)).std()
    found = advantages(values, "centred_batch")
    assert found.std().item() == pytest.approx((spread / (spread + STABILISER)).item(), abs=1e-6)


PAIRS = {"population": 1 / 2, "group": math.sqrt(1 / 2), "none": None}


@pytest.mark.parametrize("scale", PAIRS)
@pytest.mark.parametrize("rewards", [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0), (1.0, 1.0)])
def test_a_pair_has_a_closed_form(rewards, scale):
    """+-1 by the divisor n, +-0.7071 by n - 1, apart from the stabiliser; 0 for equal ones."""
    found = advantages([*rewards, 0.3, 0.3], scale, group=2)
    divisor = 1.0 if PAIRS[scale] is None else PAIRS[scale] + STABILISER
    half = (rewards[0] - rewards[1]) / 2 / divisor
    assert found.tolist() == pytest.approx([half, -half, 0.0, 0.0], abs=1e-12)
    assert abs(half) in (
        0.0,
        pytest.approx({"population": 1, "group": 0.7071, "none": 0.5}[scale], abs=3e-4),
    )


@pytest.mark.parametrize("group", [2, 4, 8])
@given(REWARDS)
def test_leave_one_out_is_a_longer_mean_baseline(group, values):
    """G / (G - 1) times that of Dr. GRPO, which divides by nothing either."""
    one_out = leave_one_out(column(values), ONE, group, "none").values
    mean = advantages(values, "none", group=group)
    torch.testing.assert_close(one_out, mean * group / (group - 1), atol=1e-12, rtol=1e-12)


def test_leave_one_out_by_hand_and_without_what_is_unscored():
    rewards = column([1.0, 0.0, 5.0, NAN, NAN, NAN, 2.0, NAN])
    found = leave_one_out(rewards, ONE, 4, "none")
    assert found.values.tolist() == [1 - 2.5, 0 - 3.0, 5 - 0.5, 0.0, 0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("scale", SCALES)
def test_the_estimator_of_that_name_scales_as_it_is_told(scale):
    rewards = column([1.0, 0.0, 0.0, 3.0, 5.0, 4.0, 5.0, 5.0])
    weighing = AdvantageSettings(weights=ONE, scale=scale, aggregation="sum_then_normalize")
    scored = Scored(rewards=rewards, group=4, length=1)
    one_out, spread = (
        leave_one_out(rewards, ONE, 4, "none").values,
        normalise(rewards.view(-1, 4), scale)[1],
    )
    of_itself = one_out.std() if SCALES[scale].of_deviations else spread.flatten()
    divisor = of_itself + STABILISER if SCALES[scale].divides else 1.0
    found = ESTIMATORS["leave_one_out"].advantages(scored, weighing)
    torch.testing.assert_close(found, one_out / divisor, atol=1e-6, rtol=1e-6)


def test_equal_rewards_teach_nothing_and_are_counted():
    found = sum_then_normalize(column([2.0] * 4 + [0.0, 1.0, 0.0, 1.0]), ONE, 4, "group")
    assert found.values[:4].tolist() == [0.0] * 4
    assert found.zero_spread == 0.5


@given(REWARDS, st.floats(-9, 9))
@pytest.mark.parametrize("scale", SCALES)
def test_a_constant_on_all_rewards_changes_nothing(scale, values, shift):
    shifted = advantages([v + shift for v in values], scale)
    torch.testing.assert_close(shifted, advantages(values, scale), atol=1e-8, rtol=1e-8)


@given(REWARDS, st.permutations(range(4)))
@pytest.mark.parametrize("scale", SCALES)
def test_permuting_a_group_permutes_its_advantages(scale, values, order):
    permuted = advantages([values[i] for i in order] + values[4:], scale)
    torch.testing.assert_close(permuted[:4], advantages(values, scale)[list(order)])


@given(REWARDS)
def test_groups_do_not_see_each_other(values):
    alone = torch.cat([advantages(values[:4]), advantages(values[4:])])
    torch.testing.assert_close(advantages(values), alone)


def test_unscored_completions_get_nothing_and_move_no_baseline():
    assert advantages([1.0, NAN, 0.0, NAN], "none").tolist() == [0.5, 0.0, -0.5, 0.0]
    assert advantages([NAN] * 4).tolist() == [0.0] * 4
    assert advantages([1.0, NAN, NAN, NAN]).tolist() == [0.0] * 4


def test_weights_sum_the_functions_that_apply():
    rewards = torch.tensor([[1.0, 2.0], [NAN, 2.0], [NAN, NAN]])
    found = weighted_sum(rewards, torch.tensor([3.0, 0.5]))
    assert found[:2].tolist() == [4.0, 1.0]
    assert found[2].isnan()


def test_normalising_first_makes_each_reward_count_alike():
    small = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    large = small * torch.tensor([1.0, 1e4])
    both = torch.ones(2, dtype=torch.float64)
    normalize = AGGREGATIONS["normalize_then_sum"].combine
    found = [normalize(r, both, 4, "group").values for r in (small, large)]
    torch.testing.assert_close(*found, atol=1e-3, rtol=1e-3)
    assert found[0].tolist() == pytest.approx([0.0, 0.0, found[0][2].item(), -found[0][2].item()])
    assert found[0].std().item() == pytest.approx(1.0, abs=1e-3)


def test_one_reward_that_is_normalised_first_is_not_the_other_way():
    """The step over the rollout stretches a mixed group that stands beside an all-right one."""
    values = [1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    first, then = (
        advantages(values, aggregation=name)
        for name in ("sum_then_normalize", "normalize_then_sum")
    )
    assert first[0].item() == pytest.approx(1.5, abs=1e-3)
    assert then[0].item() == pytest.approx(2.29, abs=1e-2)


def test_one_reward_that_is_only_summed_is_the_other_way():
    values = [1.0, 0.0, 0.0, 0.3, 1.0, NAN, 1.0, 2.0]
    first, only = (
        advantages(values, aggregation=name)
        for name in ("sum_then_normalize", "normalize_then_only_sum")
    )
    assert first.equal(only)


@given(st.lists(st.booleans(), min_size=16, max_size=16))
def test_the_last_step_is_all_that_only_summing_leaves_out(bits):
    rewards = torch.tensor(bits, dtype=torch.float64).view(8, 2)
    weights = torch.tensor([1.0, 0.5], dtype=torch.float64)
    whole, part = (
        AGGREGATIONS[name].combine(rewards, weights, 4, "group").values
        for name in ("normalize_then_sum", "normalize_then_only_sum")
    )
    torch.testing.assert_close(whole, (part - part.mean()) / (part.std() + STABILISER))


def test_two_rewards_that_differ_count_for_more_than_one():
    """Where the sum is normalised, both groups get the same; arXiv 2601.05242 fig. 2."""
    rewards = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    both = torch.ones(2, dtype=torch.float64)
    first, only = (
        AGGREGATIONS[name].combine(rewards, both, 2, "group").values[1::2].tolist()
        for name in ("sum_then_normalize", "normalize_then_only_sum")
    )
    assert first == pytest.approx([0.7071, 0.7071], abs=2e-4)
    assert only == pytest.approx([0.7071, 1.4142], abs=3e-4)


def test_correct_coefficient_is_one_for_a_positive_reward():
    found = correct_coefficient(column([1.0, 0.0, -1.0, NAN]), ONE)
    assert found.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_process_advantages_by_hand():
    """Two completions: steps 1, 0 ending at tokens 1, 3, and a step 1 ending at token 2."""
    rewards = torch.tensor([[1.0, 0.0], [1.0, NAN]], dtype=torch.float64)
    ends = torch.tensor([[1, 3], [2, 0]])
    spread = math.sqrt(1 / 3) + 1e-4  # of 1 0 1 with divisor 2
    good, bad = (1 / 3) / spread, -(2 / 3) / spread
    found = process_advantages(rewards, ends, 2, 5)
    assert found[0].tolist() == pytest.approx([good + bad, good + bad, bad, bad, 0.0])
    assert found[1].tolist() == pytest.approx([good] * 3 + [0.0, 0.0])


@given(REWARDS)
def test_one_step_at_the_end_is_outcome_supervision(values):
    rewards, ends = column(values), torch.full((8, 1), 2)
    found = process_advantages(rewards, ends, 4, 3)
    torch.testing.assert_close(found, advantages(values).unsqueeze(1).expand(8, 3))


def test_a_completion_without_steps_gets_nothing():
    rewards = torch.tensor([[1.0], [0.0], [NAN], [NAN]])
    found = process_advantages(rewards, torch.zeros(4, 1, dtype=torch.long), 4, 2)
    assert found[2:].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert found[0, 0] > 0 > found[1, 0]


def test_config_offers_exactly_the_tables_rows():
    assert set(GRPOConfig.CHOICES["scale_rewards"]) == set(SCALES)
    assert set(GRPOConfig.CHOICES["multi_objective_aggregation"]) == set(AGGREGATIONS)
    assert set(GRPOConfig.CHOICES["advantage_estimator"]) == set(ESTIMATORS)


TOKENS = torch.tensor(
    [[0.1, 0.2, 0.3], [0.4, -0.2, 0.0], [0.0, 0.0, 0.0], [0.5, 0.5, 0.5]]
).double()
KEPT = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 1, 1]])


def with_tokens(rewards, **more):
    """Four completions in two groups, with the KL of each token."""
    column = torch.tensor(rewards, dtype=torch.float64).unsqueeze(1)
    return Scored(rewards=column, group=2, length=3, kl=TOKENS * KEPT, mask=KEPT, **more)


def paying(**more):
    return AdvantageSettings(
        weights=torch.ones(1), scale="none", aggregation="sum_then_normalize", kl_coef=0.5, **more
    )


def test_the_kl_of_a_completion_is_paid_before_it_is_compared():
    """By hand: 1 - 0.3, 2 - 0.1, 3 and 4 - 0.75; and at least 1.5 before it."""
    scored = with_tokens([1.0, 2.0, 3.0, 4.0])
    found = ESTIMATORS["leave_one_out"].advantages(scored, paying())
    assert found.tolist() == pytest.approx([-1.2, 1.2, -0.25, 0.25])
    found = ESTIMATORS["leave_one_out"].advantages(scored, paying(bounds=(1.5, 4.0)))
    assert found.tolist() == pytest.approx([-0.7, 0.7, -0.25, 0.25])


def test_the_best_of_a_group_is_the_first_of_the_greatest():
    """The second pays less for its KL; an unscored one is never the best."""
    best = ESTIMATORS["best"].advantages
    assert best(with_tokens([1.0, 1.0, math.nan, 4.0]), paying()).tolist() == [0, 1, 0, 1]
    assert best(with_tokens([1.0, 0.5, 3.0, 3.0]), paying()).tolist() == [1, 0, 1, 0]
    equal = replace(with_tokens([1.0] * 4), kl=None)
    assert best(equal, paying()).tolist() == [1, 0, 1, 0]
    assert best(with_tokens([math.nan] * 4), paying()).tolist() == [0, 0, 0, 0]


def test_rewards_to_go_are_whitened_over_all_tokens():
    scored = with_tokens([1.0, 2.0, 3.0, 4.0])
    found = ESTIMATORS["to_go"].advantages(scored, paying())
    rewards = with_kl(scored.rewards[:, 0], TOKENS * KEPT, KEPT, 0.5)
    torch.testing.assert_close(found, whiten(reward_to_go(rewards, KEPT), KEPT))
    assert found[KEPT == 1].mean().item() == pytest.approx(0, abs=1e-12)
    assert found[KEPT == 1].std().item() == pytest.approx(1, abs=1e-6)


def test_rewards_to_go_are_advantages_against_values_of_nothing():
    """At lambda 1, with gamma 1."""
    scored = with_tokens([1.0, 2.0, 3.0, 4.0], values=torch.zeros(4, 3).double())
    found = [ESTIMATORS[name].advantages(scored, paying()) for name in ("to_go", "gae")]
    torch.testing.assert_close(*found)


def test_a_penalty_of_tokens_is_paid_once_and_discounted_by_its_own_rate():
    """By hand, without a KL: 1 - 0.5 for a completion of which the second token is penalised."""
    penalties = torch.tensor([[0.0, -0.5, 0.0]]).double()
    nothing, ones = torch.zeros(1, 3).double(), torch.ones(1, 3)
    scored = Scored(
        rewards=torch.tensor([[0.5]]).double(), group=1, length=3, kl=nothing, mask=ones,
        values=nothing, penalties=penalties,
    )  # fmt: skip
    assert token_advantages(scored, paying(penalty_gamma=0.5)).tolist() == [[0.75, 0.5, 1.0]]
    assert token_advantages(scored, paying(penalty_gamma=1.0)).tolist() == [[0.5, 0.5, 1.0]]


def test_the_advantage_against_the_value_of_a_prompt():
    values = torch.tensor([[0.5], [0.5], [1.0], [1.0]]).double()
    scored = replace(with_tokens([1.0, 0.0, math.nan, 4.0]), values=values)
    assert ESTIMATORS["value"].advantages(scored, paying()).tolist() == [0.5, -0.5, 0.0, 3.0]
