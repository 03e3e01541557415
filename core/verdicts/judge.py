"""Judges a paper's claims from the records of its runs: effect, interval, p and a verdict."""

from collections.abc import Iterable, Mapping, Sequence

from core.claims import Claim, Comparison, MissingMeasure, Runs, Untestable
from core.claims.arms import DEVIATION_SEEDS, reads_deviation
from core.claims.gates import CheckedGate
from core.claims.laws import simulations_in
from core.paper import Paper
from core.records.record import Record
from core.records.verdict_row import VerdictRow
from core.verdicts.compared_answers import with_wins
from core.verdicts.conjunctions import JudgedComparison, judge_conjunction
from core.verdicts.replications import number_of_starts
from core.verdicts.room import reason_without_room
from core.verdicts.run_worlds import world_of
from core.verdicts.shared_problems import has_shared_held_out_problems
from core.verdicts.verdict_rows import (
    NO_NUMBERS,
    claim_fields,
    exact_verdict,
    gate_row,
    missed_verdict,
    untested_verdict,
)
from eval.stats.comparisons import holm
from eval.stats.seeds import LEVEL, Look
from eval.stats.stopping import WORTHWHILE, conditional_power


def judge(
    paper: Paper,
    runs: Iterable[Record],
    looks: Sequence[Look] = (),
    missed: Mapping[str, str] | None = None,
) -> list[VerdictRow]:
    """Return the verdict on each claim of a paper, with Holm's p beside each p.

    Args:
        paper: whose claims are judged.
        runs: records of its runs. A claim that these runs cannot test is `undecided` and has the
            reason.
        looks: the numbers of seeds at which a claim is judged in turn, until a look decides it.
            Without looks a claim is judged once, over all seeds that its arms share. Claims in a
            world of its own base are judged at the same number of that world's looks, on the seeds
            that it judges.
        missed: what claims miss a gate on the trial seed, as "inert: " or "unhealthy: " and the
            number. Such a claim gets this verdict if the runs cannot test it.
    """
    by_arm: dict[str, dict[int, Record]] = {}
    for run in runs:
        if is_judged(run):
            by_arm.setdefault(run["arm"], {})[run["seed"]] = run
    verdicts = [
        judge_claim(claim, by_arm, looks, (missed or {}).get(claim.slug, ""))
        for claim in paper.claims
    ]
    tested = [(verdict, p) for verdict in verdicts if (p := verdict["p"]) is not None]
    for (verdict, _), p in zip(tested, holm([p for _, p in tested]), strict=True):
        verdict["holm"] = p
    return verdicts


def is_judged(run: Record) -> bool:
    """Return whether the world of a run judges its seed; the pocket world judges all seeds."""
    world = world_of(run)
    return not world.is_bare or run["seed"] in world.seeds


def judge_claim(
    claim: Claim,
    by_arm: Mapping[str, Mapping[int, Record]],
    looks: Sequence[Look] = (),
    missed: str = "",
) -> VerdictRow:
    """Judge one claim: by its law, by its simulation, or over the seeds that its arms share.

    Args:
        claim: the claim.
        by_arm: records of runs by arm and seed.
        looks: as of `judge`.
        missed: the gate that the claim misses on the trial seed, as of `judge`.
    """
    test = claim.test
    if isinstance(test, Untestable):
        return untested_verdict(claim, test.reason, "untestable")
    if test.kind == "exact":
        return exact_verdict(claim, test)
    if test.kind == "simulated":
        return simulated_verdict(claim, test)
    arms = claim.arms or tuple(by_arm)[:1]
    cases = shared_cases(arms, by_arm)
    worlds = {
        world.name: world for case in cases.values() for world in map(world_of, case.values())
    }
    if len(worlds) > 1:
        return untested_verdict(claim, f"its arms are in different worlds: {' and '.join(worlds)}")
    if looks and any(world.is_bare for world in worlds.values()):
        looks = next(iter(worlds.values())).looks[: len(looks)]
    if lack := lacking_runs(arms, by_arm, len(cases), looks):
        return missed_verdict(claim, missed) if missed else untested_verdict(claim, lack)
    try:
        compared = with_wins(claim, cases)
        return judge_at_looks(claim, test, compared, looks or [Look(len(cases))])
    except MissingMeasure as error:
        return untested_verdict(claim, str(error.args[0]))


def shared_cases(
    arms: Sequence[str], by_arm: Mapping[str, Mapping[int, Record]]
) -> dict[int, dict[str, Record]]:
    """Return the records by seed and arm, for the seeds that all these arms ran, in order."""
    if not arms or not all(arm in by_arm for arm in arms):
        return {}
    seeds = sorted(seed for seed in by_arm[arms[0]] if all(seed in by_arm[arm] for arm in arms))
    return {seed: {arm: by_arm[arm][seed] for arm in arms} for seed in seeds}


