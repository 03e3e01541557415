"""One value for every setting, and where it came from.

Order, later wins: family defaults < base < paper < the scale's profile < the regime < the paper's
profile < arm < command line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Any

from core.configs.base import BaseConfig
from core.data.sets import ANSWER, DataSet, find_sets
from core.families.family import Family
from core.families.regimes import PREPARATIONS
from core.families.table import find_family
from core.paper import Paper
from core.paper.overrides import field_types
from core.paper.page import PREPARED
from core.settings.bounds import check_value
from core.settings.canonical import as_text
from core.settings.layers import COMMAND_LINE, PROFILE, Sourced, check_arm_name, sourced_values
from core.settings.reward_keys import reward_key
from core.settings.run_settings import ON_TRIAL, ONE_IN, RUN_FIELDS, RunSettings
from eval.errors import BadValue, ReproError, UnknownName

HELD_OUT_ROWS = "heldout_problems"


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """Everything that decides a run but its seed: settings by name, each with its source.

    `factor` is that of its learning rate, whose own is 1. `prepared` are the preparations that they
    name, which the command line leaves alone.
    """

    paper: Paper
    arm: str
    scale: str
    values: Mapping[str, Sourced]
    arguments: tuple[str, ...] = ()  # of the command line, as they were given
    factor: float = 1.0
    prepared: "Mapping[str, Resolved]" = field(default_factory=dict[str, "Resolved"])

    @property
    def family(self) -> Family:
        """Whose trainer it uses."""
        return find_family(self.paper.family_of(self.arm))

    @property
    def sets(self) -> tuple[DataSet, ...]:
        """The data sets; rows of a preparation have the columns of the family that makes them."""
        return tuple(
            self._made(one) if one.startswith(PREPARED) else find_sets(one)[0]
            for one in self.run.data.split("+")
        )

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of the data that it reads."""
        return self.family.reads(self.run.rewards, self.run.heldout_problems)

    @property
    def rows(self) -> int | None:
        """The rows of the data, with those that are held out of them; None if not known."""
        numbers = [one.rows for one in self.sets]
        known = [number for number in numbers if number is not None]
        return sum(known) if len(known) == len(numbers) else None

    @property
    def splits(self) -> bool:
        """Return whether rows are held out of those to train on, as a set has no others for it."""
        return not all(one.source.holds_out for one in self.sets)

    @property
    def gives_held_out(self) -> bool:
        """Return whether the paper or the command line says how many rows are held out."""
        told = self.values.get(HELD_OUT_ROWS)
        return told is not None and not told.source.startswith(PROFILE)

    def _made(self, name: str) -> DataSet:
        family = self.prepared[name.removeprefix(PREPARED)].family
        return DataSet(name=name, columns=(*family.columns, *family.gives))

    @property
    def share(self) -> dict[str, int]:
        """The sizes of the batch of one process."""
        own = self.family.micro_batches
        return divided(self.config, self.run.processes, own)

    @property
    def run(self) -> RunSettings:
        """The settings around the trainer."""
        chosen = {name: v.value for name, v in self.values.items() if name in RUN_FIELDS}
        return RunSettings(**chosen)  # type: ignore[arg-type]  # checked in resolve

    @property
    def config(self) -> dict[str, object]:
        """The fields of the family's config that are set by somebody."""
        return {name: v.value for name, v in self.values.items() if name not in RUN_FIELDS}

    @property
    def overrides(self) -> dict[str, object]:
        """What the command line set."""
        return {n: v.value for n, v in self.values.items() if v.source == COMMAND_LINE}

    def at_factor(self, factor: float) -> "Resolved":
        """Return the same arm at its own learning rate times `factor`."""
        return resolve(
            self.paper, arm=self.arm, scale=self.scale, arguments=self.arguments, factor=factor
        )

    def preview(self) -> BaseConfig:
        """The config as any machine can build it: to look at, not to train with."""
        return self.build(output_dir=Path("runs"), seed=0, use_cpu=True, bf16=False)

    def build(self, *, output_dir: Path, seed: int, **machine: object) -> BaseConfig:
        """The family's config object, built once for the trainer.

        Raises:
            BadValue: a value is out of range or does not go with another one.
        """
        cls = self.family.config_class()
        ours = {"output_dir": str(output_dir), "seed": seed, "disable_tqdm": True}
        name = f"{self.paper.slug}-{self.arm}-{seed}"
        quiet = {"report_to": "none", "save_total_limit": 2, "run_name": name}
        # Any: the values of all kinds of fields, whose types `resolve` has checked
        fields: dict[str, Any] = {**quiet, **cls.PAPERS_HAVE, **self.config, **ours, **machine}
        try:
            config = cls(**fields)
            self.family.check(config, self.run.rewards, self.run.roles)
        except BadValue:
            raise
        except (ValueError, TypeError) as error:
            reason = " ".join(str(error).split())
            raise BadValue(f"{self.paper.slug} at {self.scale}: {reason}") from error
        return config


