"""What a paper module is made of: settings with passages, printed numbers, arms and claims."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from core.claims.measures import Side
from core.paper.printed import Layout, Reported

Reward: TypeAlias = Callable[..., list[float | None]]
Relation: TypeAlias = Literal[">", ">=", "<"]


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
class Paper:
    """One paper: what differs from its base, what it printed, what must hold.

    `config` are groups made by `cite`; `arms` map an arm's name to what it changes, the first one
    is the paper's own method; `profiles` hold this paper's settings at each scale. `layouts` are
    of tables that a plain grid of their numbers would not show as they are printed. `trl_index` are
    the fields that TRL's paper index sets for this paper, for comparison alone.
    """

    slug: str
    title: str
    arxiv: str
    family: str
    config: Sequence[tuple[Setting, ...]]
    rewards: tuple[Reward, ...] = ()
    model: str
    data: str
    benchmarks: tuple[str, ...] = ()
    base: str | None = None
    reported: tuple[Reported, ...] = ()
    layouts: tuple[Layout, ...] = ()
    arms: Mapping[str, Mapping[str, object]] = field(
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
