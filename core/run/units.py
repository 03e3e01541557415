"""Runs chains of stages and returns their records, in processes or cluster jobs if asked to."""

from collections.abc import Iterable, Sequence

from core.records.record import Record
from core.run.request import Order
from core.spread.jobs import run_jobs
from core.spread.pool import Unit, run_units
from core.stages.chain import Chain
from core.stages.held_out import split_as_asked
from core.stages.record import run_chain, score_start
from core.stages.stage import Stage
from core.verdicts.up_to_date import recorded_runs


def run_chains(order: Order, chains: Sequence[Chain]) -> list[Record]:
    """Run the chains that are not recorded yet, and return the record of each chain."""
    records = recorded_runs(chains) if order.recorded else [None] * len(chains)
    pending = [chain for chain, record in zip(chains, records, strict=True) if record is None]
    batches = (start_units(order, pending), chain_units(order, pending))
    force = not run_in_processes(order, batches, pending) and order.force
    if force:
        for chain in distinct_starts(pending):
            score_start(chain, force=True)
    return [
        record or run_chain(chain, force=force)
        for chain, record in zip(chains, records, strict=True)
    ]


def run_in_processes(
    order: Order, batches: Sequence[Sequence[Unit]], chains: Sequence[Chain]
) -> bool:
    """Run units as cluster jobs or in several processes, if the order asks for either.

    Args:
        order: The order, with the cluster and the number of processes.
        batches: The units. Those of one batch end before those of the next begin on a cluster.
        chains: The chains that the units run. Their data is made first, by this process.

    Returns:
        Whether the units were run; False leaves them to the caller.
    """
    units = [unit for batch in batches for unit in batch]
    make_rows(chains if units else ())
    if order.cluster is not None:
        for batch in batches:
            if batch:
                run_jobs(batch, order.cluster, order.job, order.jobs)
        return True
    if order.jobs > 1 and len(units) > 1:
        run_units(units, order.jobs)
        return True
    return False


def make_rows(chains: Sequence[Chain]) -> None:
    """Make the rows of all runs before any model loads, but for those that preparations make.

    Raises:
        MissingFile, DamagedFile: the rows cannot be found or read.
        BadValue: the rows lack a column, or are fewer than the setting asks to hold out.
    """
    trained = [(chain.data, chain.resolved) for chain in chains if chain.train is not None]
    distinct = {(data.key, run.run.heldout_problems): (data, run) for data, run in trained}
    for data, resolved in distinct.values():
        if not data.row_stages:
            data.run()
            split_as_asked(resolved, data.folder, says=True)


def distinct_starts(chains: Sequence[Chain]) -> list[Chain]:
    """Return one chain for each combination of starting model and drawn problems."""
    by_seed: dict[int, Chain] = {}
    by_stages: dict[frozenset[str], Chain] = {}
    for chain in chains:
        by_seed.setdefault(chain.seed, chain)
    for chain in by_seed.values():
        by_stages.setdefault(frozenset(stage.key for stage in chain.start_stages), chain)
    return list(by_stages.values())


def start_units(order: Order, chains: Sequence[Chain]) -> list[Unit]:
    """Return the commands that score the starting models that are not scored yet."""
    return [
        Unit(f"start {chain.seed}", (*base_command(order, chain), "--seed", str(chain.seed)))
        for chain in distinct_starts(chains)
        if order.force or not all_done(chain.start_stages)
    ]


def chain_units(order: Order, chains: Sequence[Chain]) -> list[Unit]:
    """Return the commands of the chains that have not finished."""
    return [
        Unit(label_of(chain), chain_command(order, chain))
        for chain in chains
        if order.force or not all_done(chain.own_stages)
    ]


def trial_units(order: Order, chains: Sequence[Chain]) -> list[Unit]:
    """Return the commands of the trials that have not finished."""
    return [
        Unit(f"trial of {label_of(chain)}", (*chain_command(order, chain), "--trial"))
        for chain in chains
        if order.force or not all_done(chain.training)
    ]


def chain_command(order: Order, chain: Chain) -> tuple[str, ...]:
    """Return the arguments of `repro` that run one arm with one seed at one learning rate."""
    factor = ("--factor", repr(chain.resolved.factor)) if chain.resolved.factor != 1 else ()
    seed = ("--seed", str(chain.seed))
    return (*base_command(order, chain), "--arm", chain.resolved.arm, *seed, *factor)


def base_command(order: Order, chain: Chain) -> tuple[str, ...]:
    """Return the arguments of `repro` that the commands of all units of an order share."""
    force = ("--force",) if order.force else ()
    return ("one", order.paper.slug, *chain.resolved.arguments, "--at", order.scale, *force)


def label_of(chain: Chain) -> str:
    """Return the name of a run in progress lines: arm, seed, and the learning rate's factor."""
    factor = chain.resolved.factor
    rate = f" at {factor:.3g} times its learning rate" if factor != 1 else ""
    return f"{chain.resolved.arm} {chain.seed}{rate}"


def all_done(stages: Iterable[Stage]) -> bool:
    """Return whether all of these stages have finished."""
    return all(stage.is_done for stage in stages)
