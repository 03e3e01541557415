"""Claims of a paper: each a sentence with the comparison that tests it, or why none can."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import cast

from core.claims.comparison import Comparison, Side
from core.claims.laws import Law, Simulated
from core.claims.measures import START
from core.claims.needs import BadClaim, Need

# In the order in which pages show them.
MECHANISMS = (
    "learning signal", "clipping", "sequence ratios", "length", "entropy", "groups without signal",
    "baselines", "several rewards", "KL", "off-policy correction", "reuse of rollouts", "sampling",
    "data",
)  # fmt: skip


@dataclass(frozen=True)
class Untestable:
    """The reason why a claim cannot be tested here, in place of its test."""

    reason: str

    def __str__(self) -> str:
        return f"untestable: {self.reason}"


@dataclass(frozen=True, eq=False)
class Claim:
    """A sentence of the paper and its test, under a name (`slug`) that is unique in the paper.

    `mechanism` is the part of a method that the claim is about, one of `MECHANISMS`, by which pages
    group claims. It is no part of the claim's digest.

    Raises:
        BadClaim: the test is neither a comparison of two sides nor `Untestable`.
    """

    slug: str
    statement: str
    test: Comparison | Untestable
    mechanism: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        test = cast(object, self.test)  # a slip such as `a > b > c` makes something else
        if not isinstance(test, Comparison | Untestable):
            raise BadClaim(
                f"claim {self.slug}: its test is {test!r}; expected a comparison such as "
                "late(m).of(a) > late(m).of(b), or Untestable(reason)"
            )

    @property
    def needs(self) -> tuple[tuple[str, Need], ...]:
        """Pairs of an arm, or `start`, and what its record must hold."""
        return self.test.needs if isinstance(self.test, Comparison) else ()

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that must have run before this claim can be tested."""
        return tuple(dict.fromkeys(arm for arm, _ in self.needs if arm != START))


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
