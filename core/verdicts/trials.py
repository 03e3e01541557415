"""Learning-rate trials: trainings of an arm at several rates, with a seed of their own.

The best rate is chosen by the held-out accuracy at the end. No trial is scored on a benchmark and
no verdict uses the seed of trials, so neither test problems nor judged seeds affect the choice.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from core.claims import START, Comparison
from core.paper import Paper
from core.records.fair import best_of
from core.records.record import Record, new_record
from core.records.schema import TrialRow
from core.settings.effective import effective
from core.settings.resolve import at_factor
from core.settings.resolved import Resolved
from core.settings.run_settings import HELD_OUT, TRIAL_SEED
from core.stages.chain import Chain
from eval.errors import BadValue


def compared_arms(paper: Paper) -> set[str]:
    """Return the arms that claims compare, with each other or with the starting model."""
    return {arm for claim in paper.claims for arm in claim.arms}


def untried_rates(paper: Paper, arms: Sequence[Resolved]) -> Iterator[str]:
    """Yield the claims that compare an arm with its start though no trial chooses its rate.

    A rate that all arms of a regime share is fair among them. It says nothing about training
    itself, which may lose at that rate and gain at another. Scales without trials are left out, and
    so are gates, which only say when a comparison of arms counts.
    """
    untried = {
        arm.arm
        for arm in arms
        if arm.family.profiles.get(arm.scale, {}).get("rate_factors") and not arm.run.rate_factors
    }
    for claim in paper.claims:
        if isinstance(claim.test, Comparison) and START in {arm for arm, _ in claim.test.needs}:
            for arm in untried.intersection(claim.arms):
                yield (
                    f"claim {claim.slug} compares arm {arm} with its start, and no trial chooses "
                    "its learning rate: give the arm rate_factors, such as (1/3, 1.0, 3.0)"
                )


def trials_of(resolved: Resolved) -> list[Resolved]:
    """Return an arm at each learning rate that is tried.

    There are no trials, and the list is empty, if the command line gives a learning rate or if no
    problems are held out to choose by.

    Raises:
        BadValue: the command line asks for trials (`rate_factors`) though there can be none.
    """
    run = resolved.run
    rate_is_set = "learning_rate" in resolved.overrides
    if resolved.family.trains and run.heldout_problems and not rate_is_set:
        return [at_factor(resolved, factor) for factor in run.rate_factors]
    if run.rate_factors and "rate_factors" in resolved.overrides:
        why = "learning_rate is given" if rate_is_set else "no problems are held out to choose by"
        raise BadValue(f"rate_factors={run.rate_factors}: {why}; leave one of the two out")
    return []


def rate_of(resolved: Resolved) -> float:
    """Return the learning rate of an arm's training."""
    return resolved.preview().learning_rate


def check_trials(arms: Sequence[Resolved], seeds: Sequence[int]) -> None:
    """Raise if a judged seed would choose the learning rates, or trials make two arms equal.

    Raises:
        BadValue: a run has the seed of trials, or two arms differ by their learning rate alone.
    """
    if TRIAL_SEED in seeds:
        raise BadValue(f"seed {TRIAL_SEED} is that of trials of learning rates: choose another")
    for line in same_trials(arms):
        raise BadValue(line)


def same_trials(arms: Sequence[Resolved]) -> Iterator[str]:
    """Yield a line for each pair of arms that try the same training at some learning rates."""
    trials = [(arm, [effective(trial) for trial in trials_of(arm)]) for arm in arms]
    for (first, first_trials), (second, second_trials) in combinations(trials, 2):
        names = {arm.paper.same_as(arm.arm, arm.scale) or arm.arm for arm in (first, second)}
        if len(names) > 1 and any(settings in second_trials for settings in first_trials):
            yield (
                f"arms {first.arm} and {second.arm} try one training, as they differ by the "
                "learning rate alone: say rate_factors=() in these arms"
            )


def tuning_record(resolved: Resolved, trials: Sequence[Chain], *, force: bool = False) -> Record:
    """Train the missing trials of an arm and return the record of all, which is not written yet."""
    from core.stages.record import request_of

    rows = [trial_row(chain, force=force) for chain in trials]
    first = trials[0]
    return new_record(
        "tuning",
        **request_of(resolved),
        seed=first.seed,
        model=first.start.run(),
        data=first.data.run(),
        trials=rows,
        best=best_of(rows)["factor"],
    )


def trial_row(chain: Chain, *, force: bool) -> TrialRow:
    """Train one trial if it is missing; return its learning rate, steps and held-out curve."""
    from core.stages.record import run_trial

    trained = run_trial(chain, force=force)
    curves: Mapping[str, list[list[float]]] = trained["curves"]
    return {
        "factor": chain.resolved.factor,
        "learning_rate": rate_of(chain.resolved),
        "steps": trained["steps"],
        "curve": curves[HELD_OUT],
    }
