"""Simulations of claims: their records, what is read of them, and what makes them stale."""

import sys
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import count, pairwise
from random import Random

import pytest

from core.bench import packed_speed
from core.bench.step import Timer
from core.claims import Claim, deviation, least, simulated, timed
from core.claims.laws import simulations_in, with_recorded
from core.laws import bandit
from core.pages.report import report_files
from core.paper.registry import find_paper
from core.records.places import Shelf
from core.records.record import read_records, write_record
from core.run.publish import move, publish
from core.settings.canonical import as_text
from core.verdicts.judge import judge
from core.verdicts.simulations import (
    code_of,
    record_simulations,
    simulation_problems,
    simulations_of,
    with_simulations,
)
from core.verdicts.verdict_records import claim_digests, without_runs

CALLS = []  # of the module that claims import, see `calls`
NOISE, SIZE = (f"test_simulations:{name}" for name in ("noise", "size"))


def noise(mean, *, scale=1.0, seed):
    """A number around `mean`, counted."""
    CALLS.append(seed)
    return Random(seed).gauss(mean, scale)


def calls():
    """The seeds of the calls so far, in the module as claims import it."""
    return import_module("test_simulations").CALLS


def size(shape, *, seed):
    """A number that a tuple of numbers gives."""
    CALLS.append(seed)
    return float(sum(shape) + seed)


HIGH, LOW = (simulated(NOISE, mean, seeds=6, scale=0.5) for mean in (3.0, 1.0))
WIDE = simulated(SIZE, (4, 5), seeds=4)
CLAIMS = (
    Claim("apart", "One is larger.", least(HIGH - LOW, HIGH - 1) > 0),
    Claim("near", "They differ by less than three.", abs(HIGH - LOW).about(2.0, within=3.0)),
    Claim("wide", "The other kind.", WIDE / 2 > 1),
    Claim("even", "Its deviation is small.", deviation(WIDE) < 100),
)


@pytest.fixture
def paper(tmp_path, monkeypatch):
    """A paper of simulated claims, without records."""
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    calls().clear()
    return replace(find_paper("bema"), claims=CLAIMS)


def problems(paper):
    """Return the lines of the check on the paper's simulations."""
    return [*simulation_problems(paper, read_records())]


def test_what_is_recorded_is_judged_alike_and_not_simulated_again(paper):
    assert {row["verdict"] for row in without_runs(paper, read_records())} == {"undecided"}
    assert not calls()  # judging simulates nothing
    record = record_simulations(paper)
    computed = without_runs(paper, read_records())
    assert {row["verdict"] for row in computed} == {"held"}
    assert [len(row["values"]) for row in record["simulations"]] == [6, 6, 4]
    calls().clear()
    assert judge(with_simulations(paper, read_records()), ()) == computed
    assert record_simulations(paper) == record
    assert not calls()
    assert not problems(paper)
    assert sorted(calls()) == sorted([*range(6)] * 2 + [*range(4)])  # the check computes them


def test_a_recorded_side_reads_as_the_same_claim(paper):
    before = claim_digests(paper), as_text(paper)
    record_simulations(paper)
    now = with_simulations(paper, read_records())
    assert (claim_digests(now), as_text(now)) == before
    assert [str(claim.test) for claim in now.claims] == [str(claim.test) for claim in CLAIMS]
    sides = {str(side): side.recorded for side in simulations_of(now)}
    assert {name: len(values) for name, values in sides.items()} == {
        "noise(3.0, scale=0.5)": 6,
        "noise(1.0, scale=0.5)": 6,
        "size((4, 5))": 4,
    }


def test_a_side_that_the_record_has_not_is_undecided_until_it_is_recorded(paper):
    record_simulations(replace(paper, claims=CLAIMS[:1]))
    calls().clear()
    verdicts = {
        row["id"]: (row["verdict"], row["reason"]) for row in without_runs(paper, read_records())
    }
    assert verdicts["near"][0] == "held"  # of the same simulations
    assert verdicts["wide"] == ("undecided", "no record of size((4, 5)) (use --claims)")
    assert not calls()
    assert problems(paper) == [
        f"{place} holds other simulations than the claims read: run `repro publish`"
        for place in (f"bema/{record['digest']}.json" for record in read_records())
    ]
    (first,) = read_records()
    calls().clear()
    assert record_simulations(paper)["supersedes"] == first["digest"]
    assert calls() == [0, 1, 2, 3]  # those of WIDE alone
    assert not problems(paper)


def test_changed_values_are_found_by_the_check(paper):
    record = {k: v for k, v in record_simulations(paper).items() if k not in ("digest", "content")}
    rows = [dict(row) for row in record["simulations"]]
    rows[0]["values"] = [value + 1 for value in rows[0]["values"]]
    write_record(record | {"simulations": rows})
    (line,) = problems(paper)
    assert "noise(3.0, scale=0.5) gives other values: run `repro publish`" in line


