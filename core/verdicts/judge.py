"""Judges a paper's claims from the records of its runs: effect, interval, p and a verdict."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isclose
from statistics import mean
from typing import Any

from core.claims import Claim, Comparison, MissingMeasure, Need, Runs, Side, Untestable
from core.claims.measures import is_validation
from core.families.family import SEEN
from core.families.table import find_family
from core.paper import Paper
from core.records.record import Record
from core.settings.run_settings import BENCHMARK, HELD_OUT, RunSettings
from core.verdicts.conjunctions import Judged, weakest
from eval.stats.comparisons import holm
from eval.stats.seeds import LEVEL, Look

FINITE = 1e300  # stands for infinity, which JSON has no word for
UNEQUAL = (">", ">=", "<", "<=")
ROOM = 3.0  # points between a percentage and its end, 0 or 100, in which there is none to move
NO_NUMBERS: Mapping[str, None] = dict.fromkeys(
    ("effect", "low", "high", "p", "holm", "level", "freedom", "seen")
)


def judge(paper: Paper, runs: Iterable[Record], looks: Sequence[Look] = ()) -> list[dict[str, Any]]:
    """The verdict on every claim; one that these runs cannot test is `undecided` and says why.

    With `looks` a claim is judged at one after the other, by its first so many seeds, until one
    decides it; without, once over all seeds that its arms share. Beside each p stands Holm's.
    """
    by_arm: dict[str, dict[int, Record]] = {}
    for run in runs:
        by_arm.setdefault(run["arm"], {})[run["seed"]] = run
    verdicts = [judge_claim(claim, by_arm, looks) for claim in paper.claims]
    tested = [verdict for verdict in verdicts if verdict["p"] is not None]
    for verdict, p in zip(tested, holm([verdict["p"] for verdict in tested]), strict=True):
        verdict["holm"] = p
    return verdicts


def judge_claim(
    claim: Claim, by_arm: Mapping[str, Mapping[int, Record]], looks: Sequence[Look] = ()
) -> dict[str, Any]:
    """One claim: by its law, by its simulation, or over the seeds that all its arms ran."""
    test = claim.test
    if isinstance(test, Untestable):
        return untested(claim, test.reason, "untestable")
    if test.kind == "exact":
        return exact_verdict(claim, test)
    if test.kind == "simulated":
        seeds = range(len(test.values(())[0]))
        reason = f"simulated with {len(seeds)} seeds"
        return {**seeds_verdict(claim, weakest(test, (), LEVEL), seeds), "reason": reason}
    arms = claim.arms or tuple(by_arm)[:1]
    missing = [arm for arm in arms if arm not in by_arm]
    if missing or not arms:
        return untested(claim, f"no run of {' or '.join(missing or ['any arm'])} (use --claims)")
    seeds = sorted(seed for seed in by_arm[arms[0]] if all(seed in by_arm[arm] for arm in arms))
    if not seeds:
        return untested(claim, f"{' and '.join(arms)} share no seed")
    if looks and len(seeds) < looks[0].seeds:
        return untested(claim, f"{len(seeds)} of the {looks[0].seeds} seeds of the first look")
    cases = {seed: {arm: by_arm[arm][seed] for arm in arms} for seed in seeds}
    try:
        return looked_at(claim, test, cases, looks or [Look(len(seeds))])
    except MissingMeasure as error:
        return untested(claim, str(error.args[0]))


def looked_at(
    claim: Claim, test: Comparison, cases: Mapping[int, Runs], looks: Sequence[Look]
) -> dict[str, Any]:
    """The verdict of the first look that decides, or of the last that these seeds allow."""
    verdict: dict[str, Any] = {}
    for number, look in enumerate(looks, 1):
        seeds = list(cases)[: look.seeds]
        if len(seeds) < look.seeds:
            break
        chosen = [cases[seed] for seed in seeds]
        found = weakest(test, chosen, look.level)
        verdict = seeds_verdict(claim, found, seeds)
        verdict["runs"] = sorted({run["digest"] for case in chosen for run in case.values()})
        if any(is_validation(need) for _, need in test.needs):
            verdict["reason"] += "; the held-out problems are the same for all seeds"
        if len(looks) > 1:
            verdict["reason"] += f", look {number} of {len(looks)}"
        if blocked := no_room(test, chosen) or out_of_reach(found, chosen):
            verdict |= {"verdict": "no room", "reason": blocked}
        if verdict["verdict"] != "undecided":
            break
    return verdict


def seeds_verdict(claim: Claim, judged: Judged, seeds: Sequence[int]) -> dict[str, Any]:
    """A verdict over seeds as it is stored.

    A look has only its share of the 5 %, so its p counts for as much more: `p` is below 0.05 where
    the verdict is decided, at whichever look.
    """
    n, found, level = len(seeds), judged.effect, judged.level
    reason = (
        f"paired over {n} seeds, {100 * (1 - level):.4g} % interval of the mean difference, "
        f"{degrees(found.freedom)} degrees of freedom"
    )
    if found.low is None:
        reason = f"all {n} seeds differ by the same: no spread to make an interval of"
    if n < 2:
        reason = "one seed shows no spread: at least two are needed (use --claims)"
    if isinstance(claim.test, Comparison) and (among := len(claim.test.each)) > 1:
        reason += f"; of {among} comparisons that must all hold the one that holds least"
    return {
        **described(claim, judged.test, judged.left, judged.right),
        **NO_NUMBERS,
        "effect": found.effect,
        "low": found.low,
        "high": found.high,
        "p": None if found.p is None else min(1.0, found.p * LEVEL / level),
        "level": level,
        "freedom": found.freedom,
        "seen": found.seen,
        "verdict": found.verdict,
        "reason": reason,
        "seeds": list(seeds),
        "runs": [],
    }


def degrees(freedom: float | None) -> str:
    """Degrees of freedom in words; beyond a thousand Student's distribution is the normal one."""
    return "no" if freedom is None else f"{freedom:.3g}" if freedom < 1000 else "over 1,000"


