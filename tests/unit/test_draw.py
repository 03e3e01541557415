"""A drawn token is where the cumulative distribution passes the uniform number."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.rollout.draw import BLOCK, EXACT, draw

LARGEST = 1 - 2**-24  # of torch's uniform numbers in 32 bits


@given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from([2, 5, EXACT - 1, EXACT, EXACT + 1, EXACT + BLOCK - 1, 2 * EXACT + 7]),
    spread=st.sampled_from([0.0, 1.0, 8.0]),
    masked=st.sampled_from([0.0, 0.5, 0.999]),
)
def test_the_token_is_the_first_whose_cumulative_sum_exceeds_the_number(seed, size, spread, masked):
    """Up to rounding: the sums before it do not, by more than that."""
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(4, size, generator=generator)
    hidden = torch.rand(4, size, generator=generator) < masked
    hidden[:, seed % size] = False
    logits[hidden] = -torch.inf
    uniform = torch.rand(4, generator=generator)
    uniform[0], uniform[1] = 0.0, LARGEST
    tokens, logps = draw(logits, uniform)
    p = logits.softmax(-1)
    torch.testing.assert_close(logps, p.gather(-1, tokens[:, None])[:, 0].log())
    assert (p.gather(-1, tokens[:, None]) > 0).all()
    sums = p.double().cumsum(-1)
    upto = sums.gather(-1, tokens[:, None])[:, 0]
    before = upto - p.double().gather(-1, tokens[:, None])[:, 0]
    level, rounding = uniform * sums[:, -1], 1e-12 if size >= EXACT else 1e-6
    assert (before <= level + rounding).all()
    assert (upto >= level - rounding).all()


@pytest.mark.parametrize("size", [EXACT, EXACT + 5])
def test_a_row_does_not_depend_on_the_others(size):
    logits, uniform = torch.randn(6, size), torch.rand(6)
    tokens, logps = draw(logits, uniform)
    for row in range(6):
        alone = draw(logits[row : row + 1], uniform[row : row + 1])
        assert alone[0].equal(tokens[row : row + 1])
        assert alone[1].equal(logps[row : row + 1])


def test_narrow_logits_are_drawn_as_if_they_were_in_32_bits():
    logits, uniform = torch.randn(8, EXACT).bfloat16(), torch.rand(8)
    for mine, other in zip(draw(logits, uniform), draw(logits.float(), uniform), strict=True):
        assert mine.equal(other)
