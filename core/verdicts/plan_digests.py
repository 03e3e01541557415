"""Digests of the plans of claims, which show that none was changed after its runs had begun.

The plan of a claim is its test, its gates, its expected effect and the settings of its arms. It is
kept of the claims that declare `acts` or `expects`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from core.claims import Claim
from core.paper import Paper
from core.records.record import Record
from core.records.schema import ClaimsRecord, place_of
from core.settings.canonical import SHORT, as_text, digest_of

REMEDY = (
    "was changed after its judged runs had begun (test, gates or expectation): put it back, or "
    "judge it on new runs"
)


def plan_digests(paper: Paper, runs: Sequence[Record]) -> dict[str, str]:
    """Return a digest of the plan of each claim that has one, by the claim's name.

    Args:
        paper: The paper.
        runs: The judged runs. A claim has no plan yet if one of its arms has no run.
    """
    digests = {claim.slug: plan_digest(claim, runs) for claim in paper.claims if claim.is_planned}
    return {slug: digest for slug, digest in digests.items() if digest}


def plan_digest(claim: Claim, runs: Sequence[Record]) -> str:
    """Return the digest of a claim's test, gates, expectation and settings; empty without runs."""
    settings = {
        arm: sorted({digest_of(run["config"]) for run in runs if run["arm"] == arm})
        for arm in claim.arms
    }
    if not all(settings.values()):
        return ""
    gates = [[gate.below, str(gate.test)] for gate in claim.gates]
    return digest_of([str(claim.test), gates, as_text(claim.expects), settings])[:SHORT]


def plan_changes(paper: Paper, claims: ClaimsRecord, runs: Sequence[Record]) -> list[str]:
    """Return the claims of a record whose plans are others now, though their runs are the same."""
    now = plan_digests(paper, runs)
    recorded: Mapping[str, str] = claims.get("planned", {})
    return [slug for slug, digest in recorded.items() if now.get(slug) != digest]


def changed_plans(
    records: Iterable[Record], is_announced: Callable[[Record, str], bool]
) -> Iterator[str]:
    """Yield a line for each claim that two records judge on a common run by different plans.

    A changed plan that was put back is left out: the newest record over such a run has the first
    plan, and an announcement names the record between them.

    Args:
        records: All records of a paper, superseded ones too.
        is_announced: Returns whether the changes name a record with a claim.
    """
    by_age = sorted(records, key=lambda record: record["created"])
    judged = [record for record in by_age if record["kind"] == "claims"]
    first: dict[tuple[str, str], str] = {}
    last: dict[tuple[str, str], str] = {}
    for claims in judged:
        for place, digest in planned_runs(claims):
            first.setdefault(place, digest)
            last[place] = digest
    for claims in judged:
        changed = {place for place, digest in planned_runs(claims) if first[place] != digest}
        for slug in dict.fromkeys(slug for slug, _ in sorted(changed)):
            places = [place for place in changed if place[0] == slug]
            is_put_back = all(last[place] == first[place] for place in places)
            if not (is_put_back and is_announced(claims, slug)):
                yield f"{place_of(claims)}: {slug} {REMEDY}"


def planned_runs(claims: Record) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield each claim of a record with each of its runs, and the digest of the claim's plan."""
    rows = {row["id"]: row for row in claims["verdicts"]}
    for slug, digest in claims.get("planned", {}).items():
        for run in rows[slug]["runs"]:
            yield (slug, run), digest
