"""What a training computes with: its settings as they act, whoever set them and wherever."""

from collections.abc import Mapping
from typing import cast

from core.configs.idle import acting
from core.paper.page import PREPARED
from core.settings.canonical import canonical
from core.settings.layers import NO_SETTINGS
from core.settings.resolve import Resolved
from core.settings.reward_keys import reward_key
from core.settings.run_settings import BUNDLES, CHOOSING, IDLE, NEUTRAL, SCORING


def effective(resolved: Resolved) -> dict[str, object]:
    """The family, and every setting that can change a bit of what the training gives but its seed.

    Two papers, or two arms, of equal ones are one training: no name of a paper or of an arm is
    among them, a default that is written out counts as one that is not, a field that cannot act
    beside the others does not count, and a preparation counts by its own settings.

    Raises:
        BadValue: a value is out of range or does not go with another one.
    """
    return {
        "family": resolved.family.name,
        "config": canonical(config_of(resolved)),
        "settings": canonical(settings_of(resolved)),
    }


def config_of(resolved: Resolved) -> dict[str, object]:
    """The acting fields of the trainer's config, in the precision and place that were asked for."""
    config, given = resolved.preview(), resolved.config
    unset = given.get("bf16") is None
    asked = {
        "bf16": not config.fp16 if unset else given["bf16"],  # a preview trains on any machine
        "use_cpu": given.get("use_cpu", False),
    }
    left_out = NEUTRAL | NO_SETTINGS.keys()
    return {n: v for n, v in (acting(config) | asked).items() if n not in left_out}


def settings_of(resolved: Resolved) -> dict[str, object]:
    """The acting settings around the trainer, less those that only say how it is scored later."""
    found = acting(resolved.run, IDLE)
    rewards = [reward_key(reward) for reward in resolved.run.rewards]
    left_out = SCORING | CHOOSING | BUNDLES
    kept = {n: unnamed(resolved, v) for n, v in found.items() if n not in left_out}
    return kept | {"rewards": rewards}


def unnamed(resolved: Resolved, value: object) -> object:
    """A setting, with their own settings in place of the names of preparations."""
    if isinstance(value, Mapping):
        rows = cast(Mapping[str, object], value)
        return {name: unnamed(resolved, item) for name, item in rows.items()}
    if not isinstance(value, str) or PREPARED not in value:
        return value
    prepared = {f"{PREPARED}{name}": own for name, own in resolved.prepared.items()}
    return [effective(prepared[part]) if part in prepared else part for part in value.split("+")]
