"""The sources of settings, weakest first, and the arms and scales that exist."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from core.configs.base import BaseConfig
from core.families.profiles import SCALES
from core.families.table import find_family
from core.families.worlds import find_regime, world_of_regime
from core.paper import Paper
from core.paper.overrides import (
    check_type,
    field_types,
    find_type,
    named_texts,
    parse_override,
)
from core.paper.registry import lineage
from core.settings.named_rewards import parse_rewards
from core.settings.run_settings import RUN_FIELDS, RunSettings
from eval.errors import BadValue, UnknownName

COMMAND_LINE, REGIME = "command line", "regime"
PROFILE = "profile "  # begins the source of what a scale sets, the family's own profile
Settings: TypeAlias = Mapping[str, object]
Layer: TypeAlias = tuple[Settings, str]  # with where they come from
PUSHED = "nothing is sent to the hub before the end: give --push-to-hub OWNER/NAME"
# Fields of a trainer that a run sets itself or has no use for.
NO_SETTINGS: Mapping[str, str] = {
    "output_dir": "give REPRO_ROOT",
    "hub_model_id": "give --push-to-hub OWNER/NAME",
    "hub_private_repo": "make the repository on the hub before",
    **dict.fromkeys(("hub_always_push", "hub_revision", "hub_strategy"), PUSHED),
    "hub_token": "`hf auth login` keeps it, or set HF_TOKEN",
    "push_to_hub": "give --push-to-hub OWNER/NAME",
    "resume_from_checkpoint": "the same command continues by itself",
    "seed": "give --seed",
}


@dataclass(frozen=True)
class Sourced:
    """A value and the name of its source."""

    value: object
    source: str


def sourced_values(
    paper: Paper, arm: str, scale: str, arguments: tuple[str, ...]
) -> dict[str, Sourced]:
    """Return the value of every setting from its strongest source.

    Raises:
        UnknownName: there is no such field; the nearest names are given.
        BadOverride: a value does not have the type of its field.
        BadValue: the command line sets a field that is no setting of a run.
    """
    config = find_family(paper.family_of(arm)).config_class()
    arguments_by_name = read_arguments(paper, arguments, config)
    values: dict[str, Sourced] = {}
    for settings, source in layers(paper, arm, scale, arguments_by_name):
        for name, value in settings.items():
            plain = config.without_alias(name, value)
            typed = check_type(name, plain, find_type(name, config, RunSettings))
            values[name] = Sourced(typed, source)
    for name, value in arguments_by_name.items():
        if name in NO_SETTINGS:
            raise BadValue(f"{name}={value} is no setting of a run: {NO_SETTINGS[name]}")
        values[name] = Sourced(config.without_alias(name, value), COMMAND_LINE)
    return values


def arguments_of(
    paper: Paper, arm: str, arguments: tuple[str, ...], arms: Iterable[str]
) -> tuple[str, ...]:
    """Return the settings of a command line over several arms that act on one of them.

    Those that its family does not read and another arm's does are left out. What no arm reads is
    kept, so that it is refused.

    Args:
        paper: The paper.
        arm: The name of the arm.
        arguments: The settings of the command line as `name=value`.
        arms: The names of all arms of the command.
    """
    own, *others = (readable(paper.family_of(name)) for name in (arm, *arms))
    elsewhere = frozenset[str]().union(*others) - own
    names = named_texts(arguments)
    return tuple(f"{name}={text}" for name, text in names.items() if name not in elsewhere)


def readable(family_name: str) -> frozenset[str]:
    """Return the names of the settings that a family reads."""
    family = find_family(family_name)
    return RUN_FIELDS.difference(family.unused) | family.config_class().settable()


def read_arguments(
    paper: Paper, arguments: tuple[str, ...], config: type[BaseConfig]
) -> dict[str, object]:
    """Return the settings of the command line by name, with rewards looked up by their names."""
    return {
        name: parse_rewards(text, paper)
        if name == "rewards"
        else parse_override(name, text, config, RunSettings)
        for name, text in named_texts(arguments).items()
    }


def layers(paper: Paper, arm: str, scale: str, command_line: Settings) -> list[Layer]:
    """Return every source of settings except the command line, weakest first.

    An arm of another family takes only the run settings from the paper, without those that its
    family does not read. In a bare world nothing comes from the papers but the arm's own changes,
    and what stands beside the regime in a paper's profile.

    Args:
        paper: The paper.
        arm: The name of the arm.
        scale: The name of the scale.
        command_line: The settings of the command line, which may name the regime.

    Raises:
        BadValue, UnknownName: the family or the regime does not exist, also at this scale.
        BrokenPaper: the bases of the paper form a circle.
    """
    chain, family = lineage(paper), find_family(paper.family_of(arm))
    run_fields = RUN_FIELDS.difference(family.unused)
    is_own_family = family.name == paper.family

    def run_settings_only(settings: Settings) -> Settings:
        return {name: value for name, value in settings.items() if name in run_fields}

    def own_or_run(settings: Settings) -> Settings:
        return settings if is_own_family else run_settings_only(settings)

    profile = (family.profiles.get(scale, {}), f"{PROFILE}{scale}")
    own_changes = [
        (paper.changes(arm), f"arm {arm}"),
        (paper.changes(arm, scale), f"arm {arm} at {scale}"),
    ]
    sources = [(own_or_run(s), place) for link in chain for s, place in own_layers(link)]
    sources.append(profile)
    at_scale = [(link.profiles.get(scale, {}), f"{link.slug} at {scale}") for link in chain]
    of_papers = [(own_or_run(s), place) for s, place in at_scale]
    changes = [*of_papers, *own_changes]
    regime, source = named_regime([*sources, *changes, (command_line, COMMAND_LINE)])
    if regime is None:
        return sources + changes
    settings = find_regime(regime, scale, source, family.name)
    configures_trainer = family.has_regimes
    if world_of_regime(regime).is_bare:
        known = RUN_FIELDS | field_types(family.config_class()).keys()
        configures_trainer = family.has_regimes or (family.trains and settings.keys() <= known)
        beside = [layer for layer in of_papers if layer[1] == source]
        sources, changes = [profile, ({REGIME: regime}, source)], [*beside, *own_changes]
    layer = settings if configures_trainer else run_settings_only(settings)
    return [*sources, (layer, f"{REGIME} {regime}"), *changes]


def own_layers(paper: Paper) -> list[Layer]:
    """Return the settings that a paper cites, and then its model, data, rewards and benchmarks."""
    cited = [({s.name: s.value}, f"{paper.slug} {s.passage}") for s in paper.settings]
    around = {name: getattr(paper, name) for name in ("model", "data", "rewards", "benchmarks")}
    return [*cited, (around, paper.slug)]


def named_regime(sources: Sequence[Layer]) -> tuple[str | None, str]:
    """Return the regime that the strongest source names, and that source; None if none does."""
    choices = [(settings[REGIME], source) for settings, source in sources if REGIME in settings]
    regime, source = choices[-1] if choices else (None, "")
    return None if regime is None else str(regime), source


def check_arm_name(paper: Paper, arm: str, scale: str) -> None:
    """Check that a scale and an arm exist, and the arms and scales that the paper itself names.

    Raises:
        UnknownName: there is no such scale or arm; the nearest names are given.
        BadValue: a preparation has the name of an arm, or the arm does not exist at this scale.
    """
    check_known("scale", (scale,), SCALES)
    for name in paper.preparations:
        if name in paper.arms:
            raise BadValue(f"{paper.slug}: {name} is an arm and a preparation: rename one of them")
    arms = {**(paper.arms or {paper.main_arm: {}}), **paper.preparations}
    equal_arms = filter(None, (paper.same_as(arm, scale) for scale in SCALES))
    check_known("arm", (arm, *equal_arms), arms, f"repro show {paper.slug}")
    scales_of_evaluations = filter(None, (each.scale for each in paper.evaluations))
    check_known("scale", (*paper.profiles, *paper.scales(arm), *scales_of_evaluations), SCALES)
    if not paper.exists_at(arm, scale):
        elsewhere = next(candidate for candidate in SCALES if paper.exists_at(arm, candidate))
        raise BadValue(f"arm {arm} of {paper.slug} exists at {elsewhere} alone, not at {scale}")


def check_known(kind: str, names: Iterable[str], known: Collection[str], command: str = "") -> None:
    """Check that names are known.

    Args:
        kind: The word for the names in the error.
        names: The names to check.
        known: The names that exist.
        command: The command that lists the known names, for the error.

    Raises:
        UnknownName: the first name that is not; the nearest known names are given.
    """
    for name in names:
        if name not in known:
            raise UnknownName(kind, name, known, command)
