"""`semantics="trl==..."` computes the numbers of that release's own source."""

from collections import defaultdict
from dataclasses import fields, replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from accelerate import Accelerator
from peers import difference
from releases import OLDER, class_of, defaults, wheel
from test_loss_grid import ACCUMULATION, PARTS, batch

from core import GRPOConfig
from core.configs.releases import RELEASES, SEMANTICS, TRL
from core.forward.batches import as_rollout
from core.losses.entropy import most_uncertain
from core.losses.policy import LOSS_TYPES, policy_loss
from core.losses.sampling import sampling_ratio
from core.trainers.grpo import GRPOTrainer
from eval.errors import BadValue

ELSEWHERE = ("gmpo", "vespo_mean", "luspo", "cispo")  # not TRL's, or below
TOLERANCES = {"sapo": 1e-6}  # whose temperatures are of single precision from 0.28 on, as ours
# Settings beyond the defaults; those that a release lacks are refused there.
VARIANTS = (
    {},
    {"beta": 0.1},
    {"beta": 0.1, "use_bias_correction_kl": True},
    {"beta": 0.1, "use_bias_correction_kl": False},
    {"epsilon": 0.1, "epsilon_high": 0.3},
    {"delta": 1.5},
    {"importance_sampling_level": "sequence", "beta": 0.1},
    {"top_entropy_quantile": 0.4},
    {"off_policy_mask_threshold": 0.02},
    {"use_vllm": True},
    *({"loss_type": name} for name in LOSS_TYPES if name not in ELSEWHERE),
    {"loss_type": "luspo", "importance_sampling_level": "sequence", "beta": 0.1},
    {"loss_type": "cispo", "epsilon_high": 1.1},
)


def config(release, folder, **changes):
    """Our settings with the semantics of a release, of a rollout that is cut."""
    return GRPOConfig(
        output_dir=str(folder),
        use_cpu=True,
        per_device_train_batch_size=8,
        gradient_accumulation_steps=ACCUMULATION,
        semantics=f"{TRL}{release}",
        **({"generation_batch_size": 8 * PARTS} if newer(release, "0.18") else {}),
        **changes,
    )


def newer(release, than):
    """Whether a release is `than` or a later one."""
    return RELEASES.index(release) <= RELEASES.index(than)


def given(c):
    """A micro-batch, with the sampling ratio of the engine where it is corrected."""
    inputs = batch()
    if c.corrects_sampling:
        inputs["importance_sampling_ratio"] = sampling_ratio(
            inputs["old_per_token_logps"],
            inputs["sampling_per_token_logps"],
            inputs["completion_mask"],
            c.correction,
        )
    if not c.use_vllm:
        del inputs["sampling_per_token_logps"]
    return inputs


def ours(c, inputs, logps, accelerator):
    """The loss as our trainer puts it together."""
    trainer = SimpleNamespace(
        mode="train",
        args=c,
        current_gradient_accumulation_steps=ACCUMULATION,
        accelerator=accelerator,
    )
    batch = {**inputs, "sampling_logps": inputs.get("sampling_per_token_logps")}
    r = as_rollout(batch, logps, with_reference=c.reads_reference)
    if c.chooses_tokens:
        entropy = inputs["entropy"]
        kept = most_uncertain(entropy, entropy[r.mask.bool()], c.top_entropy_quantile)
        r = replace(r, entropy_mask=kept)
    return policy_loss(r, c, GRPOTrainer.scale(trainer, inputs)).loss  # pyright: ignore


def theirs(release, c, inputs, logps, accelerator):
    """The loss by the release's source; until 0.21 its Trainer divides by the accumulation."""
    trainer = peer(release, c, inputs, logps, accelerator, class_of(wheel(release)))
    loss = trainer._compute_loss(None, dict(inputs))
    return loss if newer(release, "0.22") else loss / ACCUMULATION


def peer(release, c, inputs, logps, accelerator, kind):
    """A trainer of a release that knows what its loss reads."""
    trainer = object.__new__(kind)
    answers = (logps, inputs["entropy"], *([None] if newer(release, "1.7") else []))
    reference = object()
    vars(trainer).update(
        {name: value for name, value in vars(c).items() if not name.startswith("_")},
        args=c,
        accelerator=accelerator,
        num_iterations=2,  # the policy has moved
        epsilon_low=c.epsilon,
        epsilon_high=c.upper_epsilon,
        vllm_importance_sampling_correction=c.vllm_importance_sampling_correction,
        current_gradient_accumulation_steps=ACCUMULATION,
        model=SimpleNamespace(training=True),
        control=SimpleNamespace(should_evaluate=False),
        ref_model=reference,
        tools=None,
        aux_loss_enabled=False,
        _entropy_bonus_enabled=False,
        _metrics={"train": defaultdict(list)},
        _get_per_token_logps=lambda model, *_, **__: (
            inputs["ref_per_token_logps"] if model is reference else logps
        ),
        _get_per_token_logps_and_entropies=lambda *_, **__: answers,
    )
    return trainer


def buildable(release, folder):
    """Our settings for each variant; those that a release lacks are refused for its sake."""
    for changes in VARIANTS:
        try:
            yield changes, config(release, folder, **changes)
        except BadValue as error:
            if "semantics=" not in str(error):
                raise


@pytest.mark.parametrize("release", OLDER)
def test_losses_and_gradients_are_those_of_the_release(release, tmp_path, measured):
    """With its own defaults first."""
    worst, settings = 0.0, list(buildable(release, tmp_path))
    assert settings[0][0] == {}
    accelerator = Accelerator(cpu=True)  # building settings resets its state
    for changes, c in settings:
        found = []
        for side in (ours, partial(theirs, release)):
            inputs = given(c)
            leaf = inputs.pop("logps").clone().requires_grad_()
            loss = side(c, inputs, leaf, accelerator)
            found.append((loss, *torch.autograd.grad(loss, leaf)))
        errors = [difference(mine, other) for mine, other in zip(*found, strict=True)]
        assert max(errors) < TOLERANCES.get(c.loss_type, 1e-12), (changes, errors)
        worst = max(worst, *errors)
    measured(f"{release}, {len(settings)} settings on tensors", worst)


@pytest.mark.parametrize("release", OLDER)
def test_defaults_are_those_of_the_release(release):
    """Of every field that both state; older names of a field are left out."""
    peer = defaults(wheel(release))
    row = SEMANTICS[f"{TRL}{release}"]
    plain = {f.name: f.default for f in fields(GRPOConfig)}
    for name in peer.keys() & plain.keys() - {*RENAMED, *GRPOConfig.UNSUPPORTED}:
        expected = OTHER_WORDS.get((name, peer[name]), peer[name])
        assert row.get(name, plain[name]) == expected, name


# The same in other words, and what is a property of a machine or of no number.
OTHER_WORDS = {("scale_rewards", True): "group", ("top_k", None): 0}
RENAMED = (
    "use_liger_kernel",
    "router_aux_loss_coef",
    "log_multimodal",
    "vllm_gpu_memory_utilization",
    "vllm_importance_sampling_cap",
)
