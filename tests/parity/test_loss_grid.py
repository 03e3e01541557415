"""Each combination of loss, level, KL, clip, mask, sampling mode and bonus is as in TRL."""

from collections import defaultdict
from dataclasses import fields, replace
from itertools import product
from types import SimpleNamespace

import pytest
import torch
import trl
from accelerate import Accelerator
from peers import difference
from trl.experimental.gmpo import GMPOTrainer

from core.collect.metrics import loss_metrics, loss_sums
from core.forward.batches import as_rollout
from core.losses.aggregate import Scale, token_mean
from core.losses.batch import PolicyConfig
from core.losses.entropy import most_uncertain
from core.losses.policy import LOSS_TYPES, policy_loss
from core.losses.sampling import MODES, Correction, sampling_ratio

TOLERANCE = 1e-12
SINGLE = 1e-6  # TRL averages what was clipped in single precision
ACCUMULATION, PARTS, LIMIT = 3, 2, 9
DEFAULTS = {f.name: f.default for f in fields(trl.GRPOConfig)}
WIDTHS = (
    {"epsilon": 0.2},
    {"epsilon": 0.1, "epsilon_high": 0.3},
    {"epsilon": 0.2, "epsilon_high": 0.28, "delta": 1.5},
    {"epsilon": 0.2, "delta": 1.1},
)
OF_LOSS = {
    "cispo": ({"epsilon_high": 1.1}, {"epsilon_high": 5.0}, {}),
    "sapo": ({}, {"sapo_temperature_pos": 2.0, "sapo_temperature_neg": 3.0}),
    "vespo": ({}, {"vespo_k_pos": 1.5, "vespo_lambda_neg": 4.0}),
    "gmpo": ({"epsilon": 0.25}, {"epsilon": 0.1, "epsilon_high": 0.4}),
}
KL = (
    {"beta": 0.0},
    {"beta": 0.04, "use_bias_correction_kl": False},
    {"beta": 0.04, "use_bias_correction_kl": True},
)
LIMITS = {"clip_min": 0.7, "clip_max": 2.0}
TRLS = [name for name in LOSS_TYPES if name not in ("gmpo", "vespo_mean")]


def batch(shape="row"):
    """Ratios on both sides of every clip, and of one token the engine said nothing."""
    draw = torch.Generator().manual_seed(4)

    def noise(scale):
        return scale * torch.randn(4, 5, generator=draw, dtype=torch.float64)

    logps, lengths = -2 + noise(0.5), torch.tensor([5, 1, 3, 4])[:, None]
    sampling = logps + noise(0.3)
    sampling[0, 1] = torch.nan
    advantages = torch.tensor([1.2, -0.7, -1.9, 0.4], dtype=torch.float64)
    return {
        "logps": logps,
        "entropy": noise(0.5).exp(),
        "old_per_token_logps": logps + noise(0.3),
        "ref_per_token_logps": logps + noise(0.4),
        "sampling_per_token_logps": sampling,
        "prompt_ids": torch.ones(4, 1),
        "prompt_mask": torch.ones(4, 1),
        "completion_ids": torch.ones(4, 5),
        "completion_mask": (torch.arange(5) < lengths).long(),
        "advantages": advantages if shape == "row" else advantages[:, None] + noise(0.5),
        "num_items_in_batch": torch.tensor(31),
    }


class Peer:
    """TRL's own loss, of log-probabilities and entropies that are given."""

    def __init__(self, accelerator, kind=trl.GRPOTrainer):
        self.accelerator, self.kind = accelerator, kind

    def __call__(self, inputs, logps, entropy, c, bonus, share, mode):
        args = {**DEFAULTS, **vars(c), "steps_per_generation": PARTS}
        trainer = object.__new__(self.kind)
        vars(trainer).update(
            args,
            args=SimpleNamespace(**args),
            accelerator=self.accelerator,
            model=SimpleNamespace(training=True),
            epsilon_low=c.epsilon,
            epsilon_high=c.upper_epsilon,
            use_vllm=mode is not None,
            vllm_importance_sampling_correction=True,
            max_completion_length=LIMIT,
            current_gradient_accumulation_steps=ACCUMULATION,
            top_entropy_quantile=share,
            entropy_coef=bonus,
            _entropy_bonus_enabled=bonus != 0,
            aux_loss_enabled=False,
            _metrics={"train": defaultdict(list)},
            _get_per_token_logps_and_entropies=lambda *_, **__: (logps, entropy, None),
        )
        loss = trainer._compute_loss(None, inputs)
        return loss, {name: values[0] for name, values in trainer._metrics["train"].items()}


