"""Judges claims with the labels of arms shuffled within each seed, where no effect is left.

`python -m core.verdicts.shuffled_labels` prints the shares; it reads all published samples.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import cast

from core.claims import START, Claim, Comparison, MissingMeasure, Runs
from core.paper import Paper
from core.paper.registry import entries
from core.records.fair import fair
from core.records.places import Shelf, record_files
from core.records.record import Record, read_records, standard
from core.records.schema import claims_of, runs_of, tunings_of
from core.verdicts.conjunctions import judge_conjunction
from core.verdicts.verdict_records import judged_runs
from eval.stats.seeds import LOOKS
from eval.terminal import say

LEVEL, SEEDS = LOOKS[0].level, LOOKS[0].seeds  # of the first look
BOUND = 1.9  # percent of shuffled claims that may be decided
DRAWS = 5  # shufflings of each claim
ORDERED = (">", ">=", "<", "<=")
Labels = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Shuffled:
    """The numbers of claims, of their shufflings, and of those that are decided for a side.

    `mixed` counts the shufflings in which the seeds have different labels. If all seeds have the
    same, the claim compares two arms as they are, and an effect of these arms is an effect.
    """

    claims: int
    shuffled: int
    decided: int
    mixed: int
    decided_mixed: int

    @property
    def share(self) -> float:
        """The percentage of all shufflings that are decided."""
        return 100 * self.decided / self.shuffled

    @property
    def share_mixed(self) -> float:
        """The percentage of the mixed shufflings that are decided."""
        return 100 * self.decided_mixed / self.mixed


def shuffled_rates(draws: int = DRAWS, seed: int = 0) -> Shuffled:
    """Shuffle the labels of all published runs and return how often claims are decided.

    Each seed gives the arms of a claim to runs of this seed at random, chosen from all arms of the
    paper. Claims that compare arms by the same measure are counted, as nothing but noise can
    decide them then.
    """
    random, verdicts = Random(seed), list[tuple[bool, bool]]()
    claims = 0
    for entry in entries().values():
        if record_files(entry.slug, Shelf.PUBLISHED):
            paper = entry.load()
            say(f"shuffled labels: {paper.slug}")
            for claim, by_arm in shufflable(paper):
                rows = [shuffled_verdict(claim, by_arm, random) for _ in range(draws)]
                known = [row for row in rows if row is not None]
                claims += bool(known)
                verdicts += known
    return Shuffled(
        claims=claims,
        shuffled=len(verdicts),
        decided=sum(decided for _, decided in verdicts),
        mixed=sum(mixed for mixed, _ in verdicts),
        decided_mixed=sum(mixed and decided for mixed, decided in verdicts),
    )


def shufflable(paper: Paper) -> Iterator[tuple[Claim, Mapping[str, Sequence[Record]]]]:
    """Yield each claim whose labels can be shuffled, with the runs of the first look by arm.

    It compares at least two arms by `>` or `<`, without a margin, and no number or starting model.
    """
    records = read_records(paper.slug, Shelf.PUBLISHED)
    shown = claims_of(standard(records), "cpu")
    if not shown:
        return
    digests = {*judged_runs(shown[-1]), *shown[-1].get("tunings", [])}
    used = [cast(Record, one) for one in (*runs_of(records), *tunings_of(records))]
    best = fair([record for record in used if record["digest"] in digests])
    by_arm: dict[str, list[Record]] = {}
    for run in sorted(runs_of(best), key=lambda run: run["seed"]):
        if run["seed"] < SEEDS:
            by_arm.setdefault(run["arm"], []).append(cast(Record, run))
    whole = {arm: runs for arm, runs in by_arm.items() if len(runs) == SEEDS}
    for claim in paper.claims:
        if is_symmetric(claim) and whole.keys() >= {*claim.arms}:
            yield claim, whole


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
        and START not in {arm for arm, _ in test.needs}
    )


def shuffled_verdict(
    claim: Claim, by_arm: Mapping[str, Sequence[Record]], random: Random
) -> tuple[bool, bool] | None:
    """Judge a claim with shuffled labels; return if the labels are mixed, and if it is decided.

    It is None if an arm that takes the place of another lacks what the claim reads.
    """
    labels: list[Labels] = [
        tuple(random.sample(sorted(by_arm), len(claim.arms))) for _ in range(SEEDS)
    ]
    cases: list[Runs] = [
        {arm: by_arm[label][seed] for arm, label in zip(claim.arms, row, strict=True)}
        for seed, row in enumerate(labels)
    ]
    try:
        judged = judge_conjunction(cast(Comparison, claim.test), cases, LEVEL)
    except MissingMeasure:
        return None
    return len({*labels}) > 1, judged.effect.verdict in ("held", "refuted")


def main() -> None:
    """Shuffle the labels of all published runs and print the shares that are decided."""
    rates = shuffled_rates()
    say(
        f"{rates.shuffled} shufflings of {rates.claims} claims: {rates.share:.2f} % decided; "
        f"{rates.share_mixed:.2f} % of the {rates.mixed} with mixed labels (bound {BOUND} %)"
    )


if __name__ == "__main__":
    main()
