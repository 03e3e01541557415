"""Claims of a paper: each a sentence with the comparison that tests it, or why none can."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from math import isfinite
from typing import cast

from core.claims.comparison import Comparison, Number, Side
from core.claims.gates import Gate, health
from core.claims.laws import Law, Simulated
from core.claims.measures import START
from core.claims.needs import BadClaim, Need

# In the order in which pages show them.
MECHANISMS = (
    "learning signal", "clipping", "sequence ratios", "length", "entropy", "groups without signal",
    "baselines", "several rewards", "KL", "off-policy correction", "reuse of rollouts", "sampling",
    "data", "preferences", "adapters", "averaged weights", "distillation",
)  # fmt: skip


@dataclass(frozen=True)
class Untestable:
    """The reason why a claim cannot be tested here, in place of its test."""

    reason: str

    def __str__(self) -> str:
        return f"untestable: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The effect that a claim is expected to show, left - right, and its spread over seeds.

    Raises:
        BadClaim: a number is not finite, or the spread is not positive.
    """

    effect: float
    spread: float

    def __post_init__(self) -> None:
        if not (isfinite(self.effect) and isfinite(self.spread) and self.spread > 0):
            raise BadClaim(f"{self}: expected a finite effect and a spread above 0")


@dataclass(frozen=True, eq=False, repr=False)
class Claim:
    """A sentence of the paper and its test, under a name (`slug`) that is unique in the paper.

    A claim that runs test has gates. A gate is judged on the mean over the seeds, before the
    interval of the effect is read.

    Attributes:
        mechanism: The part of a method that the claim is about, one of `MECHANISMS`, by which pages
            group claims. It is no part of the claim's digest.
        acts: Comparisons of a side with a number, which hold if the mechanism acts in these runs,
            such as `late("clip_ratio/high_mean").of("dapo") >= 0.01`, or in their data by a law. If
            one fails, the claim is `inert`.
        healthy: The arms that must not end more than 1.5 points of accuracy below their start; if
            one does, the claim is `unhealthy`. The default, None, stands for every compared arm,
            but for none if the claim compares the accuracy of an arm with that of its start. An arm
            that ends below its start according to the claim is left out, with the reason beside it.
        expects: The expected effect, from which `repro plan` computes the number of seeds. A claim
            with `acts` or `expects` is not changed after its runs have begun.
        describes: The reason why runs could hardly come out otherwise. The claim is then
            `described` by its numbers and has neither gates nor a verdict.

    Raises:
        BadClaim: the test is neither a comparison of two sides nor `Untestable`, or a gate is no
            comparison of runs or of a law with a number.
    """

    slug: str
    statement: str
    test: Comparison | Untestable
    mechanism: str = field(default="", repr=False)
    acts: Comparison | tuple[Comparison, ...] = ()
    healthy: tuple[str, ...] | None = None
    expects: Expected | None = None
    describes: str = ""

    def __repr__(self) -> str:
        """Return the fields that are set: the digest of a claim does not know of the others."""
        values = [(f, getattr(self, f.name)) for f in fields(self) if f.repr]
        fields_set = [(f.name, v) for f, v in values if f.default is MISSING or v is not f.default]
        return f"Claim({', '.join(f'{name}={value!r}' for name, value in fields_set)})"

    def __post_init__(self) -> None:
        test = cast(object, self.test)  # a slip such as `a > b > c` makes something else
        if not isinstance(test, Comparison | Untestable):
            raise BadClaim(
                f"claim {self.slug}: its test is {test!r}; expected a comparison such as "
                "late(m).of(a) > late(m).of(b), or Untestable(reason)"
            )
        by_runs = isinstance(test, Comparison) and test.kind == "runs"
        has_plan = self.is_planned or self.healthy is not None
        if has_plan and not by_runs:
            raise BadClaim(
                f"claim {self.slug}: acts, healthy and expects are for claims that runs test"
            )
        if self.describes and (has_plan or not by_runs):
            raise BadClaim(f"claim {self.slug}: only a comparison of runs without gates describes")
        for act in self.act_comparisons:
            check_act(self.slug, act)

    @property
    def is_planned(self) -> bool:
        """True if it declares gates of its mechanism or an expected effect."""
        return bool(self.act_comparisons) or self.expects is not None

    @property
    def act_comparisons(self) -> tuple[Comparison, ...]:
        """The comparisons that hold if the mechanism of the claim acts."""
        return self.acts if isinstance(self.acts, tuple) else (self.acts,)

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The gates of a claim that runs test, in the order in which they are judged."""
        if not isinstance(self.test, Comparison) or self.test.kind != "runs" or self.describes:
            return ()
        if (arms := self.healthy) is None:
            arms = () if is_about_start(self.test) else arms_in(self.test.needs)
        return (*(Gate("inert", act) for act in self.act_comparisons), *map(health, arms))

    @cached_property
    def needs(self) -> tuple[tuple[str, Need], ...]:
        """Pairs of an arm, or `start`, and what its record must hold."""
        tests = (self.test, *self.act_comparisons)
        pairs = [need for test in tests if isinstance(test, Comparison) for need in test.needs]
        return tuple(dict.fromkeys(pairs))

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that must have run before this claim can be tested."""
        return arms_in(self.needs)


