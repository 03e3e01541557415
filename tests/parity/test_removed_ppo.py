"""The PPO that TRL had up to 1.12, from its source, and where ours differs from it."""

from types import SimpleNamespace

import pytest
import torch
from peers import difference
from releases import passage, wheel

from core import PPOConfig
from core.forward.batches import as_rollout
from core.losses.aggregate import Scale
from core.losses.estimators import ESTIMATORS, AdvantageSettings, Scored, token_advantages
from core.losses.policy import policy_loss
from core.losses.returns import whiten
from core.losses.value import clipped_value_loss, clipped_values

LAST, MEMBER = "1.12", "trl/experimental/ppo/ppo_trainer.py"
TOLERANCE, SINGLE = 1e-12, 1e-7  # TRL whitens by a ratio of counts in single precision
N, T = 4, 6
WHOLE, CUT = (6, 6, 6, 6), (6, 1, 3, 5)  # lengths of answers; beyond them there is padding
RATES = [
    {"gamma": 1.0, "lam": 0.95, "kl_coef": 0.05},
    {"gamma": 0.9, "lam": 0.5, "kl_coef": 0.3},
    {"gamma": 1.0, "lam": 1.0, "kl_coef": 0.0},
]
CLIPS = {"cliprange": 0.2, "cliprange_value": 0.2, "vf_coef": 0.1}


def drawn(seed, *shape):
    """Numbers of double precision."""
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=draw, dtype=torch.float64)


def rollout():
    """What the policy, its reference and the value model say of tokens, and the scores."""
    logps = -2 + 0.5 * drawn(0, N, T)
    return {
        "logprobs": logps,
        "ref_logprobs": logps + 0.4 * drawn(1, N, T),
        "values": drawn(2, N, T),
        "scores": 2 * drawn(3, N),
    }


def up_to(lengths):
    """1 on the first tokens of each row."""
    return (torch.arange(T) < torch.tensor(lengths)[:, None]).long()


def theirs(lengths, rates):
    """TRL's rewards of tokens, returns and advantages."""
    return passage(wheel(LAST), MEMBER, "response_idxs", "advantages")(
        **rollout(),
        responses=torch.ones(N, T),
        sequence_lengths=torch.tensor(lengths) - 1,
        INVALID_LOGPROB=1.0,
        args=SimpleNamespace(**rates, kl_estimator="k1", whiten_rewards=False),
    )


def scored(lengths, paid):
    """The same rollout as our estimator takes it; the last of the `paid` tokens has the reward."""
    given, mask = rollout(), up_to(paid)
    kl = (given["logprobs"] - given["ref_logprobs"]) * up_to(lengths)
    return Scored(
        rewards=given["scores"].unsqueeze(1),
        group=1,
        length=T,
        kl=kl,
        values=given["values"] * mask,
        mask=mask,
    )


def weighing(rates):
    """How our estimator weighs it."""
    return AdvantageSettings(
        weights=torch.ones(1), scale="none", aggregation="sum_then_normalize", **rates
    )


@pytest.mark.parametrize("rates", RATES)
def test_advantages_and_returns(rates, measured):
    """Of answers without padding: the reward and KL of tokens, GAE, whitening."""
    other, given = theirs(WHOLE, rates), scored(WHOLE, WHOLE)
    advantages = ESTIMATORS["gae"].advantages(given, weighing(rates))
    returns = token_advantages(given, weighing(rates)) + given.values
    assert measured("ppo 1.12, returns", difference(returns, other["returns"])) < TOLERANCE
    assert measured("ppo 1.12, advantages", difference(advantages, other["advantages"])) < SINGLE


@pytest.mark.parametrize("rates", RATES)
def test_it_paid_a_position_behind_an_answer(rates):
    """There TRL learned a value; ours pays the last token, whose value is the last.

    With that position in the mask of the returns ours are TRL's. Where nothing is discounted its
    value cancels.
    """
    other, behind = theirs(CUT, rates), [min(n + 1, T) for n in CUT]
    found = {
        paid: token_advantages(scored(CUT, paid), weighing(rates)) for paid in (CUT, tuple(behind))
    }
    own, longer = found.values()
    values = rollout()["values"] * up_to(behind)
    assert difference(longer + values, other["returns"]) < TOLERANCE
    assert difference(whiten(longer, up_to(CUT)), other["advantages"]) < SINGLE
    cancels = rates["gamma"] == rates["lam"] == 1
    assert difference(whiten(own, up_to(CUT)), other["advantages"]) > 0.01 or cancels
    assert difference(own[0], other["returns"][0] - values[0]) < TOLERANCE  # without padding


def with_gradients(side):
    """A loss of the policy's and the value model's numbers, and its gradients to both."""
    moved = rollout()["logprobs"] + 0.3 * drawn(4, N, T), rollout()["values"] + drawn(5, N, T)
    leaves = [x.requires_grad_() for x in moved]
    loss = side(*leaves)
    return loss.detach(), *torch.autograd.grad(loss, leaves)


@pytest.mark.parametrize("lengths", [WHOLE, CUT])
def test_loss(lengths, tmp_path, measured):
    """The mean over the tokens of a micro-batch of both losses; TRL's of values counts one more."""
    other, behind = theirs(lengths, RATES[0]), [min(n + 1, T) for n in lengths]
    padding, beyond = up_to(lengths) == 0, up_to(behind) == 0
    c = PPOConfig(output_dir=str(tmp_path), use_cpu=True, loss_type="bnpo", epsilon=0.2)
    assert (c.cliprange_value, c.vf_coef) == (CLIPS["cliprange_value"], CLIPS["vf_coef"])
    old, returns = other["values"], other["returns"]

    def peer(logps, values):
        return passage(wheel(LAST), MEMBER, "vpred", "loss")(
            args=SimpleNamespace(**CLIPS),
            context_length=1,
            vpred_temp=torch.cat([values, values[:, :1]], 1).unsqueeze(-1),
            padding_mask=padding,
            padding_mask_p1=beyond,
            micro_batch_inds=slice(None),
            mb_values=old,
            mb_return=returns,
            mb_advantage=other["advantages"],
            mb_logprobs=other["logprobs"],
            new_logprobs=logps.masked_fill(padding, 1.0),
        )["loss"]

    def ours(logps, values):
        batch = {
            "old_per_token_logps": rollout()["logprobs"],
            "advantages": other["advantages"],
            "completion_mask": up_to(lengths),
        }
        scale = Scale(rollout_tokens=up_to(lengths).sum())
        errors = clipped_value_loss(values, old, returns, c.cliprange_value)
        policy = policy_loss(as_rollout(batch, logps, with_reference=False), c, scale).loss
        return policy + c.vf_coef * c.aggregate.mean(errors, up_to(behind), scale)

    found, expected = with_gradients(ours), with_gradients(peer)
    error = max(difference(a, b) for a, b in zip(found, expected, strict=True))
    assert measured("ppo 1.12, loss and gradients", error) < TOLERANCE
    assert all(gradient.any() for gradient in expected[1:])
    values = rollout()["values"] + drawn(5, N, T)
    clipped = clipped_values(values, old, returns, c.cliprange_value)[~beyond]
    assert 0 < clipped.sum() < len(clipped)
