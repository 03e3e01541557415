"""Judges claims with the labels of arms shuffled within each seed, where no effect is left.

`python -m core.verdicts.shuffled_labels` prints the shares, from all published runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from random import Random
from typing import cast

import numpy as np

from core.claims import START, Claim, Comparison, MissingMeasure
from core.paper import Paper
from core.paper.registry import entries
from core.records.fair import fair
from core.records.places import Shelf, record_files
from core.records.record import Record, read_records, standard
from core.records.schema import claims_of, runs_of, tunings_of
from core.verdicts.run_worlds import world_of
from core.verdicts.verdict_records import judged_runs
from eval.stats.seeds import LOOKS, seed_effect
from eval.terminal import say

LEVEL = LOOKS[0].level
BOUND = 1.9  # percent of shuffled claims that may be decided
DRAWS = 200  # shufflings of each claim
ORDERED = (">", ">=", "<", "<=")
Labels = tuple[str, ...]
RunsByArm = Mapping[str, Sequence[Record]]  # of each arm, one for each seed in order


@dataclass(frozen=True, kw_only=True)
class Shuffled:
    """The numbers of claims, of their shufflings, and of those that are decided for a side.

    In the shufflings that are `apart` no two seeds compare the same arms. If they do, their noise
    is not independent, as its mean over all seeds is zero, and fewer are decided.
    """

    claims: int
    shuffled: int
    decided: int
    apart: int
    decided_apart: int


def shuffled_rates(draws: int = DRAWS, seed: int = 0) -> Shuffled:
    """Shuffle the labels of all published runs and return how often claims are decided.

    Each seed gives the arms of a claim to runs of this seed at random, chosen from all arms of the
    paper in the same world. Claims that compare arms by the same measure are counted. What is
    judged is the noise: see `noise_of`.
    """
    random, verdicts, claims = Random(seed), list[tuple[bool, bool]](), 0
    for entry in entries().values():
        if record_files(entry.slug, Shelf.PUBLISHED):
            for claim, by_arm in shufflable(entry.load()):
                rows = shuffled_verdicts(claim, by_arm, draws, random)
                claims += bool(rows)
                verdicts += rows
    return Shuffled(
        claims=claims,
        shuffled=len(verdicts),
        decided=sum(decided for _, decided in verdicts),
        apart=sum(apart for apart, _ in verdicts),
        decided_apart=sum(apart and decided for apart, decided in verdicts),
    )


def shufflable(paper: Paper) -> Iterator[tuple[Claim, RunsByArm]]:
    """Yield each claim whose labels can be shuffled, with the runs of its first look by arm.

    It compares at least two arms by `>` or `<`, without a margin, and no number or starting model.
    """
    records = read_records(paper.slug, Shelf.PUBLISHED)
    verdict_records = claims_of(standard(records), "cpu")
    if not verdict_records:
        return
    digests = {*judged_runs(verdict_records[-1]), *verdict_records[-1].get("tunings", [])}
    candidates = [cast(Record, record) for record in (*runs_of(records), *tunings_of(records))]
    runs = [
        cast(Record, run)
        for run in runs_of(fair([r for r in candidates if r["digest"] in digests]))
    ]
    for claim in filter(is_symmetric, paper.claims):
        worlds = [world_of(run) for run in runs if run["arm"] == claim.arms[0]]
        if worlds:
            first_look = runs_at_first_look(runs, worlds[0].name)
            if first_look.keys() >= {*claim.arms}:
                yield claim, first_look


def runs_at_first_look(runs: Sequence[Record], world: str) -> RunsByArm:
    """Return the runs of each arm in a world that has all seeds of the first look."""
    of_world = [run for run in runs if world_of(run).name == world]
    judging = world_of(of_world[0])
    seeds = judging.seeds[: judging.looks[0].seeds]
    by_arm: dict[str, dict[int, Record]] = {}
    for run in of_world:
        by_arm.setdefault(run["arm"], {})[run["seed"]] = run
    return {
        arm: [by_seed[seed] for seed in seeds]
        for arm, by_seed in by_arm.items()
        if by_seed.keys() >= {*seeds}
    }


def is_symmetric(claim: Claim) -> bool:
    """Return whether a claim's arms can change places, so that only noise decides it then."""
    test = claim.test
    return (
        isinstance(test, Comparison)
        and test.kind == "runs"
        and test.relation in ORDERED
        and not test.margin
        and bool(test.right.needs)
        and len(claim.arms) > 1
        and len(test.each) == 1
        and START not in {arm for arm, _ in test.needs}
    )


def shuffled_verdicts(
    claim: Claim, by_arm: RunsByArm, draws: int, random: Random
) -> list[tuple[bool, bool]]:
    """Judge shufflings of a claim's labels; return if each is apart, and if it is decided.

    The list is empty if an arm that takes the place of another lacks what the claim reads.
    """
    test, noise = cast(Comparison, claim.test), dict[Labels, list[float]]()
    seeds = range(len(next(iter(by_arm.values()))))
    verdicts = list[tuple[bool, bool]]()
    for _ in range(draws):
        labels = [tuple(random.sample(sorted(by_arm), len(claim.arms))) for _ in seeds]
        try:
            for row in labels:
                if row not in noise:
                    noise[row] = noise_of(claim, test, by_arm, row)
        except MissingMeasure:
            return []
        values = [noise[row][seed] for seed, row in zip(seeds, labels, strict=True)]
        effect = seed_effect(values, test.margin, test.relation, level=LEVEL)
        is_apart = len({frozenset(row) for row in labels}) == len(labels)
        verdicts.append((is_apart, effect.verdict in ("held", "refuted")))
    return verdicts


def noise_of(claim: Claim, test: Comparison, by_arm: RunsByArm, labels: Labels) -> list[float]:
    """Return left - right of each seed with these labels, less the mean over the seeds.

    Arms differ, so that their labels are no noise: without the mean nothing but noise is left. The
    result is scaled by sqrt(n / (n - 1)), to have the variance of n independent seeds. What all
    seeds share is gone with the mean.
    """
    rows = zip(*(by_arm[label] for label in labels), strict=True)
    left, right = test.values([dict(zip(claim.arms, runs, strict=True)) for runs in rows])
    differences = np.subtract(left, right)
    n = len(differences)
    return [float(d) for d in (differences - differences.mean()) * sqrt(n / (n - 1))]


def main() -> None:
    """Shuffle the labels of all published runs and print the shares that are decided."""
    rates = shuffled_rates()
    say(
        f"{rates.shuffled} shufflings of {rates.claims} claims: "
        f"{100 * rates.decided / rates.shuffled:.2f} % decided at {100 * LEVEL:g} %; "
        f"{100 * rates.decided_apart / rates.apart:.2f} % of the {rates.apart} in which no two "
        f"seeds compare the same arms (bound {BOUND} %)"
    )


if __name__ == "__main__":
    main()
