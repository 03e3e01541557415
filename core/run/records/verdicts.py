"""Judges a paper's claims from the records of its runs: effect, interval, p and a verdict."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from core.claims import Claim, Comparison, MissingMeasure, Need, Side, Untestable
from core.families.family import SEEN
from core.families.table import find_family
from core.paper import Paper
from core.run.records.record import Record
from core.run.settings import HELD_OUT, RunSettings
from eval.stats.comparisons import seed_effect

FINITE = 1e300  # stands for infinity, which JSON has no word for


def judge(paper: Paper, runs: Iterable[Record]) -> list[dict[str, Any]]:
    """The verdict on every claim; one that these runs cannot test is `undecided` and says why."""
    by_arm: dict[str, dict[int, Record]] = {}
    for run in runs:
        by_arm.setdefault(run["arm"], {})[run["seed"]] = run
    return [judge_claim(claim, by_arm) for claim in paper.claims]


def judge_claim(claim: Claim, by_arm: Mapping[str, Mapping[int, Record]]) -> dict[str, Any]:
    """One claim: by its law, by its simulation, or over the seeds that all its arms ran."""
    test = claim.test
    if isinstance(test, Untestable):
        return untested(claim, test.reason)
    if test.kind == "exact":
        return exact_verdict(claim, test)
    if test.kind == "simulated":
        left, right = test.values(())
        return seeds_verdict(claim, test, (left, right), (), range(len(left)))
    arms = claim.arms or tuple(by_arm)[:1]
    missing = [arm for arm in arms if arm not in by_arm]
    if missing or not arms:
        return untested(claim, f"no run of {' or '.join(missing or ['any arm'])} (use --claims)")
    seeds = sorted(seed for seed in by_arm[arms[0]] if all(seed in by_arm[arm] for arm in arms))
    if not seeds:
        return untested(claim, f"{' and '.join(arms)} share no seed")
    cases = [{arm: by_arm[arm][seed] for arm in arms} for seed in seeds]
    try:
        values = test.values(cases)
    except MissingMeasure as error:
        return untested(claim, str(error.args[0]))
    used = [record for case in cases for record in case.values()]
    return seeds_verdict(claim, test, values, used, seeds)


def seeds_verdict(
    claim: Claim,
    test: Comparison,
    values: tuple[Sequence[float], Sequence[float]],
    runs: Sequence[Record],
    seeds: Sequence[int],
) -> dict[str, Any]:
    """The verdict from one value per seed on either side, paired; the effect is left - right."""
    differences = [a - b for a, b in zip(*values, strict=True)]
    found = seed_effect(differences, margin=test.margin, op=test.relation)
    reason = f"paired over {len(seeds)} seeds, 95 % interval of the mean difference"
    if found.low is None:
        reason = f"all {len(seeds)} seeds differ by the same: no spread to make an interval of"
    if len(seeds) < 2:
        reason = "one seed shows no spread: at least two are needed (use --claims --seeds 3)"
    return {
        **described(claim, *values),
        "effect": found.effect,
        "low": found.low,
        "high": found.high,
        "p": found.p,
        "verdict": found.verdict,
        "reason": reason,
        "seeds": list(seeds),
        "runs": sorted({run["digest"] for run in runs}),
    }


def exact_verdict(claim: Claim, test: Comparison) -> dict[str, Any]:
    """The verdict of a law: held if the relation holds in every case, else refuted."""
    left, right = test.values(())
    wrong = sum(not test.holds(a, b) for a, b in zip(left, right, strict=True))
    left, right = ([min(max(value, -FINITE), FINITE) for value in side] for side in (left, right))
    differences = [a - b for a, b in zip(left, right, strict=True)]
    cases = f"{len(left)} case{'s' if len(left) > 1 else ''}"
    return {
        **described(claim, left, right),
        "effect": sum(differences) / len(differences),
        "low": min(differences),
        "high": max(differences),
        "p": None,
        "verdict": "refuted" if wrong else "held",
        "reason": f"exact: fails in {wrong} of {cases}" if wrong else f"exact: holds in {cases}",
        "seeds": [],
        "runs": [],
    }


def untested(claim: Claim, reason: str) -> dict[str, Any]:
    """A claim that these runs say nothing about."""
    numbers: dict[str, Any] = dict.fromkeys(("effect", "low", "high", "p"))
    return {
        **described(claim, (), ()),
        **numbers,
        "verdict": "undecided",
        "reason": reason,
        "seeds": [],
        "runs": [],
    }


def cannot_test(paper: Paper, settings: RunSettings) -> dict[str, str]:
    """The claims that runs with these settings say nothing about, and why; known before any run."""
    names = quantities_of(paper)
    lacks = {claim.slug: lacking(claim, settings, names) for claim in paper.claims}
    return {slug: "; ".join(dict.fromkeys(found)) for slug, found in lacks.items() if found}


def quantities_of(paper: Paper) -> set[str]:
    """The quantities of probabilities that the families of a paper's arms measure."""
    families = (find_family(paper.family_of(arm)) for arm in paper.arms or (paper.main_arm,))
    names = {name for family in families for name in family.probabilities}
    return names | {name + SEEN for name in names}


def lacking(claim: Claim, settings: RunSettings, quantities: Collection[str]) -> list[str]:
    """Why a claim cannot be tested: its own reason, or what these settings do not measure.

    `quantities` of probabilities are measured where there are held-out problems.
    """
    if isinstance(claim.test, Untestable):
        return [claim.test.reason]
    return [lack for _, need in claim.needs if (lack := unmet(need, settings, quantities))]


def unmet(need: Need, settings: RunSettings, quantities: Collection[str]) -> str:
    """What these settings do not measure; empty where they do."""
    sampled = list(settings.suites)[: settings.at_k_benchmarks]
    match need.kind:
        case "curve" if need.name == HELD_OUT and not settings.heldout_problems:
            return "no held-out problems (heldout_problems=0)"
        case "samples" if need.name not in sampled:
            return f"no samples of {need.name}"
        case "score" if need.name not in settings.suites:
            return f"{need.name} is not scored"
        case "probabilities" if need.name not in quantities:
            return f"probabilities are not measured ({need.name})"
        case "probabilities" if not settings.heldout_problems:
            return f"no held-out problems to measure {need.name} on (heldout_problems=0)"
        case _:
            return ""


def described(claim: Claim, left: Sequence[float], right: Sequence[float]) -> dict[str, Any]:
    """What a verdict says about its claim: the statement, both sides and their values."""
    sides: dict[str, Any] = {"relation": "", "margin": 0.0, "left": None, "right": None}
    if isinstance(claim.test, Comparison):
        test = claim.test
        sides = {
            "relation": test.relation,
            "margin": test.margin,
            "left": described_side(test.left, left),
            "right": described_side(test.right, right),
        }
    return {"id": claim.slug, "statement": claim.statement, **sides}


def described_side(side: Side, values: Sequence[float]) -> dict[str, Any]:
    """What a side measures, on which arm, and what came out."""
    measure, arm = side.label
    return {"measure": measure, "arm": arm, "values": list(values)}