def ours(inputs, logps, entropy, c, bonus, share, accelerator):
    """The same from our functions, as the trainer puts them together."""
    scale = Scale(
        rollout_tokens=inputs["num_items_in_batch"],
        accumulation=ACCUMULATION,
        micro_batches=PARTS,
        max_length=LIMIT,
    )
    given = {name: x for name, x in inputs.items() if name != "sampling_per_token_logps"}
    if "sampling_per_token_logps" in inputs:
        given["sampling_logps"] = inputs["sampling_per_token_logps"]
    r = as_rollout(given, logps, with_reference=c.beta != 0)
    if share < 1:
        every = entropy.detach()[r.mask.bool()]
        r = replace(r, entropy_mask=most_uncertain(entropy.detach(), every, share))
    result = policy_loss(r, c, scale)
    sums = loss_sums(result, r, entropy, c, LOSS_TYPES[c.loss_type].logs)
    shown = loss_metrics([sums], LOSS_TYPES[c.loss_type].logs, accelerator)
    return result.loss - bonus * token_mean(entropy, r.kept_mask, scale), shown


def sides(inputs, c, bonus, share, mode, accelerator, peer):
    """Loss, gradients and metrics of ours and of TRL's."""
    given = {n: x for n, x in inputs.items() if n not in ("logps", "entropy")}
    if mode is None:
        del given["sampling_per_token_logps"]
    else:
        old, sampler = given["old_per_token_logps"], given["sampling_per_token_logps"]
        limits = Correction(mode=mode, **LIMITS)
        ratio = sampling_ratio(old, sampler, given["completion_mask"], limits)
        given["importance_sampling_ratio"] = ratio
    found = []
    for side in ("ours", "theirs"):
        leaves = [inputs[n].clone().requires_grad_() for n in ("logps", "entropy")]
        settings = (given, *leaves, c, bonus, share)
        loss, shown = ours(*settings, accelerator) if side == "ours" else peer(*settings, mode)
        gradients = torch.autograd.grad(loss, leaves, materialize_grads=True)
        found.append((loss, torch.cat(gradients), shown))
    return found


def worst(combinations, accelerator, peer, shape="row"):
    """The number of combinations and the greatest difference in any; metrics are checked here."""
    count, error, inputs = 0, 0.0, batch(shape)
    for c, bonus, share, mode in combinations:
        mine, other = sides(inputs, c, bonus, share, mode, accelerator, peer)
        found = max(difference(mine[0], other[0]), difference(mine[1], other[1]))
        assert found < TOLERANCE, (c, bonus, share, mode)
        assert {*mine[2]} == {*other[2]} - {"policy_loss", "entropy_coef"}
        assert max(difference(mine[2][n], other[2][n]) for n in mine[2]) < SINGLE, c
        count, error = count + 1, max(error, found)
    return count, error


def grid(loss_type, levels, masks, modes, shares=(1.0, 0.4), kls=KL):
    """Settings, weight of the bonus, share of uncertain tokens and mode of sampling."""
    widths = OF_LOSS.get(loss_type, WIDTHS)
    for level, kl, width, mask, share in product(levels, kls, widths, masks, shares):
        names = {"loss_type": loss_type, "importance_sampling_level": level}
        c = PolicyConfig(**names, **kl, **width, off_policy_mask_threshold=mask)
        for mode in modes:
            yield c, 0.0, share, mode
        yield c, 0.02, share, None


@pytest.fixture(scope="module")
def accelerator():
    return Accelerator(cpu=True)


@pytest.mark.parametrize("loss_type", TRLS)
def test_every_combination(loss_type, accelerator, measured, record_property):
    """Also those that papers may not ask for (luspo per token), and vespo's other level."""
    row, levels = LOSS_TYPES[loss_type], ("token", "sequence")
    modes = [
        name for name, mode in MODES.items() if mode.by_token or not row.multiplies_engine_ratios
    ]
    combinations = grid(loss_type, levels, (None, 0.02), (None, *modes))
    count, error = worst(combinations, accelerator, Peer(accelerator))
    record_property("combinations", count)
    assert count == 2 * 3 * len(OF_LOSS.get(loss_type, WIDTHS)) * 2 * 2 * (len(modes) + 2)
    assert measured(f"{loss_type}, {count} combinations on tensors", error) < TOLERANCE


@pytest.mark.parametrize("loss_type", TRLS)
def test_advantages_of_tokens(loss_type, accelerator, measured):
    combinations = grid(loss_type, ("token", "sequence"), (0.02,), ("token_mask",), (0.4,))
    count, error = worst(combinations, accelerator, Peer(accelerator), shape="tokens")
    assert measured(f"advantages of tokens, {count} combinations each", error) < TOLERANCE


def test_gmpo(accelerator, measured):
    """TRL's own trainer for it, which has no masks, no sampling correction and no corrected KL."""
    combinations = [
        each for each in grid("gmpo", ("token",), (None,), (None,), kls=KL[:2]) if each[1] == 0
    ]
    count, error = worst(combinations, accelerator, Peer(accelerator, GMPOTrainer))
    assert count == 8
    assert measured(f"gmpo, {count} combinations on tensors", error) < TOLERANCE
