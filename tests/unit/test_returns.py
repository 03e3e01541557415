"""Advantages of tokens against their definitions."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.losses.returns import gae, gae_of_two, reward_to_go, whiten, with_kl

ROWS, TOKENS = 2, 5
NUMBERS = st.lists(st.floats(-3, 3, width=32), min_size=ROWS * TOKENS, max_size=ROWS * TOKENS)
MASKS = st.lists(st.booleans(), min_size=ROWS * TOKENS, max_size=ROWS * TOKENS)
RATES = st.floats(0, 1, width=32)


def table(values):
    return torch.tensor(values, dtype=torch.float64).view(ROWS, TOKENS)


def summed(rewards, values, kept, gamma, lam):
    """A_t of the trained tokens of one completion, term by term."""
    r, v = ([row[t].item() for t in kept] for row in (rewards, values))
    last = len(kept)
    deltas = [r[t] + gamma * (v[t + 1] if t + 1 < last else 0.0) - v[t] for t in range(last)]
    return [sum((gamma * lam) ** k * deltas[t + k] for k in range(last - t)) for t in range(last)]


@given(NUMBERS, NUMBERS, MASKS, RATES, RATES)
def test_gae_is_its_sum(rewards, values, mask, gamma, lam):
    """Over the trained tokens alone, wherever the others stand."""
    r, v, m = table(rewards), table(values), table(mask)
    found = gae(r, v, m, gamma=gamma, lam=lam)
    for row in range(ROWS):
        kept = m[row].nonzero()[:, 0].tolist()
        assert found[row, kept].tolist() == pytest.approx(summed(r[row], v[row], kept, gamma, lam))
    assert found[m == 0].eq(0).all()


@given(NUMBERS, NUMBERS, MASKS, RATES)
def test_at_the_ends_of_lambda(rewards, values, mask, gamma):
    """0 is one step ahead, 1 the rewards to go less the value."""
    r, v, m = table(rewards), table(values), table(mask)
    mean = gae(r, v, m, gamma=gamma, lam=1.0)
    torch.testing.assert_close(mean, reward_to_go(r, m, gamma) - v * m)
    ones = torch.ones_like(m)
    ahead = torch.cat([v[:, 1:], torch.zeros(ROWS, 1)], 1)
    torch.testing.assert_close(gae(r, v, ones, gamma=gamma, lam=0.0), r + gamma * ahead - v)


@given(NUMBERS, NUMBERS, NUMBERS, RATES, RATES, RATES)
def test_two_rewards_have_a_discount_each(outcomes, penalties, values, gamma, other, lam):
    o, p, v = (table(x) for x in (outcomes, penalties, values))
    m, rates = torch.ones_like(o), {"gamma": gamma, "lam": lam}
    found = gae_of_two(o, p, v, m, **rates, penalty_gamma=other)
    torch.testing.assert_close(
        gae_of_two(o, p, v, m, **rates, penalty_gamma=gamma), gae(o + p, v, m, **rates)
    )
    torch.testing.assert_close(
        gae_of_two(o, 0 * p, v, m, **rates, penalty_gamma=other), gae(o, v, m, **rates)
    )
    at_one = gae_of_two(o, p, v, m, gamma=gamma, penalty_gamma=other, lam=1.0)
    torch.testing.assert_close(at_one, reward_to_go(o, m, gamma) + reward_to_go(p, m, other) - v)
    assert found.shape == o.shape


def test_a_penalty_that_is_discounted_stays_near():
    """By hand: -1 on the third of four tokens, which pays 1 at its end."""
    outcomes, penalties = torch.zeros(1, 4), torch.tensor([[0.0, 0.0, -1.0, 0.0]])
    outcomes[0, 3] = 1.0
    found = gae_of_two(
        outcomes,
        penalties,
        torch.zeros(1, 4),
        torch.ones(1, 4),
        gamma=1.0,
        penalty_gamma=0.5,
        lam=1.0,
    )
    assert found.tolist() == [[0.75, 0.5, 0.0, 1.0]]


def test_the_kl_is_paid_where_it_arises_and_the_outcome_at_the_end():
    """By hand: beta 0.5, and three, two and no trained tokens."""
    kl = torch.tensor([[1.0, 2.0, 4.0], [1.0, 2.0, 4.0], [1.0, 2.0, 4.0]])
    mask = torch.tensor([[1, 1, 1], [1, 0, 1], [0, 0, 0]])
    found = with_kl(torch.tensor([10.0, 20.0, 30.0]), kl, mask, beta=0.5)
    assert found.tolist() == [[-0.5, -1.0, 8.0], [-0.5, 0.0, 18.0], [0.0, 0.0, 0.0]]
    assert reward_to_go(found, mask).tolist() == [
        [6.5, 7.0, 8.0],
        [17.5, 0.0, 18.0],
        [0.0, 0.0, 0.0],
    ]


@given(NUMBERS)
def test_whitened_tokens_have_mean_0_and_std_1_over_all_completions(values):
    mask = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]])
    x = table(values) + torch.arange(ROWS * TOKENS).view(ROWS, TOKENS) * 7  # never all equal
    kept = whiten(x, mask)[mask.bool()]
    assert kept.mean().item() == pytest.approx(0, abs=1e-9)
    assert kept.std().item() == pytest.approx(1, abs=1e-6)
    torch.testing.assert_close(whiten(3 * x + 2, mask), whiten(x, mask), atol=1e-6, rtol=1e-6)


def test_one_token_whitens_to_nothing():
    assert whiten(torch.tensor([[3.0, 4.0]]), torch.tensor([[0, 1]])).tolist() == [[0.0, 0.0]]
