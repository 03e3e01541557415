"""The page reports/claims.md: how the claims of all known papers can be tested."""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.records.places import claims_table
from eval.errors import DamagedFile
from eval.stats.seeds import LEVEL
from eval.tables.render import environment

KINDS = ("exact", "runs", "simulated", "untestable")
NOT_EXPRESSED = "not expressed yet: "
COLUMNS = ["paper", "claim", "kind", "test"]


@dataclass(frozen=True)
class ClaimRow:
    """A claim of a paper in the table of claims: the kind of its test, and the test.

    `test` is an expression of `core.claims` for a claim about runs. For an exact or simulated claim
    it is an expression or the description of what to compute, for others the reason why there is
    no test.
    """

    paper: str
    claim: str
    kind: str
    test: str


def claims_files() -> dict[str, str]:
    """Return the page by its file name; empty if there is no table of claims."""
    if not claims_table().is_file():
        return {}
    template = environment("md").get_template("claims.md.j2")
    return {"claims.md": template.render(**summary(read_claims()))}


def read_claims() -> list[ClaimRow]:
    """Read the table of claims.

    Raises:
        DamagedFile: the table has other columns, an unknown kind, an empty field, or a claim twice.
        FileNotFoundError: there is no table.
    """
    place = claims_table()
    with place.open(newline="", encoding="utf-8") as file:
        head, *lines = list(csv.reader(file)) or [[]]
    if head != COLUMNS:
        raise DamagedFile(f"{place}: the columns are {head}; expected {COLUMNS}")
    for number, line in enumerate(lines, 2):
        if len(line) != len(COLUMNS) or not all(line) or line[2] not in KINDS:
            raise DamagedFile(
                f"{place}, row {number}: {line}; expected {', '.join(COLUMNS)}, none empty, and "
                f"one of the kinds {', '.join(KINDS)}"
            )
    rows = [ClaimRow(*line) for line in lines]
    times = Counter((row.paper, row.claim) for row in rows)
    twice = [f"{paper} {claim}" for (paper, claim), n in times.items() if n > 1]
    if twice:
        raise DamagedFile(f"{place}: more than once: {', '.join(twice)}; expected each claim once")
    return rows


def summary(rows: Sequence[ClaimRow]) -> dict[str, object]:
    """Return what the page shows: counts by paper and in total, and the untestable claims."""
    papers = {row.paper: counts([r for r in rows if r.paper == row.paper]) for row in rows}
    return {
        "papers": papers,
        "total": counts(rows),
        "tests": (tests := sum(row.kind in ("runs", "simulated") for row in rows)),
        "expected": LEVEL * tests,
        "written": sum("law(" in row.test for row in rows if row.kind == "exact"),
        "open": sum(row.test.startswith(NOT_EXPRESSED) for row in rows),
        "untestable": [row for row in rows if row.kind == "untestable"],
    }


def counts(rows: Sequence[ClaimRow]) -> Mapping[str, int]:
    """Return the number of claims of each kind, and of all under "all"."""
    by_kind = Counter(row.kind for row in rows)
    return {kind: by_kind[kind] for kind in KINDS} | {"all": len(rows)}
