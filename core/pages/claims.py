"""The page of claims: how those of every paper that is known can be tested."""

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
    """One claim of a paper: how it is tested, and its test.

    The test is an expression of `core.claims` where it is by runs; where it is exact or simulated,
    that or what the law or the simulation has to compute; else why there is none.
    """

    paper: str
    claim: str
    kind: str
    test: str


def claims_files() -> dict[str, str]:
    """The page by its name; nothing where there is no table of claims."""
    if not claims_table().is_file():
        return {}
    template = environment("md").get_template("claims.md.j2")
    return {"claims.md": template.render(**summary(read_claims()))}


def read_claims() -> list[ClaimRow]:
    """All rows of the table.

    Raises:
        DamagedFile: other columns, an unknown kind, an empty field, or a claim that is there twice.
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
    """What the page shows: counts by paper and in all, and the reasons of what is not testable."""
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
    """How many of each kind there are, and of all."""
    found = Counter(row.kind for row in rows)
    return {kind: found[kind] for kind in KINDS} | {"all": len(rows)}
