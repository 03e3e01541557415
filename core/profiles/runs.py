"""Runs of a profile: trials of learning rates, then every training with every seed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from core.claims import Claim
from core.families.worlds import World, world_of_regime
from core.paper import Paper
from core.profiles.algorithms import Algorithm
from core.profiles.entries import ENTRIES, SCALE
from core.profiles.probes import PROBES, Probe
from core.profiles.trainings import PREPARATIONS, TRAININGS, Training
from core.records.fair import best_of, final
from core.records.runs_lock import working_in_runs
from core.records.schema import TrialRow
from core.settings.refusals import check_run
from core.settings.resolve import resolve
from core.spread.pool import FailedUnit, Unit, run_units
from core.stages.chain import Chain
from core.stages.record import request_of, result_fields, run_stages, run_trial, score_start
from core.verdicts.trials import trial_row
from eval.errors import ReproError
from eval.json_lines import JsonObject
from eval.terminal import say

FACTORS = (1 / 3, 1.0, 3.0)  # of the learning rate of a world
TRIAL_PROBLEMS = 400  # all held-out problems of a world
# Points of accuracy: about a standard error of the difference of two shares of 90 % of 400.
BY_CHANCE = 2.0


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request to profile an algorithm.

    Attributes:
        algorithm: The algorithm.
        arguments: The words of the command line that name it.
        probes: The probes.
        seeds: The number of seeds.
        jobs: The largest number of processes at a time.
    """

    algorithm: Algorithm
    arguments: tuple[str, ...]
    probes: tuple[Probe, ...]
    seeds: int
    jobs: int

    @property
    def trainings(self) -> tuple[Training, ...]:
        """The trainings of the probes that the algorithm enters, without duplicates."""
        places = dict.fromkeys(probe.place for probe in self.probes)
        return tuple(TRAININGS[p] for p in places if self.algorithm.enters(TRAININGS[p]))

    def seeds_of(self, training: Training) -> tuple[int, ...]:
        """Return the seeds of a training: the first of its world."""
        return world_of(training).seeds[: self.seeds]


@dataclass(frozen=True, kw_only=True)
class ProfileRuns:
    """The finished runs of a profile.

    Attributes:
        trials: The trials of each base training, one row for each rate.
        records: The fields of a run's record by training and seed.
        failures: The reason of each training and seed that failed.
    """

    trials: Mapping[str, Sequence[TrialRow]]
    records: Mapping[str, Mapping[int, JsonObject]]
    failures: Mapping[str, Mapping[int, str]]

    def best(self, base: str) -> TrialRow:
        """Return the trial of a base training whose learning rate was chosen.

        It is the usual one unless another is better by more than `BY_CHANCE`: rates that cannot be
        told apart would make algorithms differ by their rate.
        """
        rows = self.trials[base]
        best = best_of(rows)
        usual = next((row for row in rows if row["factor"] == TRAININGS[base].usual), best)
        return best if final(best) > final(usual) + BY_CHANCE else usual

    def factor(self, training: Training) -> float:
        """Return the factor of the world's learning rate with which a training runs."""
        return training.faster * self.best(training.base)["factor"]


def profile_paper(algorithm: Algorithm) -> Paper:
    """Return an algorithm as a paper with an arm for each training, and a claim for each probe.

    The claims are never judged: they say what is measured of each run.
    """
    arms = {t.name: algorithm.arm(t) for t in TRAININGS.values() if algorithm.enters(t)}
    claims = [
        Claim(probe.name, probe.question, probe.measure.of(probe.place) > 0)
        for probe in PROBES.values()
        if probe.place in arms
    ]
    return Paper(
        slug="profile",
        title=f"Profile of {algorithm.name}",
        family=algorithm.family,
        model="nano",
        arms=arms,
        preparations={**PREPARATIONS, **ENTRIES[algorithm.family].preparations},
        claims=tuple(claims),
    )


def chain_of(
    algorithm: Algorithm, training: str, seed: int, factor: float = 1.0, *, trial: bool = False
) -> Chain:
    """Return the stages of one training of an algorithm with one seed.

    A trial, which chooses a learning rate, has four times as many held-out problems.
    """
    paper = profile_paper(algorithm)
    held_out = (f"heldout_problems={TRIAL_PROBLEMS}",) if trial else ()
    resolved = resolve(paper, arm=training, scale=SCALE, factor=factor, arguments=held_out)
    return Chain(resolved, seed)


def world_of(training: Training) -> World:
    """Return the world of a training."""
    return world_of_regime(training.regime)


