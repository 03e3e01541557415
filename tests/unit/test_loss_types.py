"""What the rows of the table of losses are to each other, and which settings make no sense."""

import logging
from dataclasses import replace
from math import exp

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from loss_gradients import WHOLE, exact, loss_and_gradient, scale

from core.families.grpo import GRPO
from core.losses.batch import PolicyConfig, Rollout
from core.losses.policy import LOSS_TYPES, policy_loss
from core.settings.refusals import refuse
from core.settings.resolve import resolve
from eval.errors import BadValue
from papers.deepseekmath_grpo import PAPER


def anywhere(seed, length=6, spread=0.4):
    """Completions of some policy that has moved by `spread`, with advantages of both signs."""
    draw = torch.Generator().manual_seed(seed)
    old = -torch.rand(6, length, generator=draw, dtype=torch.float64) * 3
    move = spread * torch.randn(6, length, generator=draw, dtype=torch.float64)
    lengths = torch.randint(1, length + 1, (6, 1), generator=draw)
    return Rollout(
        logps=old + move,
        old_logps=old,
        advantages=torch.randn(6, 1, generator=draw, dtype=torch.float64),
        mask=(torch.arange(length) < lengths).long(),
    )


def gradient(r, **settings):
    return loss_and_gradient(r, PolicyConfig(**settings))[1]


@given(st.integers(0, 999))
def test_on_policy_gspo_is_grpo(seed):
    r = anywhere(seed, spread=0.0)
    torch.testing.assert_close(gradient(r, **WHOLE), gradient(r))


@given(st.integers(0, 999))
def test_gspo_of_tokens_is_gspo_where_their_advantages_agree(seed):
    r = anywhere(seed)
    by_token = gradient(r, importance_sampling_level="sequence_token", epsilon=0.1)
    torch.testing.assert_close(by_token, gradient(r, **WHOLE, epsilon=0.1))
    one = torch.zeros_like(r.logps)
    one[:, 0] = 1.0  # the advantage of the first tokens alone
    r = replace(r, advantages=one)
    wide = {"epsilon": 9.0, "epsilon_high": 9.0}
    by_token = gradient(r, importance_sampling_level="sequence_token", **wide)
    assert by_token[:, 1:].abs().max() == 0 < by_token[:, 0].abs().min()
    assert (gradient(r, **WHOLE, **wide)[:, 1:].abs().max() > 0) == bool(r.mask[:, 1:].any())


@given(st.integers(0, 999))
def test_vespo_of_a_mean_is_vespo_where_the_product_is_that_mean(seed):
    r = anywhere(seed)
    shrunk = r.log_ratio / r.mask.sum(1, keepdim=True)
    torch.testing.assert_close(
        gradient(r, loss_type="vespo_mean"),
        gradient(replace(r, logps=r.old_logps + shrunk), loss_type="vespo"),
    )


@given(st.integers(0, 999))
def test_gmpo_is_grpo_at_one_token(seed):
    """Its clip is one of logarithms."""
    r = anywhere(seed, length=1)
    mine = gradient(r, loss_type="gmpo", epsilon=0.3, epsilon_high=0.2)
    clips = {"epsilon": 1 - exp(-0.3), "epsilon_high": exp(0.2) - 1}
    torch.testing.assert_close(mine, gradient(r, **clips))


@given(st.integers(0, 999))
def test_luspo_is_gspo_times_the_length(seed):
    r = anywhere(seed)
    lengths = r.mask.sum(1, keepdim=True)
    luspo = gradient(r, **WHOLE, loss_type="luspo")
    torch.testing.assert_close(luspo, lengths * gradient(r, **WHOLE))


REINFORCE = [
    *((name, {}) for name in LOSS_TYPES if name not in ("cispo", "dr_grpo", "luspo")),
    ("cispo", {"epsilon_high": 1.0}),
]


@given(st.integers(0, 999))
@pytest.mark.parametrize(("loss_type", "settings"), REINFORCE)
def test_at_ratio_one_a_loss_is_reinforce_but_for_its_mean(loss_type, settings, seed):
    r = anywhere(seed, spread=0.0)
    found = gradient(r, loss_type=loss_type, **settings)
    weight = found / (-r.advantages * r.mask).where(r.mask.bool(), 1.0)
    mask = r.mask.double()
    each = mask / mask.sum(1, keepdim=True) / len(mask)
    per_token = mask / mask.sum()
    by_completion = LOSS_TYPES[loss_type].aggregate == "sequence_mean"
    torch.testing.assert_close(weight, each if by_completion else per_token)


