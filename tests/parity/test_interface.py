"""The settings and arguments of TRL's GRPO, with its defaults, and the settings of our own."""

from dataclasses import MISSING, fields
from inspect import signature

import pytest
import trl

import core

OURS_ONLY = {
    "advantage_estimator",
    "compare_sampler",
    "keep_sampling_mask",
    "kl_coef",
    "kl_estimator",
    "loss_aggregate",
    "prompt_retirement",
    "rollout_bits",
    "rollout_engine",
    "rollout_lag",
    "rollout_policy",
    "rollout_selection",
    "selection_draws",
    "selection_fills_up",
    "selection_kept",
    "selection_reward",
    "semantics",
    "token_normalizer",
    "top_entropy_normalizer",
    "top_entropy_tokens",
}


def defaults(config):
    return {
        f.name: f.default if f.default_factory is MISSING else f.default_factory()
        for f in fields(config)
    }


def test_settings():
    ours, theirs = defaults(core.GRPOConfig), defaults(trl.GRPOConfig)
    assert set(ours) - set(theirs) == OURS_ONLY
    assert {name: ours[name] for name in theirs} == theirs


def test_settings_of_dpo(tmp_path):
    ours, theirs = defaults(core.DPOConfig), defaults(trl.DPOConfig)
    own = {"batch_scope", "weighting_alignment", "weighting_clamp", "weighting_side"}
    assert set(ours) - set(theirs) == own
    assert {name: ours[name] for name in theirs} == theirs
    given = {"output_dir": str(tmp_path), "use_cpu": True, "loss_type": "ipo"}
    given["activation_checkpointing"] = True
    ours, theirs = core.DPOConfig(**given), trl.DPOConfig(**given)
    for name in defaults(trl.DPOConfig):
        assert getattr(ours, name) == getattr(theirs, name), name


def test_settings_of_kto(tmp_path):
    ours, theirs = defaults(core.KTOConfig), defaults(trl.KTOConfig)
    assert set(ours) - set(theirs) == {"batch_scope"}
    assert {name: ours[name] for name in theirs} == theirs
    given = {"output_dir": str(tmp_path), "use_cpu": True, "beta": 0.3}
    given["activation_checkpointing"] = True
    ours, theirs = core.KTOConfig(**given), trl.KTOConfig(**given)
    for name in defaults(trl.KTOConfig):
        assert getattr(ours, name) == getattr(theirs, name), name


def test_resolved_settings(tmp_path):
    """What follows from what: sizes of rollouts, precision, checkpointing."""
    given = {
        "output_dir": str(tmp_path),
        "use_cpu": True,
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 6,
        "scale_rewards": False,
        "activation_checkpointing": True,
    }
    ours, theirs = core.GRPOConfig(**given), trl.GRPOConfig(**given)
    for name in defaults(trl.GRPOConfig):
        assert getattr(ours, name) == getattr(theirs, name), name


@pytest.mark.parametrize("trainer", ["GRPOTrainer", "DPOTrainer", "KTOTrainer"])
def test_arguments(trainer):
    ours, theirs = (
        list(signature(getattr(package, trainer)).parameters.values()) for package in (core, trl)
    )
    assert [(p.name, p.default) for p in ours] == [(p.name, p.default) for p in theirs]