def resolve(
    paper: Paper,
    *,
    arm: str | None = None,
    scale: str = "cpu",
    arguments: tuple[str, ...] = (),
    factor: float = 1.0,
    waiting: tuple[str, ...] = (),
) -> Resolved:
    """All settings of an arm at a scale, names and types checked before anything loads.

    `factor` is that of the learning rate. Of a preparation, `waiting` are those that need it, and
    itself.

    Raises:
        UnknownName: no such scale, arm, field or preparation; the nearest names are given.
        BadOverride: a value has not its field's type.
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
    config = resolved.family.config_class()
    for name, value in resolved.config.items():
        check_value(config, name, value, values[name].source)
    _check_unused(resolved)
    for reward in resolved.run.rewards:
        reward_key(reward)
    _ = resolved.share  # or it is refused here
    resolved = replace(resolved, prepared=prepared_of(resolved, waiting))
    return replace(resolved, values={**values, **_held_out(resolved)})


def with_preparations(paper: Paper) -> Paper:
    """A paper with those of the regimes too, unless it has its own of the name."""
    return replace(paper, preparations={**PREPARATIONS, **paper.preparations})


def divided(
    config: Mapping[str, object], processes: int, own: Sequence[str] = ()
) -> dict[str, int]:
    """The batch of one process such that all of them together make the batch of one.

    Micro-batches are shared out, which fields of a family's `own` count too; where an update has
    too few of them, their rows are.

    Raises:
        BadValue: neither divides.
    """
    steps = {"gradient_accumulation_steps": 1, **dict.fromkeys(own)}
    batch = {"per_device_train_batch_size": 8}
    for defaults in (steps, batch):
        sizes = {n: v for n, v in (defaults | dict(config)).items() if n in defaults and v}
        if all(isinstance(v, int) and v % processes == 0 for v in sizes.values()):
            return {name: int(str(v)) // processes for name, v in sizes.items()}
    raise BadValue(
        f"processes={processes} divides neither {' and '.join(steps)} nor "
        "per_device_train_batch_size: choose a number that does"
    )


def _budget(resolved: Resolved) -> dict[str, Sourced]:
    """The steps in which an arm of another family sees as many samples as the main arm.

    None where the arm or the command line says how many steps, or the data decides.
    """
    paper, family = resolved.paper, resolved.family
    said = resolved.values.get("max_steps", Sourced(None, "")).source
    if not family.trains or said.startswith("arm ") or said == COMMAND_LINE:
        return {}
    main = resolve(paper, arm=paper.main_arm, scale=resolved.scale)
    samples = main.family.cost(main.preview()).samples
    if samples is None:
        return {}
    one = replace(resolved, values={**resolved.values, "max_steps": Sourced(1, "")})
    each = family.cost(one.preview()).samples or 1
    source = f"{samples} samples as arm {paper.main_arm}"
    return {"max_steps": Sourced(ceil(samples / each), source)}


def _held_out(resolved: Resolved) -> dict[str, Sourced]:
    """Return how many rows of small data are held out if neither paper nor command line says it.

    That is a fifth, and none of rows of one's own without answers to judge by.
    """
    if not resolved.family.trains or resolved.gives_held_out:
        return {}
    try:
        sets, rows = resolved.sets, resolved.rows if resolved.splits else None
    except ReproError:
        return {}  # refused where the data is looked up
    wanted, source = resolved.run.heldout_problems, f"{PROFILE}{resolved.scale}"
    if wanted and any(one.own and ANSWER not in (one.columns or (ANSWER,)) for one in sets):
        return {HELD_OUT_ROWS: Sourced(0, f"{source}, the rows have no column {ANSWER}")}
    if rows is None or wanted <= rows // ONE_IN:
        return {}
    return {HELD_OUT_ROWS: Sourced(rows // ONE_IN, f"{source}, a fifth of the rows")}


def _scaled_rate(resolved: Resolved) -> Sourced:
    """An arm's own learning rate times its factor, to three digits."""
    rate = resolved.factor * resolved.preview().learning_rate
    return Sourced(float(f"{rate:.3g}"), f"best of {len(resolved.run.rate_factors)} {ON_TRIAL}")


def _check_unused(resolved: Resolved) -> None:
    """Refuse a setting that nothing in a run of this family reads."""
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
    """The preparations that a run names as its model, its data or in a role.

    Raises:
        UnknownName: the paper has none of that name.
        BadValue: preparations wait for each other, or one gives something else than is asked of it.
    """
    run, paper = resolved.run, resolved.paper
    asked = [(name, "a model") for name in (run.model, *run.roles.values())]
    asked += [(name, "rows") for name in run.data.split("+")]
    found: dict[str, Resolved] = {}
    for name, wanted in ((n.removeprefix(PREPARED), w) for n, w in asked if n.startswith(PREPARED)):
        if name not in paper.preparations:
            raise UnknownName("preparation", name, paper.preparations, f"repro show {paper.slug}")
        if name in waiting:
            circle = " > ".join((*waiting, name))
            raise BadValue(f"{paper.slug}: preparations wait for each other: {circle}")
        found[name] = resolve(paper, arm=name, scale=resolved.scale, waiting=(*waiting, name))
        family = found[name].family
        if not (family.gives if wanted == "rows" else family.trains):
            raise BadValue(
                f"{paper.slug}: the preparation {name} of the family {family.name} gives no "
                f"{wanted.removeprefix('a ')}, and {resolved.arm} asks for {wanted}"
            )
    return found


def config_fields(family: str) -> Mapping[str, Any]:  # Any: annotations
    """All fields of a family's config with their types."""
    return field_types(find_family(family).config_class())
