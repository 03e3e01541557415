"""Where the settings of two papers differ, or those of a paper and of TRL."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields

from core.configs.idle import acting
from core.families.table import find_family
from core.paper.registry import find_paper
from core.run.layers import Sourced
from core.run.resolve import resolve
from core.run.settings import NEUTRAL, RUN_FIELDS, RunSettings

TRL = "trl"  # stands for a paper: what TRL's paper index sets for the other one
NOT_SET = Sourced(None, "not a field")


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A field and its two values."""

    field: str
    left: Sourced
    right: Sourced


def differences(left: str, right: str, scale: str) -> list[Difference]:
    """The fields of two papers that differ at a scale, by name.

    `right` may be `trl`: TRL's paper index where it sets a field, else TRL's own defaults, or what
    it does where it has no field. What surrounds the trainer is compared between papers only;
    fields that are `NEUTRAL` never are.

    Raises:
        UnknownName: there is no such paper or scale.
    """
    one = settings_of(left, scale)
    other = trl_settings(left) if right == TRL else settings_of(right, scale)
    left_out = NEUTRAL | RUN_FIELDS | idle(left, scale) if right == TRL else NEUTRAL
    found = [
        Difference(field=name, left=one.get(name, NOT_SET), right=other.get(name, NOT_SET))
        for name in sorted({*one, *other} - left_out)
    ]
    return [each for each in found if each.left.value != each.right.value]


def settings_of(slug: str, scale: str) -> dict[str, Sourced]:
    """Every field with the value that a run has."""
    paper = find_paper(slug)
    return {
        **defaults(RunSettings, "default"),
        **defaults(find_family(paper.family).config_class(), "default"),
        **resolve(paper, scale=scale).values,
    }


def trl_settings(slug: str) -> dict[str, Sourced]:
    """Every field of the trainer with the value that TRL gives it for this paper."""
    paper = find_paper(slug)
    config = find_family(paper.family).config_class()
    ways = {name: Sourced(value, "what TRL does") for name, value in config.TRL_WAYS.items()}
    index = {name: Sourced(value, "TRL's paper index") for name, value in paper.trl_index.items()}
    return {**defaults(config, "TRL's default"), **ways, **index}


def idle(slug: str, scale: str) -> frozenset[str]:
    """Fields that TRL lacks and that change nothing with the other settings of a paper."""
    config = resolve(find_paper(slug), scale=scale).preview()
    return frozenset(config.TRL_WAYS) - acting(config).keys()


def defaults(settings: type, source: str) -> Mapping[str, Sourced]:
    """The defaults of a dataclass's fields; those of the configs are TRL's."""
    made = {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(settings)
    }
    return {name: Sourced(value, source) for name, value in made.items() if value is not MISSING}
