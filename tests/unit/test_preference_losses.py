"""Losses of preference pairs: the worked examples of their papers, and laws between them."""

from math import log
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.losses.divergence_scores import DIVERGENCES
from core.losses.paired_answers import Answers, Pairs
from core.losses.preference import PREFERENCES, exo, preference_losses

LOGPS, REFERENCE = (-12.3, -15.7), (-13.5, -15.1)  # log-ratios of 1.2 and -0.6
FINITE = st.floats(-20, 20)


def settings(loss_type, **changes):
    fields = {
        "loss_type": [loss_type] if isinstance(loss_type, str) else loss_type,
        "loss_weights": None,
        "beta": 0.1,
        "label_smoothing": 0.0,
        "f_divergence_type": "reverse_kl",
        "f_alpha_divergence_coef": 0.5,
        "ld_alpha": None,
        "use_weighting": False,
        "weighting_side": "both",
        "weighting_clamp": None,
        "discopop_tau": 0.05,
    }
    return SimpleNamespace(**{**fields, **changes})


def side(logps, ref_logps, length=1, win_rate=0.5):
    """Answers whose tokens share their log-probability evenly."""
    given_logps, reference = (torch.tensor(x, dtype=torch.float64) for x in (logps, ref_logps))
    logps = (given_logps[:, None] / length).repeat(1, length).requires_grad_()
    return Answers(
        logps=logps,
        ref_logps=(reference[:, None] / length).repeat(1, length),
        mask=torch.ones(len(given_logps), length),
        win_rates=torch.full_like(given_logps, win_rate),
    )


def pairs_of(chosen=LOGPS[:1], rejected=LOGPS[1:], references=REFERENCE, lengths=(1, 1)):
    refs = [x if isinstance(x, tuple) else (x,) for x in references]
    return Pairs(
        chosen=side(chosen, refs[0], lengths[0]), rejected=side(rejected, refs[1], lengths[1])
    )


def loss_and_gradients(pairs, c):
    """The mean loss, and its gradients by the log-probabilities of whole answers."""
    loss = preference_losses(pairs, c).losses.mean()
    loss.backward()
    sums = [answers.logps.grad[:, 0].tolist() for answers in (pairs.chosen, pairs.rejected)]
    return loss.item(), *sums


# loss type, settings, lengths, and the printed loss and gradients
EXAMPLES = [
    ("sigmoid", {}, (1, 1), 0.607192, -0.045512, 0.045512),
    ("ipo_sum", {}, (1, 1), 10.24, -6.4, 6.4),
    ("ipo", {}, (8, 12), 23.04, -1.2, 0.8),
    ("exo_pair", {"label_smoothing": 0.001}, (1, 1), 2.455297, -0.166814, 0.166814),
    ("nca_pair", {}, (1, 1), 1.344218, -0.020505, 0.02425),
    ("robust", {"label_smoothing": 0.1}, (1, 1), 0.584692, -0.058012, 0.058012),
    ("cdpo", {"label_smoothing": 0.1}, (1, 1), 0.625192, -0.035512, 0.035512),
    ("bco_pair", {}, (1, 1), 1.298543, -0.047004, 0.0485),
    ("sppo_hard", {}, (1, 1), 33.8, -7.6, 8.8),
    ("apo_zero", {}, (1, 1), 0.95504, -0.02491, 0.024978),
    ("apo_down", {}, (1, 1), 0.985085, 0.000112, 0.024799),
    ("discopop", {"beta": 0.05}, (1, 1), 0.876373, -0.010371, 0.010371),
    ("sigmoid", {"f_divergence_type": "js_divergence"}, (1, 1), 0.655186, -0.011126, 0.031034),
    ("sigmoid", {"f_divergence_type": "forward_kl"}, (1, 1), 0.61999, -0.013917, 0.084191),
    (
        "sigmoid",
        {"f_divergence_type": "alpha_divergence", "f_alpha_divergence_coef": 0.7},
        *((1, 1), 0.613352, -0.031986, 0.054889),
    ),
    ("hinge", {"beta": 0.05}, (1, 1), 0.91, -0.05, 0.05),
    ("sigmoid", {"beta": 0.05}, (1, 1), 0.649159, -0.023876, 0.023876),
    ("sigmoid_norm", {"beta": 5.0}, (8, 12), 0.313262, -0.168088, 0.112059),
    ("hinge", {}, (1, 1), 0.82, -0.1, 0.1),
    ("hinge", {"beta": 1.0}, (1, 1), 0.0, 0.0, 0.0),
    (
        ["sigmoid", "bco_pair", "sft"],
        {"loss_weights": [0.8, 0.2, 1.0]},
        *((8, 1), 2.282962, -0.17081, 0.04611),
    ),
    (
        ["sigmoid", "sft"],
        {"loss_weights": [1.0, 0.005], "beta": 0.01},
        *((8, 1), 0.691875, -0.00558, 0.004955),
    ),
    (["sigmoid", "sft_mean"], {}, (8, 1), 2.144692, -0.170512, 0.045512),
    (
        ["sigmoid", "sft_sum"],
        {"loss_weights": [1.0, 0.005 * 0.01], "beta": 0.01},
        *((8, 1), 0.684803, -0.005005, 0.004955),
    ),
]


