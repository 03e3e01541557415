"""A claim of a paper: a sentence, and the comparison that tests it or why nothing can."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import cast

from core.claims.comparison import Comparison, Side
from core.claims.laws import Law, Simulated
from core.claims.measures import START
from core.claims.needs import BadClaim, Need


@dataclass(frozen=True)
class Untestable:
    """Why a claim cannot be tested here."""

    reason: str

    def __str__(self) -> str:
        return f"untestable: {self.reason}"


@dataclass(frozen=True, eq=False)
class Claim:
    """A sentence of the paper, and what it comes to.

    Raises:
        BadClaim: the test is neither a comparison of two sides nor `Untestable`.
    """

    slug: str
    statement: str
    test: Comparison | Untestable

    def __post_init__(self) -> None:
        test = cast(object, self.test)  # what Python makes of a slip may be anything
        if not isinstance(test, Comparison | Untestable):
            raise BadClaim(
                f"claim {self.slug}: its test is {test!r}; expected a comparison such as "
                "late(m).of(a) > late(m).of(b), or Untestable(reason)"
            )

    @property
    def needs(self) -> tuple[tuple[str, Need], ...]:
        """What the record of each arm must hold; the arm may be `start`."""
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
    """What a claim names and its paper, or the project, does not have.

    `scores` are those that the paper's evaluations give.
    """
    for arm, need in claim.needs:
        if arm not in (START, *arms):
            yield f"no arm {arm!r}"
        if need.kind in ("score", "samples") and need.name not in benchmarks:
            yield f"no benchmark {need.name!r}"
        elif need.kind == "score" and scores and need not in scores:
            metric, mode, temperature = need.how
            by = f" by {need.by}" if need.by else ""
            yield (
                f"no evaluation asks for {metric} of {need.name!r} in the mode {mode} at "
                f"temperature {temperature:g}{by}"
            )
        if arm == START and need.kind == "curve":
            yield f"the starting model is not trained, so it has no curve {need.name!r}"
    if isinstance(claim.test, Comparison):
        for side in (claim.test.left, claim.test.right):
            yield from lost_functions(side)


def lost_functions(side: Side) -> Iterator[str]:
    """Functions that a side calls and nobody has."""
    if isinstance(side, Law | Simulated):
        try:
            side.call.find()
        except BadClaim as error:
            yield str(error.args[0])
    for part in side.parts:
        yield from lost_functions(part)
