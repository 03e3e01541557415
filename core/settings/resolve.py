"""Resolution of the settings of an arm: one value for each, with its source.

Sources from weakest to strongest: family defaults, base, paper, the scale's profile, the regime,
the paper's profile, the arm, the command line.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil

from core.claims.needs import PREPARED
from core.data.data_set import ANSWER, DataSet
from core.families import pocket, regimes
from core.families.table import find_family
from core.paper import Paper
from core.paper.overrides import field_types
from core.settings.bounds import check_value
from core.settings.canonical import as_text
from core.settings.layers import (
    COMMAND_LINE,
    PROFILE,
    Sourced,
    check_arm_name,
    sourced_values,
)
from core.settings.resolved import HELD_OUT_ROWS, Resolved
from core.settings.reward_keys import reward_key
from core.settings.run_settings import ON_TRIAL, ONE_IN, RunSettings
from eval.errors import BadValue, ReproError, UnknownName


def resolve(
    paper: Paper,
    *,
    arm: str | None = None,
    scale: str = "cpu",
    arguments: tuple[str, ...] = (),
    factor: float = 1.0,
    waiting: tuple[str, ...] = (),
) -> Resolved:
    """Return all settings of an arm at a scale, with names and types checked before anything loads.

    Args:
        paper: The paper.
        arm: The name of an arm or preparation; default: the main arm.
        scale: The name of the scale.
        arguments: The settings of the command line as `name=value`.
        factor: The factor of the learning rate.
        waiting: The chain of preparations that is being resolved, to detect cycles.

    Raises:
        UnknownName: there is no such scale, arm, field or preparation; the nearest names are given.
        BadOverride: a value does not have the type of its field.
        BadValue: a value is out of range, a reward has no key, the family has no such role, a
            preparation cannot be made, or the processes do not divide the batch.
    """
    paper = with_preparations(paper)
    chosen = paper.main_arm if arm is None else arm
    check_arm_name(paper, chosen, scale)
    values = sourced_values(paper, chosen, scale, arguments)
    resolved = Resolved(
        paper=paper, arm=chosen, scale=scale, values=values, arguments=arguments, factor=factor
    )
    if resolved.family.name != paper.family and chosen in paper.arms and chosen != paper.main_arm:
        values |= _budget(resolved)
    if factor != 1:
        values["learning_rate"] = _scaled_rate(resolved)
    _check_settings(resolved)
    resolved = replace(resolved, prepared=prepared_of(resolved, waiting))
    return replace(resolved, values={**values, **_held_out(resolved)})


def at_factor(resolved: Resolved, factor: float) -> Resolved:
    """Return the same arm at its own learning rate times `factor`."""
    return resolve(
        resolved.paper,
        arm=resolved.arm,
        scale=resolved.scale,
        arguments=resolved.arguments,
        factor=factor,
    )


def _check_settings(resolved: Resolved) -> None:
    """Check bounds, settings without effect, the keys of rewards and the batch of a process.

    Raises:
        UnknownName, BadValue: see `resolve`.
    """
    config = resolved.family.config_class()
    for name, value in resolved.config.items():
        check_value(config, name, value, resolved.values[name].source)
    _check_unused(resolved)
    for reward in resolved.run.rewards:
        reward_key(reward)
    _ = resolved.share  # raises if the processes do not divide the batch


def with_preparations(paper: Paper) -> Paper:
    """Return a paper with the preparations of the regimes added; its own win over them."""
    return replace(
        paper, preparations={**regimes.PREPARATIONS, **pocket.PREPARATIONS, **paper.preparations}
    )


def _budget(resolved: Resolved) -> dict[str, Sourced]:
    """Return the steps in which an arm of another family sees as many samples as the main arm.

    The result is empty if the arm or the command line sets the steps, if the data decides them, or
    if the main arm trains nothing.
    """
    paper, family = resolved.paper, resolved.family
    steps = resolved.values.get("max_steps", Sourced(None, ""))
    if not family.trains or steps.source.startswith("arm ") or steps.source == COMMAND_LINE:
        return {}
    main = resolve(paper, arm=paper.main_arm, scale=resolved.scale)
    samples = main.family.cost(main.preview()).samples
    if samples is None or not main.family.trains:
        return {}
    single_step = replace(resolved, values={**resolved.values, "max_steps": Sourced(1, "")})
    samples_per_step = family.cost(single_step.preview()).samples or 1
    source = f"{samples} samples as arm {paper.main_arm}"
    return {"max_steps": Sourced(ceil(samples / samples_per_step), source)}


def _held_out(resolved: Resolved) -> dict[str, Sourced]:
    """Return the number of held-out rows of small data if neither paper nor command line sets it.

    It is a fifth of the rows, and 0 for user data without a column of answers, except for pairs.
    The result is empty if the usual number stands.
    """
    if not resolved.family.trains or resolved.gives_held_out:
        return {}
    try:
        sets, rows = resolved.sets, resolved.rows if resolved.splits else None
    except ReproError:
        return {}  # refused where the data is looked up
    number, source = resolved.run.heldout_problems, f"{PROFILE}{resolved.scale}"
    if number and any(map(lacks_answers, sets)) and not resolved.family.pair_quantities:
        return {HELD_OUT_ROWS: Sourced(0, f"{source}, the rows have no column {ANSWER}")}
    if rows is None or number <= rows // ONE_IN:
        return {}
    return {HELD_OUT_ROWS: Sourced(rows // ONE_IN, f"{source}, a fifth of the rows")}


def lacks_answers(data_set: DataSet) -> bool:
    """Return whether a data set is the user's own and known to have no column of answers."""
    columns = data_set.columns
    return data_set.own and bool(columns) and ANSWER not in (columns or ())


