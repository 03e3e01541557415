"""Judges a paper's claims from the records of its runs: effect, interval, p and a verdict."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from core.claims.measures import (
    START,
    ExactVariance,
    Gain,
    GainAtK,
    Late,
    MissingMeasure,
    Score,
    Side,
)
from core.paper import Claim, Paper
from core.run.records.record import Record
from core.run.settings import HELD_OUT, RunSettings
from eval.stats.comparisons import seed_effect

RELATIONS: Mapping[str, Callable[[float, float, float], bool]] = {
    ">": lambda left, right, _: left > right,
    "<": lambda left, right, _: left < right,
    ">=": lambda left, right, margin: left >= right - margin,
}


def judge(paper: Paper, runs: Iterable[Record]) -> list[dict[str, Any]]:
    """The verdict on every claim; one that these runs cannot test is `undecided` and says why."""
    by_arm: dict[str, dict[int, Record]] = {}
    for run in runs:
        by_arm.setdefault(run["arm"], {})[run["seed"]] = run
    return [judge_claim(claim, by_arm) for claim in paper.claims]


def judge_claim(claim: Claim, by_arm: Mapping[str, Mapping[int, Record]]) -> dict[str, Any]:
    """One claim: exact if it needs no run, else compared over the seeds that all its arms ran."""
    if isinstance(claim.left.measure, ExactVariance) and isinstance(
        claim.right.measure, ExactVariance
    ):
        return exact_verdict(claim, claim.left.measure.values(), claim.right.measure.values())
    arms = [arm for arm in claim.arms if arm != START]
    missing = [arm for arm in arms if arm not in by_arm]
    if missing:
        return untested(claim, f"no run of {' or '.join(missing)} (use --claims)")
    seeds = sorted(seed for seed in by_arm[arms[0]] if all(seed in by_arm[arm] for arm in arms))
    if not seeds:
        return untested(claim, f"{' and '.join(arms)} share no seed")
    used = [by_arm[arm][seed] for arm in arms for seed in seeds]
    try:
        left = [_read(claim.left, by_arm, arms, seed) for seed in seeds]
        right = [_read(claim.right, by_arm, arms, seed) for seed in seeds]
    except MissingMeasure as error:
        return untested(claim, str(error.args[0]))
    return seeds_verdict(claim, left, right, used, seeds)


def seeds_verdict(
    claim: Claim,
    left: Sequence[float],
    right: Sequence[float],
    runs: Sequence[Record],
    seeds: Sequence[int],
) -> dict[str, Any]:
    """The verdict from one value per seed on either side, paired; the effect is left - right."""
    differences = [a - b for a, b in zip(left, right, strict=True)]
    found = seed_effect(differences, margin=claim.margin, op=claim.relation)
    reason = f"paired over {len(seeds)} seeds, 95 % interval of the mean difference"
    if found.low is None:
        reason = f"all {len(seeds)} seeds differ by the same: no spread to make an interval of"
    if len(seeds) < 2:
        reason = "one seed shows no spread: at least two are needed (use --claims --seeds 3)"
    return {
        **described(claim, left, right),
        "effect": found.effect,
        "low": found.low,
        "high": found.high,
        "p": found.p,
        "verdict": found.verdict,
        "reason": reason,
        "seeds": list(seeds),
        "runs": sorted({run["digest"] for run in runs}),
    }


def exact_verdict(claim: Claim, left: Sequence[float], right: Sequence[float]) -> dict[str, Any]:
    """The verdict of exact sums: held if the relation holds in every case, else refuted."""
    holds = RELATIONS[claim.relation]
    wrong = [
        i for i, (a, b) in enumerate(zip(left, right, strict=True)) if not holds(a, b, claim.margin)
    ]
    finite = [min(value, 1e300) for value in left]  # infinite marks an unsound estimator
    differences = [a - b for a, b in zip(finite, right, strict=True)]
    reason = f"exact sums over {len(left)} pairs of categorical policies"
    return {
        **described(claim, finite, right),
        "effect": sum(differences) / len(differences),
        "low": min(differences),
        "high": max(differences),
        "p": None,
        "verdict": "refuted" if wrong else "held",
        "reason": f"{reason}; fails in {len(wrong)} of them" if wrong else reason,
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
    lacks = {
        claim.slug: [lack for side in (claim.left, claim.right) for lack in lacking(side, settings)]
        for claim in paper.claims
    }
    return {slug: "; ".join(dict.fromkeys(found)) for slug, found in lacks.items() if found}


def lacking(side: Side, settings: RunSettings) -> list[str]:
    """What a side of a claim reads and these settings do not measure."""
    measure = side.measure
    sampled = list(settings.suites)[: settings.at_k_benchmarks]
    if isinstance(measure, Late | Gain) and measure.metric == HELD_OUT:
        return [] if settings.heldout_problems else ["no held-out problems (heldout_problems=0)"]
    if isinstance(measure, GainAtK):
        return [f"no samples of {name}" for name in measure.benchmarks if name not in sampled]
    if isinstance(measure, Score):
        return [f"{n} is not scored" for n in measure.benchmarks if n not in settings.suites]
    return []


def described(claim: Claim, left: Sequence[float], right: Sequence[float]) -> dict[str, Any]:
    """What a verdict says about its claim: the statement, both sides and their values."""
    return {
        "id": claim.slug,
        "statement": claim.statement,
        "relation": claim.relation,
        "margin": claim.margin,
        "left": {"measure": str(claim.left.measure), "arm": claim.left.arm, "values": list(left)},
        "right": {
            "measure": str(claim.right.measure),
            "arm": claim.right.arm,
            "values": list(right),
        },
    }


def _read(
    side: Side, by_arm: Mapping[str, Mapping[int, Record]], arms: Sequence[str], seed: int
) -> float:
    """A side's value for a seed; the starting model is scored in the record of the other side."""
    if side.arm is None or isinstance(side.measure, ExactVariance):
        raise MissingMeasure(f"{side}: an exact value cannot be compared with a run's")
    arm = arms[0] if side.arm == START else side.arm
    return side.measure.read(by_arm[arm][seed], side.arm)
