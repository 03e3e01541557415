"""The parts of a paper module: settings with passages, evaluations, and the paper itself."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from core.claims import Claim
from core.paper.printed import Layout, Reported
from eval.names import check_name, check_slug

Reward: TypeAlias = Callable[..., list[float | None]]
TRL = "trl"  # stands for a paper: what TRL's paper index sets for the other one
# What an arm may say besides the settings that it changes.
AT, ONLY_AT, SAME_AS, FAMILY, PER_SEED = "at", "only_at", "same_as", "family", "per_seed"
APART = 1_000_000  # between the seeds of the preparations of one seed


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The value of a field and the passage that states it."""

    name: str
    value: object
    passage: str


def cite(passage: str, **settings: object) -> tuple[Setting, ...]:
    """Return the settings that one passage states; `"unstated"` for values that nobody printed."""
    return tuple(
        Setting(name=name, value=value, passage=passage) for name, value in settings.items()
    )


def in_regime(regime: str, **changes: object) -> dict[str, object]:
    """Return an arm that exists at the small scale alone: a regime with these changes of it."""
    return {ONLY_AT: "cpu", AT: {"cpu": {"regime": regime, **changes}}}


def at_rates(
    name: str, regime: str, rates: Sequence[float], **changes: object
) -> dict[str, dict[str, object]]:
    """Return arms of a regime that differ in their learning rate, `NAME-lr-RATE` each.

    The names are in the order of the rates, as a claim's `lowest` or `highest` takes them.
    """
    return {
        f"{name}-lr-{rate:g}": in_regime(regime, learning_rate=rate, **changes) for rate in rates
    }


@dataclass(frozen=True)
class Because:
    """The reason why fields differ from TRL's paper index, or a remark if there are no fields."""

    reason: str
    fields: tuple[str, ...]


def because(reason: str, *fields: str) -> Because:
    """Return a reason, a whole sentence, for fields that differ from TRL's paper index."""
    return Because(reason, fields)


