"""Reasons why a claim cannot be tested by the runs of its paper: what they do not measure."""

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from core.claims import START, Claim, Need, Untestable
from core.families.family import KL_ON_BENCHMARK, KL_TO_START, SEEN
from core.families.table import find_family
from core.paper import Paper
from core.settings.layers import arguments_of
from core.settings.resolve import resolve
from core.settings.resolved import Resolved
from core.settings.run_settings import BENCHMARK, HELD_OUT, HELD_OUT_KL, HELD_OUT_NLL, RunSettings

SAME: Mapping[str, RunSettings] = MappingProxyType({})


def untested_claims(resolved: Resolved, arguments: tuple[str, ...]) -> dict[str, str]:
    """Return why a claim cannot be tested with these settings of one arm and those of the others.

    Args:
        resolved: One arm of the paper.
        arguments: The settings of the command line, which act on every arm that reads them.
    """
    paper, scale = resolved.paper, resolved.scale
    by_arm = {
        arm: resolve(
            paper,
            arm=arm,
            scale=scale,
            arguments=arguments_of(paper, arm, arguments, (resolved.arm, *paper.arms)),
        ).run
        for arm in paper.arms
        if paper.exists_at(arm, scale)
    }
    return cannot_test(paper, resolved.run, by_arm)


def cannot_test(
    paper: Paper, settings: RunSettings, by_arm: Mapping[str, RunSettings] = SAME
) -> dict[str, str]:
    """Return why runs with these settings cannot test a claim, by the name of the claim.

    Claims that they can test are left out. No run is needed to tell.

    Args:
        paper: whose claims are meant.
        settings: of the runs.
        by_arm: the settings of arms that have others, such as those of another world.
    """
    quantities = quantities_of(paper)
    reasons = {claim.slug: lacking(claim, settings, quantities, by_arm) for claim in paper.claims}
    return {slug: "; ".join(dict.fromkeys(lines)) for slug, lines in reasons.items() if lines}


def quantities_of(paper: Paper) -> set[str]:
    """Return the quantities of probabilities that the families of a paper's arms measure."""
    families = [find_family(paper.family_of(arm)) for arm in paper.arms or (paper.main_arm,)]
    of_rows = set[str]().union(
        *({*f.probabilities, *f.claimed_probabilities, *f.pair_quantities} for f in families)
    )
    sampled = (
        {
            *f.own_answers,
            *f.kept_tokens,
            *f.sampler_gaps,
            *f.solution_quantities,
            *f.text_quantities,
            *f.teacher_quantities,
        }
        for f in families
    )
    return of_rows | {name + SEEN for name in of_rows} | set().union(*sampled)


def lacking(
    claim: Claim,
    settings: RunSettings,
    quantities: Collection[str],
    by_arm: Mapping[str, RunSettings] = SAME,
) -> list[str]:
    """Return why a claim cannot be tested: its own reason, or what is not measured; else empty.

    Args:
        claim: the claim.
        settings: of the runs.
        quantities: of probabilities, which are measured if there are held-out problems.
        by_arm: as of `cannot_test`. The starting model is scored with the claim's first arm.
    """
    if isinstance(claim.test, Untestable):
        return [claim.test.reason]
    first = next(iter(claim.arms), START)
    needs = [(first if arm == START else arm, need) for arm, need in claim.needs]
    lines = [
        UNMEASURED[need.kind](need, by_arm.get(arm, settings), quantities)
        for arm, need in needs
        if need.kind in UNMEASURED
    ]
    return [line for line in lines if line]


def unmeasured_curve(need: Need, settings: RunSettings, quantities: Collection[str]) -> str:
    """Return why runs with these settings do not log a curve; empty if they do."""
    del quantities
    if need.name == HELD_OUT and not settings.heldout_problems:
        return "no held-out problems (heldout_problems=0)"
    if need.name == HELD_OUT_KL and not settings.heldout_kl:
        return "the divergence from the start is not logged (heldout_kl=false)"
    if need.name == HELD_OUT_NLL and not settings.heldout_nll:
        return "the loss of held-out completions is not logged (heldout_nll=false)"
    suite = need.name.removeprefix(BENCHMARK)
    if need.name.startswith(BENCHMARK) and suite not in settings.watched_suites:
        return f"{suite} is not among heldout_benchmarks"
    return ""


def unmeasured_samples(need: Need, settings: RunSettings, quantities: Collection[str]) -> str:
    """Return why runs with these settings draw no samples of a suite; empty if they do."""
    del quantities
    sampled = list(settings.suites)[: settings.at_k_benchmarks]
    return "" if need.name in sampled else f"no samples of {need.name}"


def unmeasured_score(need: Need, settings: RunSettings, quantities: Collection[str]) -> str:
    """Return why runs with these settings do not score a suite; empty if they do."""
    del quantities
    if need.name not in settings.suites:
        return f"{need.name} is not scored"
    if settings.eval_modes and (mode := need.how[1]) not in settings.eval_modes:
        return f"{need.name} is not answered in the mode {mode}, which is not among eval_modes"
    if need.by and settings.eval_temperature is not None:
        return (
            f"{need.name} is not split by {need.by}: eval_temperature="
            f"{settings.eval_temperature:g} takes the place of the paper's evaluations"
        )
    return ""


def unmeasured_quantity(need: Need, settings: RunSettings, quantities: Collection[str]) -> str:
    """Return why runs with these settings do not measure a quantity; empty if they do."""
    measured = KL_TO_START if need.name.startswith(KL_ON_BENCHMARK) else need.name
    if measured not in quantities:
        return f"probabilities are not measured ({need.name})"
    if not settings.heldout_problems:
        return f"no held-out problems to measure {need.name} on (heldout_problems=0)"
    return ""


# By kind of need; a setting is recorded in every run.
UNMEASURED: Mapping[str, Callable[[Need, RunSettings, Collection[str]], str]] = {
    "curve": unmeasured_curve,
    "samples": unmeasured_samples,
    "score": unmeasured_score,
    "probabilities": unmeasured_quantity,
}
