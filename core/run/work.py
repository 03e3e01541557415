"""The validated work of an order: the chains of stages to run and the trials before them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from core.paper.overrides import named_texts
from core.records.places import check_writable, root
from core.records.record import read_records
from core.run.request import Order
from core.settings.layers import arguments_of
from core.settings.refusals import refuse, refuse_paper
from core.settings.resolve import resolve
from core.settings.resolved import Resolved
from core.settings.run_settings import TRIAL_SEED
from core.spread.launch import check_installed
from core.stages.chain import Chain
from core.stages.questions import modes_of
from core.stages.sources import check_models
from core.stages.tools import check_tools
from core.verdicts.trials import check_trials, compared_arms, trials_of
from core.verdicts.unmeasured import untested_claims
from eval.errors import BadValue
from eval.terminal import say


@dataclass(frozen=True, kw_only=True)
class Trials:
    """Trainings of one arm at several learning rates, one chain each; empty if none are tried."""

    resolved: Resolved
    chains: tuple[Chain, ...]


@dataclass(frozen=True, kw_only=True)
class Work:
    """An order that has passed all checks, as the chains and trials that it consists of.

    Attributes:
        order: The order.
        chains: Every arm with every seed, at the arm's own learning rate.
        trials: The trials of each arm whose learning rate is chosen by trials.
    """

    order: Order
    chains: tuple[Chain, ...]
    trials: tuple[Trials, ...]


def validate_order(order: Order) -> Work:
    """Check all that can be checked before anything runs, and return the work of an order.

    Raises:
        ReproError: the paper, a setting, a model or a folder does not allow the runs; see
            `refuse_paper`, `check_chains`, `plan_trials` and `check_records`.
    """
    refuse_paper(order.paper)
    chains = make_chains(order, order.arm_names)
    check_chains(chains)
    trials = plan_trials(order, chains)
    check_records(order.paper.slug)
    if caution := chains[0].resolved.caution:
        say(caution)
    for line in idle_settings(order, chains):
        say(line)
    for slug, reason in untested_claims(chains[0].resolved, order.arguments).items():
        say(f"claim {slug} will have no verdict: {reason}")
    return Work(order=order, chains=tuple(chains), trials=tuple(trials))


def make_chains(order: Order, arms: Iterable[str], looks: int | None = None) -> list[Chain]:
    """Return the chain of every arm with every seed, at the arm's own learning rate.

    A setting of the command line acts on the arms whose family reads it.

    Args:
        order: The order.
        arms: The names of the arms.
        looks: The number of looks that the seeds are for; None for all.
    """
    names = tuple(arms)
    resolved_arms = [
        resolve(
            order.paper,
            arm=arm,
            scale=order.scale,
            arguments=arguments_of(order.paper, arm, order.arguments, names),
        )
        for arm in names
    ]
    return [
        Chain(resolved, seed)
        for resolved in resolved_arms
        for seed in order.seeds_in(resolved.world, looks)
    ]


def idle_settings(order: Order, chains: Sequence[Chain]) -> Iterator[str]:
    """Yield for each arm that leaves out settings of the command line which these are."""
    given = named_texts(order.arguments)
    for resolved in {chain.resolved.arm: chain.resolved for chain in chains}.values():
        if idle := [name for name in given if name not in named_texts(resolved.arguments)]:
            names, family = ", ".join(idle), resolved.family.name
            yield f"arm {resolved.arm} leaves out {names}: its family {family} does not read it"


def check_chains(chains: Sequence[Chain]) -> None:
    """Check the settings of runs, then the models and programs that they need.

    Raises:
        UnknownName, BadValue: the settings are refused, see `refuse`.
        UnknownName, MissingFile, DamagedFile, BadValue, SandboxUnavailable: see `check_inputs`.
    """
    refuse([chain.resolved for chain in chains])
    for chain in chains:
        check_inputs(chain)


def check_inputs(chain: Chain) -> None:
    """Check that the models, the launcher, the loggers and the sandbox of a run are available.

    Raises:
        UnknownName: there is no model of that name.
        MissingFile, DamagedFile: the folder of a model does not exist or is damaged.
        BadValue: a package that the launch or the logging needs is not installed.
        SandboxUnavailable: the programs in answers cannot be run on this machine.
    """
    run = chain.resolved.run
    check_models(run)
    for preparation in chain.prepared.values():
        check_inputs(preparation)
    check_installed(run)
    chain.resolved.preview().check_reporting()
    check_tools(modes_of(chain.resolved))


def plan_trials(order: Order, chains: Sequence[Chain]) -> list[Trials]:
    """Return the trials of each arm that a claim compares; empty unless the order is fair.

    Raises:
        BadValue: `rate_factors` is given for an order without trials, or `check_trials` refuses
            the trials.
    """
    arms = {chain.resolved.arm: chain.resolved for chain in chains}
    if not order.fair:
        if "rate_factors" in chains[0].resolved.overrides:
            raise BadValue("rate_factors is given, and learning rates are tried with --claims only")
        return []
    compared = [arms[arm] for arm in arms if arm in compared_arms(order.paper)]
    check_trials(compared, order.seeds)
    return [
        Trials(resolved=arm, chains=tuple(Chain(trial, TRIAL_SEED) for trial in trials_of(arm)))
        for arm in compared
    ]


def check_records(slug: str) -> None:
    """Check that runs/ can be written and that the records of a paper can be read.

    Raises:
        BadValue: the folder cannot be written.
        DamagedFile: the content of a record does not match its digest.
    """
    check_writable(root() / "runs")
    read_records(slug)
