"""The resolved settings of an arm, and what follows from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from core.claims import START
from core.claims.needs import PREPARED
from core.configs.base import BaseConfig
from core.data.data_set import DataSet
from core.data.sets import find_sets
from core.families.family import KL_ON_BENCHMARK, KL_TO_START, Family
from core.families.table import find_family
from core.families.worlds import World, world_of_regime
from core.paper import Paper
from core.paper.registry import lineage
from core.settings.layers import COMMAND_LINE, PROFILE, REGIME, Sourced
from core.settings.run_settings import RUN_FIELDS, RunSettings
from eval.errors import BadValue
from eval.nano.running_sums import RunningSums
from eval.nano.splits import TASKS

HELD_OUT_ROWS = "heldout_problems"


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """The settings of a run, without its seed.

    Attributes:
        paper: The paper.
        arm: The name of the arm or preparation.
        scale: The name of the scale.
        values: Every setting by name, with its source.
        arguments: The settings of the command line as `name=value`.
        factor: The factor of the learning rate; 1 is the arm's own rate.
        prepared: The preparations that the settings name, without settings of the command line.
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
        """The family of the arm's trainer.

        Raises:
            UnknownName: the family does not exist.
        """
        return find_family(self.paper.family_of(self.arm))

    @property
    def world(self) -> World:
        """The world that the arm's regime belongs to.

        Raises:
            UnknownName: no world has the regime.
        """
        return world_of_regime(self.run.regime)

    @property
    def sets(self) -> tuple[DataSet, ...]:
        """The data sets; rows of a preparation have the columns of the family that makes them.

        Raises:
            BadValue, DamagedFile, MissingFile, UnknownName: see `find_sets`.
        """
        return tuple(
            self._made_set(name) if name.startswith(PREPARED) else find_sets(name)[0]
            for name in self.run.data.split("+")
        )

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of the data that the run reads."""
        other_columns = {*self.family.other_columns}
        if other_columns and all(
            other_columns <= {*(data_set.columns or ())} for data_set in self.sets
        ):
            return self.family.other_columns
        return self.family.reads(self.run.rewards, self.run.heldout_problems)

    @property
    def rows(self) -> int | None:
        """The number of rows of the data, with those to hold out; None if it is unknown."""
        numbers = [data_set.rows for data_set in self.sets]
        counts = [number for number in numbers if number is not None]
        return sum(counts) if len(counts) == len(numbers) else None

    @property
    def has_judged_steps(self) -> bool:
        """True if the rows, unless they are made, are problems whose answers have judged steps."""
        names = [n for n in self.run.data.split("+") if not n.startswith(PREPARED)]
        tasks = [TASKS.get(b) for n in names for b in find_sets(n)[0].source.benchmarks or ("",)]
        return all(isinstance(task, RunningSums) for task in tasks)

    @property
    def splits(self) -> bool:
        """True if rows are held out of the training rows, as a data set has no split for it."""
        return not all(data_set.source.holds_out for data_set in self.sets)

    @property
    def gives_held_out(self) -> bool:
        """True if the paper or the command line sets how many rows are held out.

        A profile and a regime have numbers for any data, which small data need not reach.
        """
        setting = self.values.get(HELD_OUT_ROWS)
        return setting is not None and not setting.source.startswith((PROFILE, f"{REGIME} "))

    def claimed_quantities(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the quantities that claims read of this arm or of the starting model."""
        arms = (self.arm, START)
        claimed = [need for c in self.paper.claims for arm, need in c.needs if arm in arms]
        names_claimed = {need.name for need in claimed if need.kind == "probabilities"}
        on_benchmarks = sorted(name for name in names_claimed if name.startswith(KL_ON_BENCHMARK))
        known = (*names, *(on_benchmarks if KL_TO_START in names else ()))
        return tuple(name for name in known if name in names_claimed)

    def _made_set(self, name: str) -> DataSet:
        """Return the data set that a preparation makes, with the columns that it will have."""
        family = self.prepared[name.removeprefix(PREPARED)].family
        return DataSet(name=name, columns=(*family.columns, *family.gives))

    @property
    def share(self) -> dict[str, int]:
        """The batch sizes of one process.

        Raises:
            BadValue: the batch cannot be divided among the processes.
        """
        micro_batches = self.family.micro_batches
        return divide_batch(self.config, self.run.processes, micro_batches)

    @cached_property
    def run(self) -> RunSettings:
        """The run settings."""
        chosen = {name: v.value for name, v in self.values.items() if name in RUN_FIELDS}
        return RunSettings(**chosen)  # type: ignore[arg-type]  # checked in resolve

    @property
    def config(self) -> dict[str, object]:
        """The fields of the family's config that a source sets."""
        return {name: v.value for name, v in self.values.items() if name not in RUN_FIELDS}

    @property
    def caution(self) -> str:
        """A line on what the paper cites and a regime of the command line leaves without effect.

        Only the regimes of bare worlds do that, see `World.is_bare`; else it is empty.
        """
        if "regime" not in self.overrides or not self.world.is_bare:
            return ""
        cited = {s.name: s.value for link in lineage(self.paper) for s in link.settings}
        acting = {name: setting.value for name, setting in self.values.items()}
        idle = ", ".join(sorted(n for n, value in cited.items() if acting.get(n) != value))
        return idle and f"in the regime {self.run.regime} the paper's {idle} have no effect"

    @property
    def overrides(self) -> dict[str, object]:
        """The settings of the command line."""
        return {n: v.value for n, v in self.values.items() if v.source == COMMAND_LINE}

    def preview(self) -> BaseConfig:
        """Return the config for inspection, not for training nor changes; any machine can build it.

        Raises:
            BadValue: a setting or a combination is refused.
        """
        return self._preview

    @cached_property
    def _preview(self) -> BaseConfig:
        return self.build(output_dir=Path("runs"), seed=0, use_cpu=True, bf16=False)

    def build(self, *, output_dir: Path, seed: int, **machine: object) -> BaseConfig:
        """Return the family's config object, as the trainer takes it.

        Raises:
            BadValue: a value is out of range or contradicts another one.
        """
        cls = self.family.config_class()
        ours = {"output_dir": str(output_dir), "seed": seed, "disable_tqdm": True}
        name = f"{self.paper.slug}-{self.arm}-{seed}"
        quiet = {"report_to": "none", "save_total_limit": 2, "run_name": name}
        # Any: `resolve` has checked the types of the fields
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


def divide_batch(
    config: Mapping[str, object], processes: int, micro_batches: Sequence[str] = ()
) -> dict[str, int]:
    """Return the batch sizes of one process such that all processes together have the whole batch.

    The micro-batches are divided among the processes, with the fields of `micro_batches` counted as
    micro-batches too. If an update has too few micro-batches, their rows are divided.

    Raises:
        BadValue: the number of processes divides neither.
    """
    steps = {"gradient_accumulation_steps": 1, **dict.fromkeys(micro_batches)}
    batch = {"per_device_train_batch_size": 8}
    for defaults in (steps, batch):
        sizes = {n: v for n, v in (defaults | dict(config)).items() if n in defaults and v}
        if all(isinstance(v, int) and v % processes == 0 for v in sizes.values()):
            return {name: int(str(v)) // processes for name, v in sizes.items()}
    raise BadValue(
        f"processes={processes} divides neither {' and '.join(steps)} nor "
        "per_device_train_batch_size: choose a number that does"
    )
