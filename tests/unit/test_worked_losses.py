"""Worked examples of every loss and weight: inputs, loss and gradient as numbers."""

from dataclasses import replace

import pytest
import torch
from loss_gradients import WHOLE, exact, loss_and_gradient, scale

from core.losses.batch import PolicyConfig, Rollout
from core.losses.entropy import least_uncertain, most_uncertain
from core.losses.sampling import Correction, sampling_ratio

OLD = [[-1.0, -2.0, -0.5], [-0.7, -1.5, 0.0]]
LOG_RATIO = [[0.3, -0.4, 0.2], [0.25, -0.3, 0.0]]
REFERENCE = [[-0.9, -2.0, -0.7], [-0.7, -1.2, 0.0]]
ENTROPY = [[0.1, 0.9, 0.5], [1.2, 0.3, 0.0]]
SAMPLING = [[-1.2, -1.9, -1.4], [-1.9, -1.6, 0.0]]
MASK = torch.tensor([[1, 1, 1], [1, 1, 0]])
DAPO = {"loss_type": "dapo"}
# Settings, what else is known of the completions, the loss, and its gradient by each token.
WORKED = {
    "grpo": ({}, {}, 0.009286346, [0, -0.111720008, 0, 0.321006354, 0]),
    "clip higher": (
        {"epsilon_high": 0.28},
        {},
        -0.007614113,
        [0, -0.111720008, -0.203567126, 0.321006354, 0],
    ),
    "bnpo": ({"loss_type": "bnpo"}, {}, -0.197258926, [0, -0.134064009, 0, 0.256805083, 0]),
    "dr_grpo": ({"loss_type": "dr_grpo"}, {}, -0.04109561, [0, -0.027930002, 0, 0.053501059, 0]),
    "dapo": (DAPO, {}, -0.197258926, [0, -0.134064009, 0, 0.256805083, 0]),
    "delta": ({"delta": 1.1}, {}, 0.021613326, [0, -0.111720008, 0, 0, 0]),
    "gspo": ({**WHOLE, "epsilon": 3e-4, "epsilon_high": 4e-4}, {}, -0.00035, [0] * 5),
    "sequence": (WHOLE, {}, -0.029292601, [-0.172315852] * 3 + [0.243827478] * 2),
    "luspo": (
        {**WHOLE, "loss_type": "luspo"},
        {},
        -0.575532758,
        [-0.516947557] * 3 + [0.487654956] * 2,
    ),
    "cispo, cap 5": (
        {"loss_type": "cispo", "epsilon_high": 5.0},
        {},
        0.201761174,
        [-0.269971762, -0.134064009, -0.244280552, 0.256805083, 0.148163644],
    ),
    "cispo, cap 1.2": (
        {"loss_type": "cispo", "epsilon_high": 1.2},
        {},
        0.187059063,
        [-0.24, -0.134064009, -0.24, 0.24, 0.148163644],
    ),
    "sapo": (
        {"loss_type": "sapo"},
        {},
        -0.081551161,
        [-0.218230166, -0.108738483, -0.201092693, 0.313973328, 0.18181735],
    ),
    "vespo": (
        {"loss_type": "vespo"},
        {},
        0.178816247,
        [-0.178181842] * 3 + [0.189778674] * 2,
    ),
    "gmpo": (
        {"loss_type": "gmpo", "epsilon": 0.25},
        {},
        -0.008403165,
        [0, -0.169467722, -0.169467722, 0.25, 0],
    ),
    "plain k3": (
        {**DAPO, "beta": 0.1, "use_bias_correction_kl": False},
        {},
        -0.188623024,
        [0.003625385, -0.143900503, 0.006593599, 0.261229068, -0.016442376],
    ),
    "corrected k3": (
        {**DAPO, "beta": 0.1},
        {},
        -0.189773816,
        [0.005399435, -0.13942657, 0.009771222, 0.26322521, -0.008889819],
    ),
    "uncertain tokens": (DAPO, {"share": 0.4}, 0.122741074, [0, -0.134064009, 0, 0.256805083, 0]),
    "off-policy mask": (
        {**DAPO, "off_policy_mask_threshold": 0.02},
        {},
        -0.614064009,
        [0, -0.134064009, 0, 0, 0],
    ),
    "token_truncate": (
        DAPO,
        {"mode": Correction(mode="token_truncate", clip_max=2.0)},
        -0.20400528,
        [0, -0.121306132, 0, 0.513610167, 0],
    ),
    "token_mask": (
        DAPO,
        {"mode": Correction(mode="token_mask", clip_min=0.5, clip_max=5.0)},
        0.024702709,
        [0, -0.121306132, 0, 0.852622903, 0],
    ),
    "sequence_mask": (
        DAPO,
        {"mode": Correction(mode="sequence_mask", clip_max=3.0)},
        -1.669199038,
        [0, -0.36442376, 0, 0, 0],
    ),
    "vespo, token_truncate": (
        {"loss_type": "vespo"},
        {"mode": Correction(mode="token_truncate", clip_max=2.0)},
        -0.407579835,
        [-0.015739842] * 3 + [0.204931243] * 2,
    ),
}


def completions(share=1.0, mode=None, beta=0.0):
    """Those of the worked examples."""
    old, entropy = exact(OLD), exact(ENTROPY)
    sampling = exact(SAMPLING)
    return Rollout(
        logps=(old + exact(LOG_RATIO)).requires_grad_(),
        old_logps=old,
        advantages=exact([[1.0], [-1.0]]),
        mask=MASK,
        ref_logps=exact(REFERENCE) if beta else None,
        sampling_ratio=mode and sampling_ratio(old, sampling, MASK, mode),
        entropy_mask=most_uncertain(entropy, entropy[MASK.bool()], share) if share < 1 else None,
    )


@pytest.fixture
def in_double_precision():
    """Where both settings of a sign become one tensor, it has the default precision."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("in_double_precision")
@pytest.mark.parametrize("name", WORKED)
def test_a_worked_example(name):
    settings, known, loss, gradient = WORKED[name]
    r = completions(**known, beta=settings.get("beta", 0.0))
    found, by_token = loss_and_gradient(r, PolicyConfig(**settings))
    assert found.item() == pytest.approx(loss, abs=1e-8)
    assert by_token[MASK.bool()].tolist() == pytest.approx(gradient, abs=1e-8)
    assert by_token[~MASK.bool()].tolist() == [0.0]


def test_tokens_divided_by_those_that_are_kept():
    """The worked example divides by five tokens, of which two are kept."""
    r, c = completions(share=0.4), PolicyConfig(**DAPO)
    everyone = loss_and_gradient(r, c)
    kept = loss_and_gradient(r, replace(c, top_entropy_normalizer="kept"), scale(2))
    torch.testing.assert_close(kept[0], everyone[0] * 5 / 2)
    torch.testing.assert_close(kept[1], everyone[1] * 5 / 2)


def test_the_least_uncertain_tokens_are_the_other_end():
    entropy = exact(ENTROPY)
    every = entropy[MASK.bool()]
    kept = least_uncertain(entropy, every, 0.4) & MASK.bool()
    assert kept.tolist() == [[True, False, False], [False, True, False]]
    nothing = exact([torch.nan])
    assert not most_uncertain(entropy, nothing, 0.4).any()
    assert not least_uncertain(entropy, nothing, 0.4).any()
