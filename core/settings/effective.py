"""The settings that a training computes with, as its key holds them."""

from collections.abc import Mapping
from typing import cast

from core.claims.needs import PREPARED
from core.configs.idle import effective_fields
from core.settings.canonical import canonical
from core.settings.layers import NO_SETTINGS
from core.settings.own_trainer import trainer_key
from core.settings.resolved import Resolved
from core.settings.reward_keys import reward_key
from core.settings.run_settings import BUNDLES, CHOOSING, IDLE, NEUTRAL, SCORING


def effective(resolved: Resolved) -> dict[str, object]:
    """Return the family and every setting except the seed that can change what a training computes.

    Two arms of equal effective settings are one training. Names of papers and arms are not
    included, a default that is written out equals one that is not, fields without effect are left
    out, and a preparation is represented by its own settings.

    Raises:
        BadValue: a value is out of range or contradicts another one.
    """
    return {
        "family": resolved.family.name,
        "config": canonical(config_of(resolved)),
        "settings": canonical(settings_of(resolved)),
    }


def config_of(resolved: Resolved) -> dict[str, object]:
    """Return the config's fields that have an effect, with precision and device as they are set."""
    config, fields = resolved.preview(), resolved.config
    unset = fields.get("bf16") is None
    machine = {
        "bf16": not config.fp16 if unset else fields["bf16"],  # a preview trains on any machine
        "use_cpu": fields.get("use_cpu", False),
    }
    left_out = NEUTRAL | NO_SETTINGS.keys()
    return {n: v for n, v in (effective_fields(config) | machine).items() if n not in left_out}


def settings_of(resolved: Resolved) -> dict[str, object]:
    """Return the run settings that have an effect on the training, without those of scoring."""
    active = effective_fields(resolved.run, IDLE)
    rewards = [reward_key(reward) for reward in resolved.run.rewards]
    left_out = SCORING | CHOOSING | BUNDLES
    settings = {n: expand_preparations(resolved, v) for n, v in active.items() if n not in left_out}
    trainer = resolved.run.trainer
    trainer_settings = {"trainer": trainer_key(trainer)} if trainer else {}
    return {**settings, "rewards": rewards, **trainer_settings}


def expand_preparations(resolved: Resolved, value: object) -> object:
    """Return a setting with the names of preparations replaced by their effective settings."""
    if isinstance(value, Mapping):
        rows = cast(Mapping[str, object], value)
        return {name: expand_preparations(resolved, item) for name, item in rows.items()}
    if not isinstance(value, str) or PREPARED not in value:
        return value
    prepared = {f"{PREPARED}{name}": preparation for name, preparation in resolved.prepared.items()}
    return [effective(prepared[part]) if part in prepared else part for part in value.split("+")]