@pytest.mark.parametrize(
    ("loss_type", "changes", "lengths", "loss", "by_chosen", "by_rejected"), EXAMPLES
)
def test_worked_examples(loss_type, changes, lengths, loss, by_chosen, by_rejected):
    found = loss_and_gradients(pairs_of(lengths=lengths), settings(loss_type, **changes))
    assert found[0] == pytest.approx(loss, abs=1e-6)
    assert found[1] == pytest.approx([by_chosen], abs=1e-6)
    assert found[2] == pytest.approx([by_rejected], abs=1e-6)


def test_worked_examples_of_sorted_losses():
    batch = {
        "chosen": (-10.0, -14.0, -9.0),
        "rejected": (-12.0, -12.5, -13.0),
        "references": ((-11.0, -13.0, -12.5), (-11.5, -15.5, -12.0)),
    }
    loss, by_chosen, by_rejected = loss_and_gradients(pairs_of(**batch), settings("aot"))
    assert loss == pytest.approx(0.662104, abs=1e-6)
    assert by_chosen == pytest.approx([-0.015419, -0.017499, -0.015419], abs=1e-6)
    assert by_rejected == pytest.approx([0.015419, 0.017499, 0.015419], abs=1e-6)
    loss, by_chosen, by_rejected = loss_and_gradients(pairs_of(**batch), settings("aot_unpaired"))
    assert loss == pytest.approx(0.660855, abs=1e-6)
    assert by_chosen == pytest.approx([-0.015419, -0.016667, -0.01625], abs=1e-6)
    assert by_rejected == pytest.approx([0.015419, 0.01625, 0.016667], abs=1e-6)
    assert loss_and_gradients(pairs_of(**batch), settings("sigmoid"))[0] == pytest.approx(
        0.67574, abs=1e-6
    )


def answers(logps, ref_logps):
    rows = [torch.tensor([row], dtype=torch.float64) for row in (logps, ref_logps)]
    width = 5 - rows[0].size(1)
    logps, ref_logps = (torch.nn.functional.pad(row, (0, width)) for row in rows)
    mask = torch.tensor([[1.0] * (5 - width) + [0.0] * width])
    return Answers(logps=logps.requires_grad_(), ref_logps=ref_logps, mask=mask)


def test_worked_example_of_tokens_beyond_the_shorter_answer():
    for alpha, expected in ((0.5, 0.680725), (1.0, 0.68816), (None, 0.68816)):
        pairs = Pairs(
            chosen=answers([-1.0, -0.5, -0.8], [-1.2, -0.7, -0.9]),
            rejected=answers([-0.9, -1.1, -0.6, -0.4, -0.7], [-1.0, -1.0, -0.7, -0.5, -0.9]),
        )
        loss = preference_losses(pairs, settings("sigmoid", ld_alpha=alpha)).losses.mean()
        assert loss.item() == pytest.approx(expected, abs=1e-6)
        loss.backward()
        if alpha == 0.5:
            by_token = pairs.rejected.logps.grad[0].tolist()
            assert by_token == pytest.approx([0.049375] * 3 + [0.024688] * 2, abs=1e-6)


def test_worked_example_of_a_weight_by_what_the_policy_samples():
    """Distributions (.7, .2, .1) and (.5, .3, .2), of which the first and the second are drawn."""
    chances = torch.tensor([[0.7, 0.3]], dtype=torch.float64)
    squares = torch.tensor([[0.54, 0.38]], dtype=torch.float64)
    one = Answers(
        logps=chances.log(),
        ref_logps=chances.log(),
        mask=torch.ones(1, 2),
        alignment=squares.log(),
    )
    assert one.log_weight().exp().item() == pytest.approx(1.011628, abs=1e-6)
    with pytest.raises(TypeError, match="alignment"):
        pairs_of().chosen.log_weight()