def run_profile(request: Request) -> ProfileRuns:
    """Run what has not finished, and return all runs; a training that fails does not end others.

    Raises:
        ReproError: the settings do not fit any training, or no trial of a training succeeded.
    """
    failures: dict[str, dict[int, str]] = {}
    trainings = fitting(request, failures)
    with working_in_runs():
        trials = run_trials(request, trainings)
        runs = ProfileRuns(trials=trials, records={}, failures=failures)
        chains = [
            chain_of(request.algorithm, training.name, seed, runs.factor(training))
            for training in trainings
            for seed in request.seeds_of(training)
        ]
        run_all(request, chains, failures)
        records: dict[str, dict[int, JsonObject]] = {}
        for chain in chains:
            training = chain.resolved.arm
            if chain.seed not in failures.get(training, {}):
                records.setdefault(training, {})[chain.seed] = fields_of(chain)
    return ProfileRuns(trials=trials, records=records, failures=failures)


def fitting(request: Request, failures: dict[str, dict[int, str]]) -> list[Training]:
    """Return the trainings whose settings are accepted, and note the reasons of the others.

    Raises:
        ReproError: no training accepts the settings.
    """
    accepted: list[Training] = []
    last: ReproError | None = None
    for training in request.trainings:
        try:
            check_run(chain_of(request.algorithm, training.name, seed=0).resolved)
            accepted.append(training)
        except ReproError as error:
            last = error
            failures[training.name] = dict.fromkeys(request.seeds_of(training), str(error))
    if not accepted and last is not None:
        raise last
    return accepted


def run_trials(request: Request, trainings: Iterable[Training]) -> dict[str, list[TrialRow]]:
    """Train at each learning rate in the base of every training, on a seed that is never judged."""
    bases = [TRAININGS[name] for name in dict.fromkeys(training.base for training in trainings)]
    chains = [
        chain_of(request.algorithm, base.name, world_of(base).trial_seed, factor, trial=True)
        for base, factor in product(bases, FACTORS)
    ]
    failed: dict[str, dict[int, str]] = {}
    failed_units = run_all(request, chains, failed, trial=True)
    rows: dict[str, list[TrialRow]] = {}
    for chain in chains:
        if label_of(chain) not in failed_units:
            rows.setdefault(chain.resolved.arm, []).append(trial_row(chain, force=False))
    if without_trial := failed.keys() - rows.keys():
        name = min(without_trial)
        reason = next(iter(failed[name].values()))
        raise FailedUnit(f"{name}: every learning rate failed: {reason}", 1)
    return rows


def run_all(
    request: Request,
    chains: Sequence[Chain],
    failures: dict[str, dict[int, str]],
    *,
    trial: bool = False,
) -> set[str]:
    """Run chains in processes; note and return the names of those that fail."""
    units = {label_of(chain): chain for chain in chains if not is_done(chain, trial=trial)}
    failed: set[str] = set()

    def note(error: FailedUnit) -> None:
        name, _, reason = str(error.args[0]).partition(": ")
        chain = units[name]
        failed.add(name)
        failures.setdefault(chain.resolved.arm, {})[chain.seed] = reason
        say(f"{name} failed, the others go on: {reason}")

    commands = [Unit(name, command(request, c, trial=trial)) for name, c in units.items()]
    run_units(commands, request.jobs, note)
    return failed


def is_done(chain: Chain, *, trial: bool) -> bool:
    """Return whether all stages of a run, or those of a trial, have finished."""
    return all(stage.is_done for stage in (chain.training if trial else chain.stages))


def label_of(chain: Chain) -> str:
    """Return the name of a run in progress lines."""
    return f"{chain.resolved.arm} {chain.seed} x {chain.resolved.factor:.2g}"


def command(request: Request, chain: Chain, *, trial: bool) -> tuple[str, ...]:
    """Return the arguments of `repro` that run one chain."""
    options = ("--training", chain.resolved.arm, "--seed", str(chain.seed))
    factor = ("--factor", repr(chain.resolved.factor))
    return ("probe", *request.arguments, *options, *factor, *(("--trial",) if trial else ()))


def run_one(chain: Chain, *, trial: bool) -> None:
    """Run the stages of one chain in this process."""
    if trial:
        run_trial(chain)
    else:
        score_start(chain)
        run_stages(chain, force=False)


def fields_of(chain: Chain) -> JsonObject:
    """Return the fields of a run's record, from its finished stages."""
    outputs = run_stages(chain, force=False)
    return {**request_of(chain.resolved), **result_fields(chain, outputs)}
