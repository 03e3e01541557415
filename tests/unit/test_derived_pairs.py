"""Quantities of pairs in a record follow from the stored log-probabilities of the pairs."""

from dataclasses import asdict

import pytest
import torch
from run_records import run_record, written_again

from core.families.family import SEEN
from core.preference.pair_quantities import (
    OF_FLIPPED,
    PAIR_QUANTITIES,
    QUANTILE_GAP,
    MovedPairs,
    moved_pairs,
    pair_columns,
    pair_quantity,
)
from core.preference.pair_sums import PairSums
from core.records.pair_files import pairs_digest, read_pairs, read_run_pairs, set_of, write_pairs
from core.records.places import own_results, results, stored_file
from core.records.record import read_records
from core.run.check import check_papers
from core.run.publish import move
from core.stages.probabilities import compare_quantities
from core.verdicts.derived_pairs import pair_problems
from core.verdicts.history import unknown_files
from eval.errors import DamagedFile

SLUG, COUNT = "dpo", 40
NAMES = [*PAIR_QUANTITIES, QUANTILE_GAP, f"pair_margin{SEEN}"]


@pytest.fixture(autouse=True)
def _root(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))


def some_pairs(seed):
    """Random pairs under a policy and its start, a third of them flipped."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 30, (2, COUNT), generator=generator).double()
    policy, start = (
        PairSums(chosen, rejected, *lengths, log_weight, gold)
        for chosen, rejected, log_weight, gold in -9
        * torch.rand(2, 4, COUNT, generator=generator).double()
    )
    return MovedPairs(policy, start, flipped=(torch.arange(COUNT) % 3 == 0).double())


def quantities(sets, *, at_start):
    return {
        name: asdict(
            pair_quantity(
                name.removesuffix(SEEN), moved_pairs(sets[set_of(name)], at_start=at_start)
            )
        )
        for name in NAMES
    }


@pytest.fixture
def record(tmp_path):
    """A stored run with the quantities of its pairs."""
    path = tmp_path / "pairs.parquet"
    write_pairs(path, {set_of(name): pair_columns(some_pairs(len(name))) for name in ("", SEEN)})
    sets = read_pairs(path)
    digest = pairs_digest(sets)
    write_pairs(own_results() / "samples" / f"{digest}.parquet", sets)
    changes = compare_quantities(*(quantities(sets, at_start=at) for at in (True, False)))
    return written_again(run_record(40, slug=SLUG, arm="dpo"), pairs=digest, probabilities=changes)


def sample_lines():
    lines = check_papers([SLUG])[SLUG]
    return [line for line in lines if line.startswith("samples:")]


def test_columns_of_pairs_are_the_pairs_in_single_precision():
    pairs = some_pairs(1)
    again = moved_pairs(pair_columns(pairs))
    for before, after in zip((*pairs[0], *pairs[1]), (*again[0], *again[1]), strict=True):
        assert torch.equal(before.float().double(), after)
    assert torch.equal(pairs.flipped, again.flipped)
    assert moved_pairs(pair_columns(pairs), at_start=True).chosen.tolist() == [0.0] * COUNT


def test_a_record_whose_quantities_follow_from_its_pairs_has_no_problem(record):
    assert list(pair_problems(record)) == []
    assert sample_lines() == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("field", ["before", "after", "after_interval"])
def test_a_forged_quantity_is_seen(record, name, field):
    quantity = record["probabilities"][name]
    value = quantity[field]
    forged = [value[0] - 0.01, value[1]] if isinstance(value, list) else value + 0.01
    changes = {**record["probabilities"], name: {**quantity, field: forged}}
    (line,) = pair_problems({**record, "probabilities": changes})
    assert f"{record['digest']}.json, {name}: is" in line
    assert "its pairs give" in line


def test_a_quantity_that_the_pairs_do_not_define_is_seen(record):
    sets = {
        name: {**columns, "flipped": [0] * COUNT}
        for name, columns in read_run_pairs(record).items()
    }
    digest = pairs_digest(sets)
    write_pairs(own_results() / "samples" / f"{digest}.parquet", sets)
    lines = list(pair_problems({**record, "pairs": digest}))
    assert sorted(line.split(", ")[1].split(":")[0] for line in lines) == sorted(OF_FLIPPED)
    assert all(line.endswith("its pairs give None") for line in lines)


def test_the_check_names_a_forged_quantity_and_a_changed_or_missing_file(record):
    quantity = record["probabilities"]["pair_margin"]
    changes = {**record["probabilities"], "pair_margin": {**quantity, "after": 9.0}}
    forged = written_again(record, probabilities=changes)
    (line,) = sample_lines()
    assert f"{forged['digest']}.json, pair_margin: is" in line
    path = stored_file(record["pairs"])
    sets = {
        name: {c: [*v] for c, v in columns.items()} for name, columns in read_pairs(path).items()
    }
    sets["held_out"]["policy_chosen"][0] += 0.5
    write_pairs(path, sets)
    assert "altered" in sample_lines()[0]
    with pytest.raises(DamagedFile, match="altered"):
        read_run_pairs(record)
    path.write_bytes(path.read_bytes()[:-9])
    assert "not a whole Parquet file" in sample_lines()[0]
    path.unlink()
    assert "no such file of pairs" in sample_lines()[0]


def test_an_older_record_without_pairs_stays_valid(record):
    written_again({name: v for name, v in record.items() if name != "pairs"}, seed=7)
    older = next(r for r in read_records(SLUG) if r["seed"] == 7)
    assert list(pair_problems(older)) == []
    assert read_run_pairs(older) == {}
    assert sample_lines() == []


def test_publishing_moves_the_pairs_with_their_record(record):
    move(read_records(SLUG))
    path = stored_file(record["pairs"])
    assert path.is_relative_to(results())
    assert list(unknown_files([SLUG])) == []
    assert sample_lines() == []
