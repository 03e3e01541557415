"""Trials: an arm's training at several learning rates, with a seed that no verdict ever sees.

The best is chosen by the held-out accuracy at the end. No trial is scored on a suite, so no answer
to a test problem and no seed of a verdict can move the choice.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from core.paper import Paper
from core.records.fair import best_of
from core.records.record import Record, new_record
from core.records.schema import TrialRow
from core.settings.effective import effective
from core.settings.resolve import Resolved
from core.settings.run_settings import HELD_OUT, TRIAL_SEED
from core.stages.chain import Chain
from core.stages.record import request_of, run_trial
from eval.errors import BadValue


def compared_arms(paper: Paper) -> set[str]:
    """The arms that claims compare, with each other or with the starting model."""
    return {arm for claim in paper.claims for arm in claim.arms}


def trials_of(resolved: Resolved) -> list[Resolved]:
    """An arm at each learning rate that is tried; none where one is given, or nothing is held out.

    Raises:
        BadValue: the command line asks for trials where there are none.
    """
    run = resolved.run
    given = "learning_rate" in resolved.overrides
    if resolved.family.trains and run.heldout_problems and not given:
        return [resolved.at_factor(factor) for factor in run.rate_factors]
    if run.rate_factors and "rate_factors" in resolved.overrides:
        why = "learning_rate is given" if given else "no problems are held out to choose by"
        raise BadValue(f"rate_factors={run.rate_factors}: {why}; leave one of the two out")
    return []


def rate_of(resolved: Resolved) -> float:
    """The learning rate of a training."""
    return resolved.preview().learning_rate


def check_trials(arms: Sequence[Resolved], seeds: Sequence[int]) -> None:
    """Refuse what would choose by a seed that is judged, or make two arms one.

    Raises:
        BadValue: a run has the seed of trials, or two arms differ by their learning rate alone.
    """
    if TRIAL_SEED in seeds:
        raise BadValue(f"seed {TRIAL_SEED} is that of trials of learning rates: choose another")
    for line in same_trials(arms):
        raise BadValue(line)


def same_trials(arms: Sequence[Resolved]) -> Iterator[str]:
    """The arms that could come to one training by the learning rates that they try."""
    tried = [(arm, [effective(one) for one in trials_of(arm)]) for arm in arms]
    for (one, some), (other, more) in combinations(tried, 2):
        names = {arm.paper.same_as(arm.arm, arm.scale) or arm.arm for arm in (one, other)}
        if len(names) > 1 and any(settings in more for settings in some):
            yield (
                f"arms {one.arm} and {other.arm} try one training, as they differ by the learning "
                "rate alone: say rate_factors=() in these arms"
            )


def tuning_record(resolved: Resolved, trials: Sequence[Chain], *, force: bool = False) -> Record:
    """What the trials of an arm came to, those that are not done made now; not written yet."""
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
    """One trial: its learning rate and the curve by which it is compared."""
    trained = run_trial(chain, force=force)
    curves: Mapping[str, list[list[float]]] = trained["curves"]
    return {
        "factor": chain.resolved.factor,
        "learning_rate": rate_of(chain.resolved),
        "steps": trained["steps"],
        "curve": curves[HELD_OUT],
    }