@dataclass(frozen=True)
class Evaluation:
    """An evaluation of a paper: benchmarks, mode of answering and sampling.

    Empty `benchmarks` are all of the paper's. `samples` answers to each problem are sampled at
    `temperature`; 0 is greedy. `top_k` keeps the most likely tokens before `top_p` does, None keeps
    all of them. `metrics` are scored besides those of every evaluation with as many samples, such
    as `maj@5` of 40; `eval.stats.summary` lists them. `by` are fields of the problems by which
    scores are also split. `scale` is the one scale at which it is done; empty for all. `passage` is
    where the paper states this, "unstated" if nowhere.
    """

    benchmarks: tuple[str, ...] = ()
    mode: str = "cot"
    samples: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int | None = None
    metrics: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    scale: str = ""
    passage: str = ""

    def __str__(self) -> str:
        sampled = (
            f"{self.samples} samples at temperature {self.temperature:g}, top_p {self.top_p:g}"
        )
        sampled += f", top_k {self.top_k}" if self.top_k else ""
        how = sampled if self.temperature else "greedily"
        how += f", also {', '.join(self.metrics)}" if self.metrics else ""
        by = f", by {' and '.join(self.by)}" if self.by else ""
        scale = f", at {self.scale} only" if self.scale else ""
        where = f" ({self.passage})" if self.passage else ""
        names = ", ".join(self.benchmarks) or "all of these"
        return f"{names}: {self.mode}, {how}{by}{scale}{where}"


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper: settings that differ from its base, printed numbers, arms and claims.

    `arxiv` is its number there; a paper that is not there has a `url`.

    `config` are groups made by `cite`; `evaluations` say how models answer the `benchmarks`.
    `arms` map an arm's name to what it changes, the first one is the paper's own method;
    `profiles` hold this paper's settings at each scale. An arm wins over them; what it changes at
    one scale only stands in its `"at": {scale: {...}}`, and an arm with `"only_at": scale` exists
    at that scale alone. Two arms may not be one training;
    `"same_as": arm`, in an arm or in its `at`, says that these two are meant to be, as are arms
    that score different `weights` of one. An arm of another `"family"` has that one's profile, and
    of the paper the model, data, rewards and benchmarks, and as many samples as its main arm.
    `preparations` are trainings that come before,
    written like arms: a `model` of `"prepared:NAME"` is what one of them made, with seed 0, or with
    the run's own seed if it says `"per_seed": True`; with `"per_seed": n` it is the n-th of
    several, each of which has a seed of its own for each seed of a run. `layouts` are of tables
    that a plain grid of their numbers would not show as they are printed. `trl_index` are the
    fields that TRL's paper index sets for this paper, for comparison alone; `trl_reasons` say why
    others stand here. `not_run` says what a run would need that is not here; the paper is planned
    and its laws are judged all the same.

    Raises:
        BadValue: the slug, or the name of an arm or a preparation, cannot be that of a folder.
    """

    slug: str
    title: str
    arxiv: str = ""
    url: str = ""
    family: str
    config: Sequence[tuple[Setting, ...]] = ()
    rewards: tuple[Reward, ...] = ()
    model: str
    data: str = ""
    benchmarks: tuple[str, ...] = ()
    evaluations: tuple[Evaluation, ...] = (Evaluation(),)
    base: str | None = None
    reported: tuple[Reported, ...] = ()
    layouts: tuple[Layout, ...] = ()
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
    trl_reasons: tuple[Because, ...] = ()
    not_run: str = ""

    def __post_init__(self) -> None:
        check_slug(self.slug)
        for kind, names in {"arm": self.arms, "preparation": self.preparations}.items():
            for name in names:
                check_name(kind, name)

    def evaluations_at(self, scale: str) -> tuple[Evaluation, ...]:
        """Return the evaluations that are done at a scale."""
        return tuple(each for each in self.evaluations if each.scale in ("", scale))

    @property
    def place(self) -> str:
        """The arXiv number as "arXiv NUMBER", or the URL of a paper that is not there."""
        return f"arXiv {self.arxiv}" if self.arxiv else self.url

    @property
    def address(self) -> str:
        """The URL at which the paper can be read."""
        return f"https://arxiv.org/abs/{self.arxiv}" if self.arxiv else self.url

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The cited settings in the order in which they are written."""
        return tuple(setting for group in self.config for setting in group)

    @property
    def names_of_settings(self) -> frozenset[str]:
        """The names of all settings of the paper, its profiles, arms and preparations."""
        trainings = self._arms_and_preparations
        changes = [
            self.changes(arm, scale) for arm in trainings for scale in (None, *self.scales(arm))
        ]
        groups = [{setting.name for setting in self.settings}, *self.profiles.values(), *changes]
        return frozenset[str]().union(*groups)

    def claimed_arms(self, scale: str, without: Collection[str] = ()) -> tuple[str, ...]:
        """Return the main arm, then every other arm that a claim compares at a scale.

        Args:
            scale: The name of the scale.
            without: The names of claims that are not to be tested.
        """
        compared = [arm for claim in self.claims if claim.slug not in without for arm in claim.arms]
        arms = dict.fromkeys([self.main_arm, *compared])
        return tuple(arm for arm in arms if self.exists_at(arm, scale))

    def exists_at(self, arm: str, scale: str) -> bool:
        """Return whether an arm exists at a scale; all do but those that name one scale alone."""
        return self._entries(arm, None).get(ONLY_AT, scale) == scale

    @property
    def main_arm(self) -> str:
        """The arm that is the paper's own method: the first."""
        return next(iter(self.arms), "main")

    def changes(self, arm: str, scale: str | None = None) -> dict[str, object]:
        """Return the settings that an arm changes at all scales, or those it adds at one scale."""
        declared = self._entries(arm, scale)
        return {
            name: value
            for name, value in declared.items()
            if name not in (AT, ONLY_AT, SAME_AS, FAMILY, PER_SEED)
        }

    def family_of(self, arm: str) -> str:
        """Return the family whose trainer an arm uses."""
        return str(self._entries(arm, None).get(FAMILY, self.family))

    def preparation_seed(self, preparation: str, seed: int) -> int:
        """Return the seed of a preparation for the runs of a seed; 0 if all seeds share it."""
        per_seed = self._entries(preparation, None).get(PER_SEED, False)
        return seed + (cast(int, per_seed) - 1) * APART if per_seed else 0

    def scales(self, arm: str) -> tuple[str, ...]:
        """Return the scales at which an arm changes more than elsewhere."""
        return tuple(self._entries_at(arm))

    def same_as(self, arm: str, scale: str) -> str | None:
        """Return the arm that this arm declares itself equal to at a scale, None if none."""
        same_arm = {**self._entries(arm, None), **self._entries(arm, scale)}.get(SAME_AS)
        return None if same_arm is None else str(same_arm)

    @property
    def _arms_and_preparations(self) -> Mapping[str, Mapping[str, object]]:
        return {**self.preparations, **self.arms}

    def _entries(self, arm: str, scale: str | None) -> Mapping[str, object]:
        return (
            self._arms_and_preparations.get(arm, {})
            if scale is None
            else self._entries_at(arm).get(scale, {})
        )

    def _entries_at(self, arm: str) -> Mapping[str, Mapping[str, object]]:
        return cast(
            Mapping[str, Mapping[str, object]], self._arms_and_preparations.get(arm, {}).get(AT, {})
        )