def _scaled_rate(resolved: Resolved) -> Sourced:
    """Return an arm's own learning rate times its factor, rounded to three digits."""
    rate = resolved.factor * resolved.preview().learning_rate
    return Sourced(float(f"{rate:.3g}"), f"best of {len(resolved.run.rate_factors)} {ON_TRIAL}")


def _check_unused(resolved: Resolved) -> None:
    """Check that no setting or role is set that the family does not use.

    Raises:
        BadValue: a setting has no effect in this family.
        UnknownName: the family has no such role.
    """
    for name in resolved.family.unused:
        value, idle = getattr(resolved.run, name), getattr(RunSettings, name, "")
        if value != idle:
            raise BadValue(
                f"{name}={as_text(value)} ({resolved.values[name].source}): nothing in a run of "
                f"the family {resolved.family.name} uses it; leave it out"
            )
    for role in resolved.run.roles:
        if role not in resolved.family.roles:
            kind = f"role of a model in the family {resolved.family.name}"
            raise UnknownName(kind, role, resolved.family.roles)


def prepared_of(resolved: Resolved, waiting: tuple[str, ...]) -> dict[str, Resolved]:
    """Return the preparations that a run names as its model, its data or in a role.

    Raises:
        UnknownName: the paper has no preparation of that name.
        BadValue: preparations depend on each other in a cycle, or a preparation makes rows where a
            model is needed, or a model where rows are.
    """
    run, paper = resolved.run, resolved.paper
    references = [(name, "a model") for name in run.models]
    references += [(name, "rows") for name in run.data.split("+")]
    starts = resolved.world.starts
    preparations: dict[str, Resolved] = {}
    for name, kind in (
        (n.removeprefix(PREPARED), w) for n, w in references if n.startswith(PREPARED)
    ):
        definitions = {**starts.preparations, **paper.preparations}
        if name not in definitions:
            raise UnknownName("preparation", name, definitions, f"repro show {paper.slug}")
        if name in waiting:
            circle = " > ".join((*waiting, name))
            raise BadValue(f"{paper.slug}: preparations wait for each other: {circle}")
        owner = paper if name in paper.preparations else starts
        preparations[name] = resolve(
            owner, arm=name, scale=resolved.scale, waiting=(*waiting, name)
        )
        check_kind(resolved, preparations[name], kind)
    return preparations


def check_kind(resolved: Resolved, preparation: Resolved, kind: str) -> None:
    """Raise `BadValue` unless a preparation makes what a run asks of it, `a model` or `rows`."""
    family = preparation.family
    if not (family.gives if kind == "rows" else family.trains):
        raise BadValue(
            f"{resolved.paper.slug}: the preparation {preparation.arm} of the family {family.name} "
            f"gives no {kind.removeprefix('a ')}, and {resolved.arm} asks for {kind}"
        )


def config_fields(family: str) -> Mapping[str, object]:
    """Return the annotations of all fields of a family's config by name."""
    return field_types(find_family(family).config_class())
