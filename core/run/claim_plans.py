"""The plan of a claim: its gates, the effect it is expected to show, and the seeds that takes."""

from dataclasses import asdict, dataclass

from core.claims import Claim, Comparison, Expected
from core.paper import Paper
from eval.stats.power import seeds_needed
from eval.stats.seeds import BOUNDS, LOOKS


@dataclass(frozen=True, kw_only=True)
class ClaimPlan:
    """The gates of a claim that runs test, each with its bound, and its expected effect.

    Attributes:
        claim: The name of the claim.
        gates: The verdict below each gate, and the condition that must hold.
        expects: The expected effect and its spread over seeds, None if the claim declares none.
        seeds: The number of seeds that decide that effect in 4 of 5 cases; None without an expected
            effect, or if no number up to 1,000 does.
    """

    claim: str
    gates: list[tuple[str, str]]
    expects: Expected | None
    seeds: int | None

    def as_data(self) -> dict[str, object]:
        """Return the plan as JSON."""
        return asdict(self)


def claim_plans(paper: Paper) -> list[ClaimPlan]:
    """Return the plan of each claim of a paper that runs test."""
    return [
        ClaimPlan(
            claim=claim.slug,
            gates=[(gate.below, str(gate.test)) for gate in claim.gates],
            expects=claim.expects,
            seeds=seeds_for(claim, claim.test),
        )
        for claim in paper.claims
        if isinstance(claim.test, Comparison) and claim.test.kind == "runs"
    ]


def seeds_for(claim: Claim, test: Comparison) -> int | None:
    """Return the number of seeds that the expected effect of a claim takes.

    The level is that of the strictest look.
    """
    if claim.expects is None:
        return None
    effect, spread = claim.expects.effect, claim.expects.spread
    bound = BOUNDS[test.relation] * test.margin
    distance = test.margin - abs(effect) if test.relation == "~=" else abs(effect - bound)
    return seeds_needed(distance, spread, min(look.level for look in LOOKS))
