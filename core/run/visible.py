"""The smallest effect of each claim that its runs can decide."""

from core.claims import Claim, Comparison
from core.claims.measures import is_validation
from core.families.worlds import world_of_regime
from core.paper import Paper
from core.settings.run_settings import RunSettings
from eval.sets.benchmarks import find_benchmark
from eval.stats.seeds import Look, detectable
from eval.stats.simulated import expected_spread


def visible_effects(paper: Paper, settings: RunSettings) -> dict[str, list[float]]:
    """Return the smallest true effect that each look decides in 4 of 5 cases, by claim.

    Effects are in percentage points; claims about other numbers are not included. Arms are assumed
    to vary over seeds as in `reports/rates.md`. The looks are those of the settings' world.
    """
    looks = world_of_regime(settings.regime).looks
    counts = {claim.slug: problems_of(claim, settings) for claim in paper.claims}
    return {slug: [seen_at(look, n) for look in looks] for slug, n in counts.items() if n}


def seen_at(look: Look, problems: int) -> float:
    """Return the effect that one look decides."""
    error = expected_spread(problems) / look.seeds**0.5
    return detectable(error, look.seeds - 1, look.level)


def problems_of(claim: Claim, settings: RunSettings) -> int:
    """Return the number of problems that decide a claim about percentages.

    It is 0 for other claims and for suites that are not scored.
    """
    test = claim.test
    if not isinstance(test, Comparison) or not test.percent:
        return 0
    measured_needs = {need for _, need in test.needs}
    if any(is_validation(need) for need in measured_needs):
        return settings.heldout_problems
    limits = {"score": settings.eval_limit, "samples": settings.at_k_limit}
    return sum(
        min(find_benchmark(settings.suites[need.name]).n, limits[need.kind] or 10**9)
        for need in measured_needs
        if need.kind in limits and need.name in settings.suites
    )
