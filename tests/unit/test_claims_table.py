"""The table of the claims of all papers: every test by runs is a sentence of the language."""

import re
from pathlib import Path

import pytest

import core.claims
from core.claims import Comparison
from core.pages.claims import KINDS, NOT_EXPRESSED, claims_files, counts, read_claims
from core.paper.registry import entries, find_paper
from core.run.check import check_page
from eval.errors import DamagedFile

ROOT = Path(__file__).parents[2]
LANGUAGE = {name: getattr(core.claims, name) for name in core.claims.__all__}
HEAD = "paper,claim,kind,test\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The table of another checkout."""
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    (tmp_path / "papers").mkdir()
    return tmp_path / "papers" / "claims.csv"


@pytest.fixture
def rows():
    return read_claims()


def parsed(text):
    """The comparison that an expression of the language builds."""
    return eval(text, {"__builtins__": {"abs": abs}}, LANGUAGE)


def test_every_claim_by_runs_is_a_comparison_of_runs(rows):
    for row in rows:
        if row.kind == "runs":
            test = parsed(row.test)
            assert isinstance(test, Comparison), row
            assert test.kind == "runs", row
            assert test.needs, row


def test_every_law_and_simulation_that_is_written_is_one(rows):
    written = [row for row in rows if re.search(r"(law|simulated|timed)\(", row.test)]
    assert written
    for row in written:
        assert parsed(row.test).kind == row.kind, row


def test_every_card_has_its_claims(rows):
    assert len(rows) == 454
    assert len({row.paper for row in rows}) == 86


@pytest.mark.parametrize("slug", entries())
def test_the_table_says_of_a_paper_what_its_module_says(slug, rows):
    """But for claims that the module cannot test yet, of which the table says what it would be."""
    told = {row.claim: row.test for row in rows if row.paper == slug}
    claims = find_paper(slug).claims
    assert list(told) == [claim.slug for claim in claims]
    tests = {claim.slug: claim.test for claim in claims if isinstance(claim.test, Comparison)}
    assert {name: str(parsed(told[name])) for name in tests} == {
        name: str(test) for name, test in tests.items()
    }


def test_the_page_counts_every_claim_once(rows):
    total = counts(rows)
    assert sum(total[kind] for kind in KINDS) == total["all"] == len(rows)
    (page,) = claims_files().values()
    cells = [
        [c.strip() for c in line.split("|")[1:-1]] for line in page.splitlines() if "|" in line
    ]
    numbers = {row[0]: [*map(int, row[1:])] for row in cells if len(row) == 6 and row[1].isdigit()}
    every = numbers.pop("**all**")
    assert every == [*total.values()]
    assert every == [sum(column) for column in zip(*numbers.values(), strict=True)]
    assert all(sum(row[:-1]) == row[-1] for row in numbers.values())
    named = [row for row in rows if row.test.startswith(NOT_EXPRESSED)]
    assert f"{len(named)} of them could be tested" in page
    assert {row.kind for row in named} == {"untestable"}


def test_the_committed_page_is_that_of_the_table(rows):
    del rows
    assert check_page(claims_files) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the columns are"),
        ("paper,claim,test\n", "the columns are"),
        (HEAD + "a,b,maybe,c\n", "row 2"),
        (HEAD + "a,b,exact,c\na,c,exact,\n", "row 3"),
        (HEAD + "a,b,exact\n", "row 2"),
        (HEAD + "a,b,exact,c,d\n", "row 2"),
        (HEAD + "a,b,exact,c\na,b,runs,d\n", "more than once: a b"),
    ],
)
def test_a_damaged_table_is_refused_and_found_by_the_check(place, text, problem):
    place.write_text(text)
    with pytest.raises(DamagedFile, match=problem):
        read_claims()
    (line,) = check_page(claims_files)
    assert problem in line


def test_a_page_that_the_table_no_longer_gives_is_found(place):
    assert claims_files() == {}
    assert check_page(claims_files) == []
    place.write_text(HEAD + "a,b,exact,c\n")
    assert "is missing" in check_page(claims_files)[0]
    (place.parents[1] / "reports").mkdir()
    (place.parents[1] / "reports" / "claims.md").write_text(claims_files()["claims.md"])
    assert check_page(claims_files) == []
    place.write_text(HEAD + "a,b,runs,c\n")
    assert "differs from its records: run `repro publish`" in check_page(claims_files)[0]