def lacking_runs(
    arms: Sequence[str],
    by_arm: Mapping[str, Mapping[int, Record]],
    shared_seeds: int,
    looks: Sequence[Look],
) -> str:
    """Return which runs are missing to compare these arms; empty if none is.

    Args:
        arms: the arms that the claim compares.
        by_arm: records of runs by arm and seed.
        shared_seeds: the number of seeds that all arms ran.
        looks: the first of them needs this many seeds or more.
    """
    missing = [arm for arm in arms if arm not in by_arm]
    if missing or not arms:
        return f"no run of {' or '.join(missing or ['any arm'])} (use --claims)"
    if not shared_seeds:
        return f"{' and '.join(arms)} share no seed"
    if looks and shared_seeds < looks[0].seeds:
        return f"{shared_seeds} of the {looks[0].seeds} seeds of the first look"
    return ""


def judge_at_looks(
    claim: Claim, test: Comparison, cases: Mapping[int, Runs], looks: Sequence[Look]
) -> VerdictRow:
    """Return the verdict of the first look that decides, or of the last with enough seeds.

    Args:
        claim: the claim.
        test: its comparison, over runs.
        cases: the records of each seed.
        looks: in the order of their seeds.
    """
    verdict = untested_verdict(claim, "no look has its seeds")
    for number, look in enumerate(looks, 1):
        seeds = list(cases)[: look.seeds]
        if len(seeds) < look.seeds:
            break
        place = f", look {number} of {len(looks)}" if len(looks) > 1 else ""
        look_cases = {seed: cases[seed] for seed in seeds}
        verdict = judge_seeds(claim, test, look_cases, look, looks[number:], place)
        if verdict["verdict"] != "undecided":
            break
    return verdict


def judge_seeds(
    claim: Claim,
    test: Comparison,
    cases: Mapping[int, Runs],
    look: Look,
    later: Sequence[Look] = (),
    place: str = "",
) -> VerdictRow:
    """Judge a claim over the records of these seeds, its gates before its effect.

    Args:
        claim: the claim.
        test: its comparison, over runs.
        cases: the records of each seed.
        look: the level of the test.
        later: the looks after this one.
        place: which look it is, to end the reason with.

    Raises:
        MissingMeasure: a record lacks what a gate reads, or, if all gates are passed, a side.
    """
    runs = [*cases.values()]
    checked = [gate.check(runs) for gate in claim.gates]
    try:
        verdict = effect_verdict(claim, test, cases, look, later)
    except MissingMeasure:
        if all(gate.passes for gate in checked):
            raise
        verdict = untested_verdict(claim, "")
        verdict["seeds"] = [*cases]
    verdict["runs"] = sorted({record["digest"] for case in runs for record in case.values()})
    verdict["gates"] = [gate_row(gate) for gate in checked]
    return behind_gates(claim, verdict, checked, place, later)


def behind_gates(
    claim: Claim,
    verdict: VerdictRow,
    checked: Sequence[CheckedGate],
    place: str,
    later: Sequence[Look],
) -> VerdictRow:
    """Return what a claim's gates leave of the verdict on its effect."""
    missed = [gate for gate in checked if not gate.passes]
    if claim.describes:
        reason = claim.describes
        return {**verdict, "verdict": "described", "reason": reason, "p": None, "seen": None}
    if verdict["verdict"] == "no room":
        return verdict
    if missed:
        reason = "; ".join(gate.reason for gate in missed)
        return {**verdict, "verdict": missed[0].gate.below, "reason": reason}
    power = verdict.get("power")
    further = "" if power is None else f"; {power_reason(power, later)}"
    return {**verdict, "reason": verdict["reason"] + partly_passed(checked) + place + further}


def effect_verdict(
    claim: Claim,
    test: Comparison,
    cases: Mapping[int, Runs],
    look: Look,
    later: Sequence[Look],
) -> VerdictRow:
    """Return the verdict on the effect of a claim over these seeds, whatever its gates say.

    The arguments are those of `judge_seeds`.
    """
    runs = [*cases.values()]
    comparison = judge_conjunction(test, runs, look.level)
    verdict = seeds_verdict(claim, comparison, [*cases])
    if any(has_shared_held_out_problems(need, runs) for _, need in test.needs):
        verdict["reason"] += f"; {shared_problems_reason(comparison.shared)}"
    if blocked := reason_without_room(comparison, runs):
        verdict["verdict"], verdict["reason"] = "no room", blocked
    if later and verdict["verdict"] == "undecided" and len(cases) > 1:
        verdict["power"] = power_at(comparison, runs, look, later)
    if len(cases) < DEVIATION_SEEDS and any(map(reads_deviation, (test.left, test.right))):
        verdict["verdict"], verdict["reason"] = "undecided", deviation_reason(len(cases))
        verdict["power"] = float(any(look.seeds >= DEVIATION_SEEDS for look in later))
    return verdict


