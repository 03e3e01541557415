"""Losses of pairs without a reference: the worked examples of their papers, and laws of them."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.losses.paired_answers import Answers, Pairs
from core.losses.preference import PREFERENCES, preference_losses
from core.losses.reference_free import (
    CPO_LOSSES,
    ORPO_LOSS,
    TPO_LOSSES,
    AnswerLogps,
    Coefficients,
    log_odds_ratio,
    negative_log_likelihood,
    reference_free_losses,
)

CHOSEN, REJECTED = (-12.3, 8), (-15.7, 12)  # log-probabilities and lengths
FINITE, LENGTH = st.floats(-20, -1e-3), st.integers(1, 5)
TABLES = {"cpo": CPO_LOSSES, "tpo": TPO_LOSSES, "orpo": {"orpo": ORPO_LOSS}}
ROWS = [pytest.param(row, id=f"{t} {n}") for t, table in TABLES.items() for n, row in table.items()]


def answer(logp, length=1):
    """An answer whose tokens share its log-probability evenly, before one of padding."""
    logps = torch.full((1, length + 1), logp / length, dtype=torch.float64)
    mask = torch.ones(1, length + 1)
    mask[:, -1] = 0
    return AnswerLogps(logps=logps.requires_grad_(), mask=mask)


def losses(chosen, rejected, row, **numbers):
    return reference_free_losses(chosen, rejected, row, Coefficients(**{"beta": 0.1, **numbers}))


def by_answer(*answers):
    """Gradients by the log-probabilities of whole answers."""
    return [row.logps.grad[0, 0].item() for row in answers]


# table, loss type, numbers, weight of the chosen answer's likelihood; loss and gradients as printed
EXAMPLES = {
    "cpo": ("cpo", "sigmoid", {}, 1.0, 2.075028, -0.166581, 0.041581),
    "simpo": (
        *("cpo", "simpo", {"beta": 2.5, "margin": 1.375}, 0.0),
        *(2.081197, -0.273506, 0.182337),
    ),
    "alphapo": (
        *("cpo", "simpo", {"beta": 2.5, "margin": 0.1, "alpha": 0.25}, 0.0),
        *(1.253834, -0.327974, 0.206475),
    ),
    "orpo": ("orpo", "orpo", {}, 1.0, 1.623067, -1.073241 / 8, 0.078796 / 12),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_worked_examples(name):
    table, loss_type, numbers, weight, loss, by_chosen, by_rejected = EXAMPLES[name]
    chosen, rejected = answer(*CHOSEN), answer(*REJECTED)
    result = losses(chosen, rejected, TABLES[table][loss_type], **numbers)
    nll = negative_log_likelihood(chosen).sum() / chosen.mask.sum()
    total = result.losses.mean() + weight * nll
    total.backward()
    assert total.item() == pytest.approx(loss, abs=1e-6)
    assert nll.item() == pytest.approx(1.5375)
    assert by_answer(chosen, rejected) == pytest.approx([by_chosen, by_rejected], abs=1e-6)


def test_parts_of_the_worked_examples():
    chosen, rejected = answer(*CHOSEN), answer(*REJECTED)
    cpo = losses(chosen, rejected, CPO_LOSSES["sigmoid"])
    assert cpo.losses.item() == pytest.approx(0.537528, abs=1e-6)
    simpo = losses(chosen, rejected, CPO_LOSSES["simpo"], beta=2.5, margin=1.375)
    assert (2.5 * simpo.gap - 1.375).item() == pytest.approx(-1.947917, abs=1e-6)
    shaped = {"beta": 2.5, "margin": 0.1, "alpha": 0.25}
    alphapo = losses(chosen, rejected, CPO_LOSSES["simpo"], **shaped)
    scores = [reward.item() / 2.5 for reward in alphapo.rewards]
    assert scores == pytest.approx([-1.874784, -1.547668], abs=1e-6)
    limit = losses(chosen, rejected, CPO_LOSSES["simpo"], **{**shaped, "alpha": 0.0})
    assert limit.losses.item() == pytest.approx(1.085171, abs=1e-6)
    orpo = losses(chosen, rejected, ORPO_LOSS)
    assert orpo.gap.item() == pytest.approx(-0.302281, abs=1e-6)
    assert orpo.losses.item() == pytest.approx(0.1 * 0.855666, abs=1e-6)


@pytest.mark.parametrize(
    ("loss_type", "numbers", "weight", "expected"),
    [
        ("sigmoid", {"beta": 0.01}, 1.0, (1.576292, -0.004915, 0.004915, -0.1)),
        ("tpo-l", {"beta": 2.0, "margin": 1.6}, 0.05, (2.223484, -0.221697, 0.147798, -0.005)),
    ],
)
def test_worked_examples_with_a_gold_answer(loss_type, numbers, weight, expected):
    chosen, rejected, gold = answer(*CHOSEN), answer(*REJECTED), answer(-9.0, 10)
    result = losses(chosen, rejected, TPO_LOSSES[loss_type], **numbers)
    loss = result.losses.mean() + weight * negative_log_likelihood(gold).sum() / gold.mask.sum()
    loss.backward()
    found = [loss.item(), *by_answer(chosen, rejected, gold)]
    assert found == pytest.approx(expected, abs=1e-6)


def test_worked_example_of_sequence_calibration():
    """SLiC-HF's margin is 1, and its likelihood a sum."""
    chosen, rejected, target = answer(-12.3), answer(-12.8), answer(-13.5)
    hinge = losses(chosen, rejected, CPO_LOSSES["hinge"], beta=1.0).losses.mean()
    loss = hinge + 0.1 * negative_log_likelihood(target).mean()
    loss.backward()
    assert (hinge.item(), loss.item()) == pytest.approx((0.5, 1.85))
    assert by_answer(chosen, rejected, target) == pytest.approx([-1.0, 1.0, -0.1])
    beyond = losses(chosen, answer(-14.0), CPO_LOSSES["hinge"], beta=1.0).losses
    assert beyond.item() == 0.0