@given(ratio=FINITE, alpha=st.floats(0.0, 3.0))
def test_divergences_have_no_score_where_the_policies_agree_and_rise(ratio, alpha):
    points = torch.tensor([ratio, 0.0, ratio + 0.5], dtype=torch.float64)
    for name, row in DIVERGENCES.items():
        scores = row.derivative(points, alpha)
        assert scores[1].item() == pytest.approx(0, abs=1e-12), name
        assert scores[2] >= scores[0], name


@pytest.mark.parametrize("name", [name for name, row in PREFERENCES.items() if row.splits])
@given(values=st.tuples(FINITE, FINITE), other=st.tuples(FINITE, FINITE))
def test_the_loss_of_a_pair_does_not_depend_on_others(name, values, other):
    c = settings(name, label_smoothing=0.1)
    both = pairs_of((values[0], other[0]), (values[1], other[1]), ((0.0, 0.0), (0.0, 0.0)))
    alone = pairs_of(values[:1], values[1:], (0.0, 0.0))
    losses = preference_losses(both, c).losses
    assert losses[0].item() == pytest.approx(preference_losses(alone, c).losses.item())


@given(values=st.tuples(FINITE, FINITE), wins=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_win_rates_are_the_targets_of_log_ratios(values, wins):
    """SPPO of certain wins is half of TRL's, and 0 where both log-ratios are at the target."""
    zeros, beta = ((0.0,), (0.0,)), 0.1

    def loss(name, ratios, rates):
        chosen, rejected = (
            side((ratio,), zero, 1, rate)
            for ratio, zero, rate in zip(ratios, zeros, rates, strict=True)
        )
        pairs = Pairs(chosen=chosen, rejected=rejected)
        return preference_losses(pairs, settings(name, beta=beta)).losses.item()

    certain = loss("sppo", values, (1.0, 0.0))
    assert 2 * certain == pytest.approx(loss("sppo_hard", values, (1.0, 0.0)))
    assert loss("sppo", [(rate - 0.5) / beta for rate in wins], wins) == pytest.approx(0, abs=1e-9)


def test_a_loss_of_win_rates_needs_them():
    answers = Answers(logps=torch.zeros(1, 1), ref_logps=torch.zeros(1, 1), mask=torch.ones(1, 1))
    with pytest.raises(TypeError, match="win rates"):
        preference_losses(Pairs(chosen=answers, rejected=answers), settings("sppo"))


@given(st.lists(FINITE, min_size=2, max_size=5), st.floats(0.01, 0.49))
def test_the_loss_of_several_answers_is_0_at_its_target_and_of_two_that_of_pairs(scores, e):
    points = torch.tensor([scores], dtype=torch.float64)
    assert exo(points, points.log_softmax(-1)).item() == pytest.approx(0, abs=1e-12)
    assert exo(points, points.flip(-1).log_softmax(-1)).item() >= -1e-12
    pair = pairs_of((scores[0],), (scores[1],), (0.0, 0.0))
    target = torch.tensor([1 - e, e], dtype=torch.float64).log()
    of_pair = preference_losses(pair, settings("exo_pair", beta=1.0, label_smoothing=e)).losses
    assert exo(points[:, :2], target).item() == pytest.approx(of_pair.item())


@given(values=st.tuples(FINITE, FINITE))
def test_robust_losses_of_flipped_labels_are_dpo_on_average(values):
    """With a chance e of a flip the mean over labels is the loss of the right one."""
    e, chosen, rejected = 0.2, values[:1], values[1:]
    robust, plain = settings("robust", label_smoothing=e), settings("sigmoid")
    right, flipped = (
        preference_losses(pairs_of(a, b, (0.0, 0.0)), robust).losses.item()
        for a, b in ((chosen, rejected), (rejected, chosen))
    )
    clean = preference_losses(pairs_of(chosen, rejected, (0.0, 0.0)), plain).losses.item()
    assert (1 - e) * right + e * flipped == pytest.approx(clean, abs=1e-9)


@given(values=st.tuples(FINITE, FINITE), length=st.integers(1, 5))
def test_equal_lengths_make_a_loss_a_token_that_of_another_beta(values, length):
    one = pairs_of(values[:1], values[1:], (0.0, 0.0), (length, length))
    a_token = preference_losses(one, settings("sigmoid_norm", beta=0.7)).losses.item()
    whole = preference_losses(one, settings("sigmoid", beta=0.7 / length)).losses.item()
    assert a_token == pytest.approx(whole, abs=1e-12)


def test_equal_policies_have_the_loss_of_a_coin():
    same = pairs_of((-3.0,), (-4.0,), (-3.0, -4.0))
    for name, expected in (("sigmoid", log(2)), ("hinge", 1.0), ("ipo_sum", 25.0)):
        assert preference_losses(same, settings(name)).losses.item() == pytest.approx(expected)