def test_no_record_is_a_problem_where_others_are(paper):
    assert not problems(paper)
    assert [*simulation_problems(paper, [{"kind": "run", "digest": "x"}])] == [
        "bema: no record of its simulations: run `repro publish`"
    ]
    assert record_simulations(replace(paper, claims=())) is None
    assert with_simulations(find_paper("dapo"), ()) is find_paper("dapo")


def test_code_is_a_module_and_all_that_it_imports_from_its_project(tmp_path, monkeypatch):
    package = tmp_path / "simulated_world"
    package.mkdir()
    files = {
        "__init__": "",
        "first": "import json\nfrom simulated_world.second import two\n",
        "second": "def two():\n    from simulated_world import third\n    return third.three\n",
        "third": "from simulated_world import first\nthree = 3\n",  # a circle
        "beside": "four = 4\n",
    }
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))

    def code():
        code_of.cache_clear()
        return code_of("simulated_world.first")

    seen = [code()]
    for name in ("first", "second", "third"):
        (package / f"{name}.py").write_text(files[name] + "# changed\n")
        seen.append(code())
    assert all(a != b for a, b in pairwise(seen))
    (package / "beside.py").write_text("four = 5\n")
    assert code() == seen[-1]
    code_of.cache_clear()
    sys.modules.pop("simulated_world", None)


def test_a_record_of_other_code_is_read_and_made_again(paper, monkeypatch):
    first = record_simulations(paper)
    monkeypatch.setattr("core.verdicts.simulations.code_of", lambda _: "other")
    assert {row["verdict"] for row in without_runs(paper, read_records())} == {"held"}
    assert not problems(paper)  # the values are as before
    calls().clear()
    again = record_simulations(paper)
    assert {*calls()} == {*range(6)}
    assert again["digest"] != first["digest"]
    assert {row["code"] for row in again["simulations"]} == {"other"}


def test_only_simulations_are_replaced_in_a_side():
    given = with_recorded(least(HIGH - LOW, abs(WIDE)) > 2, lambda side: [1.0] * side.seeds)
    assert all(side.recorded == (1.0,) * side.seeds for side in simulations_in(given.left))
    assert given.right.values(()) == [2.0]


@pytest.mark.parametrize(("packing", "tokens"), [("padded", 2 * 61), ("next_fit", 2 * 8 * 61)])
def test_tokens_a_second_count_no_padding(packing, tokens, monkeypatch):
    monkeypatch.setattr(packed_speed, "SIGMA", 0.0)  # documents of 61 tokens
    monkeypatch.setattr(packed_speed, "Timer", lambda: Timer(partial(next, count())))
    assert packed_speed.tokens_per_second(packing, 2, seed=0) == tokens


def test_times_are_measured_seed_by_seed_in_turn(paper):
    sides = [timed(NOISE, mean, seeds=3) for mean in (0.0, 5.0)]
    record = record_simulations(
        replace(paper, claims=(Claim("faster", "One is faster.", sides[0] < sides[1]),))
    )
    assert calls() == [0, 0, 1, 1, 2, 2]
    assert [row["code"] for row in record["simulations"]] == ["", ""]
    assert [row["values"] for row in record["simulations"]] == [side.simulate() for side in sides]


def test_recorded_simulations_are_made_again_by_force(paper):
    record_simulations(paper)
    calls().clear()
    record_simulations(paper)
    assert not calls()
    record_simulations(paper, force=True)
    assert len(calls()) == 16


def test_a_measured_claim_says_so_and_is_not_measured_again_by_the_check(paper):
    sides = [timed(NOISE, mean, seeds=5) for mean in (0.0, 5.0)]
    paper = replace(paper, claims=(Claim("faster", "One is faster.", sides[0] < sides[1]),))
    record_simulations(paper)
    calls().clear()
    (verdict,) = without_runs(paper, read_records())
    assert verdict["reason"] == "measured 5 times on one machine"
    assert not problems(paper)
    assert not calls()


def test_published_verdicts_read_the_published_record_alone(paper):
    record_simulations(paper)  # in runs/
    published = read_records(paper.slug, Shelf.PUBLISHED)
    assert {row["verdict"] for row in without_runs(paper, published)} == {"undecided"}
    move(read_records())
    published = read_records(paper.slug, Shelf.PUBLISHED)
    assert {row["verdict"] for row in without_runs(paper, published)} == {"held"}


def test_publishing_records_and_the_page_names_the_record(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    monkeypatch.setattr(bandit, "ROUNDS", 3)
    bandit.rounds.cache_clear()
    publish(("xpo",))
    published = read_records("xpo", Shelf.PUBLISHED)
    (record,) = (r for r in published if r["kind"] == "simulations")
    assert [row["values"] for row in record["simulations"]] == [[3.0] * 20] * 2  # none is found
    page = report_files(find_paper("xpo"), published, "cpu", tmp_path)["report.md"]
    assert f"{record['digest']}.json" in page
    line = find_line(page, "XPO finds it sooner")
    assert line.startswith("| undecided ")  # all values are equal
    assert line.endswith("20 |")
    bandit.rounds.cache_clear()


def find_line(page, text):
    """Return the line of a page that holds a text."""
    return next(line for line in page.splitlines() if text in line)