@given(st.lists(st.floats(-2, 2), min_size=3, max_size=5), st.integers(0, 99))
def test_the_corrected_kl_is_unbiased_in_value_and_gradient(logits, seed):
    """By enumeration of a vocabulary: sampled from pi_old, both are those of KL(pi || pi_ref)."""
    draw = torch.Generator().manual_seed(seed)
    z = exact(logits).requires_grad_()

    def another():
        noise = torch.randn(len(logits), generator=draw, dtype=torch.float64)
        return (z.detach() + noise).log_softmax(-1)

    old, reference = another(), another()
    p = z.log_softmax(-1)
    kl = (p.exp() * (p - reference)).sum()
    expected = torch.autograd.grad(kl, z, retain_graph=True)[0]

    def estimate(corrected):
        r = Rollout(
            logps=p[:, None],
            old_logps=old[:, None],
            ref_logps=reference[:, None],
            advantages=torch.zeros(len(logits), 1, dtype=torch.float64),
            mask=torch.ones(len(logits), 1).long(),
        )
        c = PolicyConfig(beta=1.0, use_bias_correction_kl=corrected)
        each = policy_loss(r, c, scale(len(logits))).kl
        value = (old.exp() * each[:, 0]).sum()
        return value, torch.autograd.grad(value, z, retain_graph=True)[0]

    value, slope = estimate(corrected=True)
    torch.testing.assert_close(value, kl)
    torch.testing.assert_close(slope, expected)
    biased = estimate(corrected=False)[0]
    apart = (old - p.detach()).abs().max() > 0.1
    assert not apart or not torch.allclose(biased, kl, rtol=1e-9)


@given(st.integers(0, 999), st.floats(0, 0.3))
def test_only_losses_that_the_policy_has_left_are_masked(seed, threshold):
    """A masked completion keeps its KL."""
    r = anywhere(seed)
    r = replace(r, ref_logps=r.old_logps)
    c = {"off_policy_mask_threshold": threshold, "epsilon": 9.0, "epsilon_high": 9.0}
    drift = ((r.old_logps - r.logps) * r.mask).sum(1) / r.mask.sum(1)
    masked = (r.advantages[:, 0] < 0) & (drift > threshold)
    alone = replace(r, ref_logps=None)
    moved = gradient(alone, **c).abs().sum(1) > 0
    assert moved.tolist() == masked.logical_not().tolist()
    assert (gradient(r, **c, beta=0.1).abs().sum(1) > 0).all()


def test_an_engine_that_says_nothing_of_a_token_is_near():
    r = anywhere(3)
    unknown = replace(r, sampling_logps=torch.full_like(r.logps, torch.nan))
    masked = {"off_policy_mask_threshold": 0.0, "epsilon": 9.0, "epsilon_high": 9.0}
    assert (gradient(unknown, **masked).abs().sum(1) > 0).all()
    assert not (gradient(r, **masked).abs().sum(1) > 0).all()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (("loss_type=cispo",), "every weight is below 1: set epsilon_high to 1 plus the width"),
        (("delta=1.1",), "delta=1.1 is below the upper clip, 1 \\+ 0.2"),
        (("loss_type=luspo",), "loss_type='luspo' with .*='token' is not the loss of"),
        (
            ("loss_type=luspo", "importance_sampling_level=sequence", "delta=1.1"),
            "delta=1.1 is below the upper clip, 1 \\+ 0.2",
        ),
    ],
)
def test_a_paper_may_not_ask_for_what_makes_no_sense(changes, reason):
    with pytest.raises(BadValue, match=reason) as error:
        refuse([resolve(PAPER, arguments=changes)])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "settings", [{"loss_type": "cispo"}, {"delta": 1.1}, {"loss_type": "luspo"}]
)
def test_a_script_that_asks_for_it_is_told(settings, make_grpo, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    trainer = make_grpo(**settings)
    assert trainer.args.loss_warning in caplog.text
    with pytest.raises(BadValue):
        GRPO().check(trainer.args, (), ())


def test_what_goes_together_is_not_doubted(make_grpo):
    for settings in ({"loss_type": "cispo", "epsilon_high": 5.0}, {"delta": 1.3}, {"delta": 4.0}):
        assert make_grpo(**settings).args.loss_warning is None