@pytest.mark.parametrize("row", ROWS)
@given(one=st.tuples(FINITE, LENGTH), other=st.tuples(FINITE, LENGTH))
def test_a_swapped_pair_negates_the_gap(row, one, other):
    numbers = {"margin": 0.7, "alpha": 0.3 if row.averages and row is not ORPO_LOSS else 0.0}
    there, back = (
        losses(answer(*a), answer(*b), row, **numbers) for a, b in ((one, other), (other, one))
    )
    assert back.gap.item() == pytest.approx(-there.gap.item())
    assert [x.item() for x in back.rewards] == [x.item() for x in reversed(there.rewards)]


@given(one=FINITE, other=FINITE)
def test_the_limit_of_alphapo_is_simpo(one, other):
    """The distance shrinks in proportion to alpha."""
    row, numbers = CPO_LOSSES["simpo"], {"beta": 2.5, "margin": 0.5}
    pair = answer(one, 2), answer(other, 3)
    plain = losses(*pair, row, **numbers).losses.item()
    for alpha in (1e-3, -1e-3, 1e-4):
        shaped = losses(*pair, row, **numbers, alpha=alpha).losses.item()
        # |(1 - exp(-alpha m)) / alpha - m| is at most |alpha| m^2 here, of both answers
        assert abs(shaped - plain) <= 2.5 * abs(alpha) * (one**2 / 4 + other**2 / 9) + 1e-12


def test_a_shape_does_not_overflow_for_unlikely_answers():
    loss = losses(answer(-900.0), answer(-1.0), CPO_LOSSES["simpo"], alpha=1.0).losses
    assert loss.isfinite().all()


def test_log_odds_are_those_of_sure_answers_in_32_bits():
    sure = torch.tensor([-1e-9, 0.0], requires_grad=True)
    ratios = log_odds_ratio(sure, torch.tensor([-1.0, -1.0]))
    assert ratios[0].item() == pytest.approx(21.2646, abs=1e-4)
    (-torch.nn.functional.logsigmoid(ratios)).sum().backward()
    assert ratios.isfinite().all()
    assert sure.grad.isfinite().all()
    assert sure.grad[0] < 0


@given(m=st.floats(-80, -1e-6))
def test_log_odds_in_32_bits_are_those_in_64(m):
    half = [torch.tensor([-0.7], dtype=kind) for kind in (torch.float32, torch.float64)]
    single = torch.tensor([m], dtype=torch.float32)
    found = log_odds_ratio(single, half[0]).item()
    p = single.double().exp()
    expected = (
        p.log() - torch.log1p(-p)
        if m < -0.1
        else single.double() - (-torch.expm1(single.double())).log()
    )
    other = half[0].double()
    expected = expected - (other - torch.log1p(-other.exp()))
    assert found == pytest.approx(expected.item(), abs=2e-5)


@pytest.mark.parametrize(
    ("row", "other", "length"),
    [("sigmoid", "cdpo", 1), ("hinge", "hinge", 1), ("ipo", "ipo", 3)],
)
@given(one=FINITE, another=FINITE)
def test_losses_are_those_with_a_reference_that_is_uniform(row, other, length, one, another):
    """Its log-ratios are log-probabilities up to a constant, which cancels in the gap."""
    assert other in PREFERENCES
    smoothing = 0.2 if row == "sigmoid" else 0.0
    pair = answer(one, length), answer(another, length)
    free = losses(*pair, CPO_LOSSES[row], label_smoothing=smoothing).losses.item()
    uniform = [
        Answers(logps=x.logps, mask=x.mask, ref_logps=torch.tensor([-7.0]).double()) for x in pair
    ]
    c = SimpleNamespace(
        loss_type=[other], loss_weights=None, beta=0.1, label_smoothing=smoothing, ld_alpha=None,
        f_divergence_type="reverse_kl", f_alpha_divergence_coef=0.5, use_weighting=False,
        discopop_tau=0.05, weighting_side="both", weighting_clamp=None,
    )  # fmt: skip
    pairs = Pairs(chosen=uniform[0], rejected=uniform[1])
    assert preference_losses(pairs, c).losses.item() == pytest.approx(free, abs=1e-9)


@pytest.mark.parametrize(
    ("tpo", "cpo"), [("sigmoid",) * 2, ("hinge",) * 2, ("ipo",) * 2, ("tpo-l", "simpo")]
)
@given(one=st.tuples(FINITE, LENGTH), other=st.tuples(FINITE, LENGTH))
def test_tpo_without_gold_is_cpo_without_likelihood(tpo, cpo, one, other):
    numbers = {"beta": 0.4, "margin": 0.3}
    found = [
        losses(answer(*one), answer(*other), row, **numbers).losses.item()
        for row in (TPO_LOSSES[tpo], CPO_LOSSES[cpo])
    ]
    assert found[0] == found[1]