def partly_passed(checked: Iterable[CheckedGate]) -> str:
    """Say which gates hold of the mean over the seeds and not of every seed; empty if none."""
    partly = [gate for gate in checked if gate.passing_seeds < len(gate.values)]
    return "".join(f"; {gate.condition}, {gate.seeds}" for gate in partly)


def shared_problems_reason(shared: float | None) -> str:
    """Say that all seeds have the same held-out problems, and if their variance is counted."""
    counted = "is not counted" if shared is None else "is in the interval"
    return f"the held-out problems are the same for all seeds, and their variance {counted}"


def deviation_reason(n: int) -> str:
    """Say that `n` seeds are too few for a claim about a deviation over seeds."""
    return f"a deviation over seeds is judged on {DEVIATION_SEEDS} seeds or more, there are {n}"


def power_at(
    comparison: JudgedComparison, cases: Sequence[Runs], look: Look, later: Sequence[Look]
) -> float:
    """Return the probability that later looks decide the comparison that decides a claim."""
    share = comparison.level / look.level  # of the level of a look, where several must hold
    return conditional_power(
        comparison.differences,
        [Look(later_look.seeds, later_look.level * share) for later_look in later],
        comparison.test.margin,
        comparison.test.relation,
        shared=comparison.shared or 0.0,
        equal=comparison.test.equal(comparison.right),
        starts=number_of_starts(cases),
    )


def power_reason(power: float, later: Sequence[Look]) -> str:
    """Say how likely more seeds decide, and if that is too unlikely for more to be run."""
    seeds = " or ".join(f"{look.seeds:g}" for look in later)
    stopped = (
        "" if power >= WORTHWHILE else f", fewer than {100 * WORTHWHILE:.0f} %: they are not run"
    )
    return f"{seeds} seeds would decide in {100 * power:.0f} % of cases{stopped}"


def simulated_verdict(claim: Claim, test: Comparison) -> VerdictRow:
    """Judge a claim by the recorded values of its simulations, over their seeds."""
    try:
        seeds = range(len(test.values(())[0]))
    except MissingMeasure as error:
        return untested_verdict(claim, str(error.args[0]))
    verdict = seeds_verdict(claim, judge_conjunction(test, (), LEVEL), seeds)
    is_timed = any(side.timed for side in (*simulations_in(test.left), *simulations_in(test.right)))
    times = f"measured {len(seeds)} times on one machine"
    verdict["reason"] = times if is_timed else f"simulated with {len(seeds)} seeds"
    return verdict


def seeds_verdict(claim: Claim, comparison: JudgedComparison, seeds: Sequence[int]) -> VerdictRow:
    """Return the verdict of a comparison over seeds as it is stored.

    A look has only a share of the 5 % level. Its p is multiplied by 5 % over that share, so that
    `p` is below 0.05 exactly where the verdict is decided, at any look.
    """
    effect, level = comparison.effect, comparison.level
    p = None if effect.p is None else min(1.0, effect.p * LEVEL / level)
    return {
        **claim_fields(claim, comparison.test, comparison.left, comparison.right),
        **NO_NUMBERS,
        "effect": effect.effect,
        "low": effect.low,
        "high": effect.high,
        "p": p,
        "level": level,
        "freedom": effect.freedom,
        "seen": effect.detectable,
        "verdict": effect.verdict,
        "reason": seeds_reason(claim, comparison, len(seeds)),
        "seeds": list(seeds),
        "runs": [],
    }


def seeds_reason(claim: Claim, comparison: JudgedComparison, n: int) -> str:
    """Say how a verdict over `n` seeds was computed."""
    effect, starts = comparison.effect, len(comparison.replications)
    shared_starts = f", averaged over the seeds of each of {starts} starts" if starts < n else ""
    if n < 2:
        reason = "one seed shows no spread: at least two are needed (use --claims)"
    elif effect.low is None:
        reason = f"all {n} seeds differ by the same: no spread to make an interval of"
    else:
        reason = (
            f"paired over {n} seeds{shared_starts}, {100 * (1 - comparison.level):.4g} % interval "
            "of the mean difference, "
            f"{effect.freedom} degrees of freedom"
        )
    if isinstance(claim.test, Comparison) and (among := len(claim.test.each)) > 1:
        reason += f"; of {among} comparisons that must all hold the one that holds least"
    return reason
