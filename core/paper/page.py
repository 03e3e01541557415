"""What a paper module is made of: settings with passages, printed numbers, arms and claims."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

from core.claims.measures import Side

Reward: TypeAlias = Callable[..., list[float | None]]
Relation: TypeAlias = Literal[">", ">=", "<"]
Number: TypeAlias = "float | Marked | None"
PREPARED = "prepared:"  # before the name of a preparation, in place of a model's name
# What an arm may say besides the settings that it changes.
AT, SAME_AS, FAMILY = "at", "same_as", "family"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One field's value and the passage that states it."""

    name: str
    value: object
    passage: str


def cite(passage: str, **settings: object) -> tuple[Setting, ...]:
    """The settings that one passage states; `"unstated"` for a value that nobody printed."""
    return tuple(
        Setting(name=name, value=value, passage=passage) for name, value in settings.items()
    )


@dataclass(frozen=True)
class Marked:
    """A printed number whose metric is not its table's."""

    value: float
    metric: str


def marked(metric: str, value: float) -> Marked:
    """A cell printed with another metric than the rest of its table, e.g. `maj@32`."""
    return Marked(value, metric)


@dataclass(frozen=True, kw_only=True)
class Reported:
    """One printed number: whose, on what, how measured (percent), and where it is printed.

    `block` is the part of the table it stands in (`cot`, `tool`, or `text` outside any table),
    `source` whether the system's weights are `open` or `closed`.
    """

    system: str
    size: str | None
    block: str
    source: str
    benchmark: str
    metric: str
    value: float
    passage: str


def printed(
    passage: str,
    benchmarks: Sequence[str],
    metric: str,
    rows: Mapping[str, Sequence[Number]] | Mapping[tuple[str, str], Sequence[Number]],
    *,
    block: str = "cot",
    source: str = "open",
) -> tuple[Reported, ...]:
    """The numbers of one printed block, row by row; `None` is a cell the paper leaves empty.

    A row's key is the system's name, or the pair of its name and its size.

    Raises:
        ValueError: a row has another number of cells than there are benchmarks.
    """
    numbers: list[Reported] = []
    for row, cells in rows.items():
        system, size = (row, None) if isinstance(row, str) else row
        if len(cells) != len(benchmarks):
            raise ValueError(f"{passage}: {system} has {len(cells)} cells, not {len(benchmarks)}")
        for benchmark, cell in zip(benchmarks, cells, strict=True):
            if cell is None:
                continue
            number = cell if isinstance(cell, Marked) else Marked(cell, metric)
            numbers.append(
                Reported(
                    system=system,
                    size=size,
                    block=block,
                    source=source,
                    benchmark=benchmark,
                    metric=number.metric,
                    value=number.value,
                    passage=passage,
                )
            )
    return tuple(numbers)


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper as two sides, each a measure on an arm, and the relation it asserts.

    `margin` is in the measure's unit: `>` must exceed it, `>=` may fall short by it.
    """

    slug: str
    statement: str
    left: Side
    relation: Relation
    right: Side
    margin: float = 0.0

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that must have run before this claim can be tested."""
        named = (self.left.arm, self.right.arm)
        return tuple(dict.fromkeys(arm for arm in named if arm is not None))


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What a paper asks of its models: benchmarks, the mode of answering, and how it is drawn.

    Without `benchmarks` it is on all of the paper's. `samples` answers to each problem are drawn at
    a `temperature`, 0 being greedy.
    """

    benchmarks: tuple[str, ...] = ()
    mode: str = "cot"
    samples: int = 1
    temperature: float = 0.0
    top_p: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Paper:
    """One paper: what differs from its base, what it printed, what must hold.

    `config` are groups made by `cite`; `evaluations` say how models answer the `benchmarks`.
    `arms` map an arm's name to what it changes, the first one is the paper's own method;
    `profiles` hold this paper's settings at each scale. An arm wins over them; what it changes at
    one scale only stands in its `"at": {scale: {...}}`. Two arms may not be one training;
    `"same_as": arm`, in an arm or in its `at`, says that these two are meant to be. An arm of
    another `"family"` has that one's profile, and of the paper the model, data, rewards and
    benchmarks, and as many samples as its main arm. `preparations` are trainings that come before,
    written like arms: a `model` of `"prepared:NAME"` is what one of them made. `trl_index` are the
    fields that TRL's paper index sets for this paper, for comparison alone.
    """

    slug: str
    title: str
    arxiv: str
    family: str
    config: Sequence[tuple[Setting, ...]] = ()
    rewards: tuple[Reward, ...] = ()
    model: str
    data: str = ""
    benchmarks: tuple[str, ...] = ()
    evaluations: tuple[Evaluation, ...] = (Evaluation(),)
    base: str | None = None
    reported: tuple[Reported, ...] = ()
    arms: Mapping[str, Mapping[str, object]] = field(
        default_factory=dict[str, Mapping[str, object]]
    )
    preparations: Mapping[str, Mapping[str, object]] = field(
        default_factory=dict[str, Mapping[str, object]]
    )
    claims: tuple[Claim, ...] = ()
    profiles: Mapping[str, Mapping[str, object]] = field(
        default_factory=dict[str, Mapping[str, object]]
    )

    trl_index: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All cited settings in the order in which they are written."""
        return tuple(setting for group in self.config for setting in group)

    @property
    def main_arm(self) -> str:
        """The arm that is the paper's own method: the first."""
        return next(iter(self.arms), "main")

    def changes(self, arm: str, scale: str | None = None) -> dict[str, object]:
        """The settings that an arm changes at all scales, or what it adds at this one."""
        said = self._said(arm, scale)
        return {name: value for name, value in said.items() if name not in (AT, SAME_AS, FAMILY)}

    def family_of(self, arm: str) -> str:
        """The family whose trainer an arm uses."""
        return str(self._said(arm, None).get(FAMILY, self.family))

    def scales(self, arm: str) -> tuple[str, ...]:
        """The scales at which an arm adds to what it changes."""
        return tuple(self._at(arm))

    def same_as(self, arm: str, scale: str) -> str | None:
        """The arm that this one says to be the same training as, at a scale."""
        said = {**self._said(arm, None), **self._said(arm, scale)}.get(SAME_AS)
        return None if said is None else str(said)

    @property
    def _changed(self) -> Mapping[str, Mapping[str, object]]:
        return {**self.preparations, **self.arms}

    def _said(self, arm: str, scale: str | None) -> Mapping[str, object]:
        return self._changed.get(arm, {}) if scale is None else self._at(arm).get(scale, {})

    def _at(self, arm: str) -> Mapping[str, Mapping[str, object]]:
        return cast(Mapping[str, Mapping[str, object]], self._changed.get(arm, {}).get(AT, {}))