def no_room(test: Comparison, cases: Sequence[Runs]) -> str:
    """That a percentage stood at its end before training and stands there after it, if one does.

    Such a measure could not move, so a comparison with it says nothing about the training.
    """
    for side in (test.left, test.right):
        for what, before, after in side.stands(cases):
            for end in (0.0, 100.0):
                if max(abs(before - end), abs(after - end)) <= ROOM:
                    return f"{what} stands at {before:.1f} % before training, {after:.1f} % after"
    return ""


def out_of_reach(judged: Judged, cases: Sequence[Runs]) -> str:
    """That what is claimed to gain less stood too near to 100 % to gain as much.

    However the training had gone, the other side would have gained more.
    """
    test = judged.test
    sides = [(test.left, mean(judged.left)), (test.right, mean(judged.right))]
    if test.relation not in UNEQUAL:
        return ""
    (_, most), (side, gained) = sides if test.relation in (">", ">=") else sides[::-1]
    for what, before, after in side.stands(cases):
        if isclose(gained, after - before) and 100 - before < most:
            could = f"it could gain {100 - before:.1f} points, and the other side gained {most:.1f}"
            return f"{what} stands at {before:.1f} % before training: {could}"
    return ""


def exact_verdict(claim: Claim, test: Comparison) -> dict[str, Any]:
    """The verdict of a law: held if the relation holds in every case, else refuted."""
    left, right = test.values(())
    wrong = sum(not test.holds(a, b) for a, b in zip(left, right, strict=True))
    left, right = ([min(max(value, -FINITE), FINITE) for value in side] for side in (left, right))
    differences = [a - b for a, b in zip(left, right, strict=True)]
    cases = f"{len(left)} case{'s' if len(left) > 1 else ''}"
    return {
        **described(claim, test, left, right),
        **NO_NUMBERS,
        "effect": sum(differences) / len(differences),
        "low": min(differences),
        "high": max(differences),
        "verdict": "refuted" if wrong else "held",
        "reason": f"exact: fails in {wrong} of {cases}" if wrong else f"exact: holds in {cases}",
        "seeds": [],
        "runs": [],
    }


def untested(claim: Claim, reason: str, verdict: str = "undecided") -> dict[str, Any]:
    """A claim that these runs, or any, say nothing about."""
    return {
        **described(claim, claim.test, (), ()),
        **NO_NUMBERS,
        "verdict": verdict,
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
    families = [find_family(paper.family_of(arm)) for arm in paper.arms or (paper.main_arm,)]
    names = {name for family in families for name in family.probabilities}
    own = {name for family in families for name in (*family.own_answers, *family.sampler_gaps)}
    return names | {name + SEEN for name in names} | own


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
        case "curve" if need.name.startswith(BENCHMARK):
            suite = need.name.removeprefix(BENCHMARK)
            watched = suite in settings.watched_suites
            return "" if watched else f"{suite} is not among heldout_benchmarks"
        case "samples" if need.name not in sampled:
            return f"no samples of {need.name}"
        case "score" if need.name not in settings.suites:
            return f"{need.name} is not scored"
        case "score" if settings.eval_modes and (mode := need.how[1]) not in settings.eval_modes:
            return f"{need.name} is not answered in the mode {mode}, which is not among eval_modes"
        case "probabilities" if need.name not in quantities:
            return f"probabilities are not measured ({need.name})"
        case "probabilities" if not settings.heldout_problems:
            return f"no held-out problems to measure {need.name} on (heldout_problems=0)"
        case _:
            return ""


def described(
    claim: Claim,
    test: Comparison | Untestable,
    left: Sequence[float],
    right: Sequence[float],
) -> dict[str, Any]:
    """What a verdict says about its claim: the statement, what was compared and both values."""
    sides: dict[str, Any] = {
        "relation": "",
        "margin": 0.0,
        "equal": 0.0,
        "unit": "",
        "left": None,
        "right": None,
    }
    if isinstance(test, Comparison):
        sides = {
            "relation": test.relation,
            "margin": test.margin,
            "equal": test.equal,
            "unit": "points" if test.percent else "",
            "left": described_side(test.left, left),
            "right": described_side(test.right, right),
        }
    return {"id": claim.slug, "statement": claim.statement, **sides}


def described_side(side: Side, values: Sequence[float]) -> dict[str, Any]:
    """What a side measures, on which arm, and what came out."""
    measure, arm = side.label
    return {"measure": measure, "arm": arm, "values": list(values)}
