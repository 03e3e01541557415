"""Laws of packing hold, and notice changes of the code that packs and of what joins documents."""

import pytest
from law_mutants import holds, laws_of, survivors
from torch import arange

from core.data import collate
from core.laws import packed_rows
from core.laws.packed_rows import cut_documents, loss_changes, packed, row_excess, rows_by_order


@pytest.fixture(autouse=True)
def few_documents(monkeypatch):
    """A tenth of the documents, with lengths that differ much; nothing is left for other tests."""
    monkeypatch.setattr(packed_rows, "DOCUMENTS", 1000)
    monkeypatch.setattr(packed_rows, "CASES", ((1.0, 128), (1.5, 512)))
    forget_counts()
    yield
    forget_counts()


def forget_counts():
    packed_rows.packed.cache_clear()
    packed_rows.lengths.cache_clear()


def test_every_law_holds():
    assert all(map(holds, laws_of("best-fit-packing", "t5-packing")))


def test_they_notice_changes_of_the_strategies():
    laws = laws_of("best-fit-packing", "t5-packing")
    found = survivors(laws, "core/data/best_fit.py", before=packed.cache_clear)
    # the key of documents that keep their order, and a first document of one token
    assert found == ["constant: 0 -> 1", "constant: 0 -> 1"]


def test_ledgers_are_cut_where_a_row_is_full_or_where_they_are_longer_than_one():
    split, wrapped = map(packed_rows.cut_ledgers, ("bfd_split", "wrapped"))
    assert all(0.15 < a < 0.25 and 0.6 < b < 0.75 for a, b in zip(split, wrapped, strict=True))
    assert packed_rows.cut_ledgers("bfd") == [0.0] * 4


def test_rows_are_within_a_thousandth_of_the_fewest():
    assert max(row_excess("bfd_split")) < 1e-3
    assert sum(rows_by_order(True)) < sum(rows_by_order(False))
    assert cut_documents("next_fit") == cut_documents("bfd") == [0, 0]


def test_positions_that_go_on_let_documents_meet(monkeypatch):
    assert max(loss_changes(isolated=True)) < 1e-12
    monkeypatch.setattr(
        collate,
        "position_rows",
        lambda rows: [arange(len(row["input_ids"])).tolist() for row in rows],
    )
    assert min(loss_changes(isolated=True)) > 1e-3


def test_a_document_that_is_scored_from_its_first_token_is_noticed(monkeypatch):
    """Of a row without isolation alone: with it, the first token of a document is no label."""
    monkeypatch.setattr(packed_rows, "IGNORED", 7)
    assert max(loss_changes(isolated=True)) < 1e-12
    assert min(loss_changes(isolated=False)) > 1e-3