def arms_in(pairs: Iterable[tuple[str, Need]]) -> tuple[str, ...]:
    """Return the distinct arms of pairs of an arm and a need, without the starting model."""
    return tuple(dict.fromkeys(arm for arm, _ in pairs if arm != START))


def is_about_start(test: Comparison) -> bool:
    """Return whether a comparison sets a percentage of an arm against that of its start.

    Such a claim is refuted by an arm that ends below its start.
    """
    starts = [{arm for arm, _ in side.needs} == {START} for side in (test.left, test.right)]
    return test.percent and any(starts)


def is_bound(act: Comparison) -> bool:
    """Return whether a comparison bounds a side of runs or a law by a number, without a margin."""
    return act.kind in ("runs", "exact") and isinstance(act.right, Number) and not act.margin


def check_act(slug: str, act: object) -> None:
    """Raise `BadClaim` unless `act` compares runs or a law with a number, without a margin."""
    if not isinstance(act, Comparison) or not is_bound(act):
        raise BadClaim(
            f"claim {slug}: acts={act}: expected comparisons of a side with a number, such as "
            'late("clip_ratio/high_mean").of("dapo") >= 0.01'
        )


def problems(
    claim: Claim,
    arms: Collection[str],
    benchmarks: Collection[str],
    scores: Collection[Need] = (),
) -> Iterator[str]:
    """Yield a line for each thing that a claim names and that does not exist.

    Args:
        claim: the claim.
        arms: of its paper.
        benchmarks: that the paper's evaluations use.
        scores: that the paper's evaluations give; empty to skip that check.
    """
    for arm in claim.healthy or ():
        if arm not in arms:
            yield f"no arm {arm!r}, which must stay healthy"
    for arm, need in claim.needs:
        if arm not in (START, *arms):
            yield f"no arm {arm!r}"
        if need.kind in ("score", "samples") and need.name not in benchmarks:
            yield f"no benchmark {need.name!r}"
        elif need.kind == "score" and scores and need not in scores:
            yield no_evaluation(need)
        if arm == START and need.kind == "curve":
            yield f"the starting model is not trained, so it has no curve {need.name!r}"
    if isinstance(claim.test, Comparison):
        for side in (claim.test.left, claim.test.right):
            yield from lost_functions(side)


def no_evaluation(need: Need) -> str:
    """Say that no evaluation of the paper gives a score that a claim needs."""
    metric, mode, temperature = need.how
    by = f" by {need.by}" if need.by else ""
    return (
        f"no evaluation asks for {metric} of {need.name!r} in the mode {mode} at "
        f"temperature {temperature:g}{by}"
    )


def lost_functions(side: Side) -> Iterator[str]:
    """Yield a line for each function that a side calls and that cannot be imported."""
    if isinstance(side, Law | Simulated):
        try:
            side.call.find()
        except BadClaim as error:
            yield str(error.args[0])
    for part in side.parts:
        yield from lost_functions(part)
