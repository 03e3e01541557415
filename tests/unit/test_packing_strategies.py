"""Documents in rows: worked examples of three papers, bounds by brute force, warnings of cuts."""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from core.data.best_fit import LENGTHS, STRATEGIES, best_fit, next_fit, pack_rows
from core.data.collate import DataCollatorForLanguageModeling
from core.data.preparation import pieces_without_prompt, tokenize_rows
from core.data.sft import IGNORED

DOCUMENTS = [[1, 2, 3, 4, 5], [6, 7], [8, 9, 10], [11]]
FIGURE_1 = [14, 7, 5, 2, 3]  # lengths of documents in arXiv 2404.10830
WIDTHS = st.integers(1, 12)
FITTING = st.tuples(st.lists(st.integers(1, 12), max_size=11), st.just(12))


def packed(documents, width, strategy):
    rows = Dataset.from_dict({"input_ids": documents, "labels": documents})
    return pack_rows(rows, width, strategy).to_dict()


@pytest.mark.parametrize(
    ("strategy", "rows", "lengths"),
    [
        ("bfd_split", [[1, 2, 3, 4], [8, 9, 10, 5], [6, 7, 11]], [[4], [3, 1], [2, 1]]),
        ("bfd", [[1, 2, 3, 4], [8, 9, 10, 11], [6, 7]], [[4], [3, 1], [2]]),
        ("wrapped", [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11]], None),
        ("next_fit", [[1, 2, 3, 4], [6, 7], [8, 9, 10, 11]], [[4], [2], [3, 1]]),
    ],
)
def test_four_documents_in_rows_of_four_tokens(strategy, rows, lengths):
    found = packed(DOCUMENTS, 4, strategy)
    assert (found["input_ids"], found.get(LENGTHS)) == (rows, lengths)


@pytest.mark.parametrize(
    ("strategy", "rows", "lost", "cut"),
    [
        ("bfd_split", [[8], [7], [6, 2], [5, 3]], 0, 1),
        ("bfd", [[8], [7], [5, 3], [2]], 6, 0),
        ("wrapped", [[8], [8], [8], [7]], 0, 3),
    ],
)
def test_documents_of_figure_1(strategy, rows, lost, cut):
    documents = [[number] * length for number, length in enumerate(FIGURE_1)]
    found = packed(documents, 8, strategy)
    lengths = found.get(LENGTHS, [[len(row)] for row in found["input_ids"]])
    assert lengths == rows
    assert sum(FIGURE_1) - sum(map(sum, lengths)) == lost
    in_rows = Counter(number for row in found["input_ids"] for number in {*row})
    assert sum(count > 1 for count in in_rows.values()) == cut


def test_segments_and_positions_are_those_of_seqios_example():
    (row,) = Dataset.from_dict(packed([[8, 7, 1], [2, 3, 4, 1]], 10, "next_fit")).to_list()
    assert row[LENGTHS] == [3, 4]  # segments 1 and 2
    batch = DataCollatorForLanguageModeling(0, pad_to_multiple_of=10)([row])
    assert batch["input_ids"].tolist() == [[8, 7, 1, 2, 3, 4, 1, 0, 0, 0]]
    assert batch["position_ids"].tolist() == [[0, 1, 2, 0, 1, 2, 3, 0, 0, 0]]
    assert batch["labels"].tolist() == [[IGNORED, 7, 1, IGNORED, 3, 4, 1, *[IGNORED] * 3]]


@given(lengths=st.lists(st.integers(0, 20)), width=WIDTHS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_hold_documents_whole_or_from_their_start(strategy, lengths, width):
    documents = [[number] * length for number, length in enumerate(lengths)]
    found = STRATEGIES[strategy]({"input_ids": documents, "labels": documents}, width)
    assert all(0 < len(row) <= width for row in found["input_ids"])
    assert found["labels"] == found["input_ids"]
    tokens = Counter(token for row in found["input_ids"] for token in row)
    keeps = strategy in ("bfd_split", "wrapped")
    assert tokens == Counter(
        {n: length if keeps else min(length, width) for n, length in enumerate(lengths) if length}
    )


def fewest_rows(lengths, width):
    """The number of rows that hold these items, by trying every row for each of them."""

    @cache
    def search(rest, room):
        if not rest:
            return 0
        item, others = rest[0], rest[1:]
        placed = [
            search(others, tuple(sorted((*room[:at], room[at] - item, *room[at + 1 :]))))
            for at in {free: at for at, free in enumerate(room) if free >= item}.values()
        ]
        return min([*placed, 1 + search(others, tuple(sorted((*room, width - item))))])

    return search(tuple(sorted(lengths, reverse=True)), ())


@given(FITTING)
def test_decreasing_best_fit_takes_eleven_ninths_of_the_fewest_rows(case):
    lengths, width = case
    fewest, rows = fewest_rows(lengths, width), best_fit(lengths, width)
    assert sorted(index for row in rows for index in row) == [*range(len(lengths))]
    assert all(sum(lengths[index] for index in row) <= width for row in rows)
    assert fewest <= len(rows) <= (11 * fewest + 6) / 9


@given(FITTING)
def test_next_fit_opens_a_row_only_for_what_the_last_does_not_hold(case):
    lengths, width = case
    rows = next_fit(lengths, width)
    assert [index for row in rows for index in row] == [*range(len(lengths))]
    fills = [sum(lengths[index] for index in row) for row in rows]
    assert max(fills, default=0) <= width
    starts = [lengths[row[0]] for row in rows[1:]]
    assert all(fill + start > width for fill, start in zip(fills, starts, strict=False))


def test_documents_keep_their_order_on_request():
    assert best_fit([2, 3, 1], 4, decreasing=False) == [[0], [1, 2]]
    assert best_fit([2, 3, 1], 4) == [[1, 2], [0]]


ASKED = {"prompt": "1", "completion": "2" * 40}


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ("bfd_split", "12 of 15 pieces of documents are trained on without their prompt"),
        ("bfd", ""),
        ("next_fit", ""),
    ],
)
def test_pieces_that_lost_their_prompt_are_counted(strategy, message, tiny_tokenizer, caplog):
    length = len(tokenize_rows(Dataset.from_list([ASKED]), tiny_tokenizer)[0]["input_ids"])
    rows = Dataset.from_list([ASKED] * 3)
    caplog.clear()
    tokenize_rows(rows, tiny_tokenizer, max_length=-(-length // 5), packing=strategy)
    assert bool(caplog.text) == bool(message)
    assert message in caplog.text
    caplog.clear()
    tokenize_rows(rows, tiny_tokenizer, max_length=length, packing=strategy)
    assert not caplog.text


@pytest.mark.parametrize(
    ("labels", "pieces"),
    [
        ([IGNORED, 5, 6, 7, 8], 2),
        ([5, 6, 7, 8, 9], 0),  # a text without a prompt
        ([IGNORED] * 4 + [5], 1),  # the second piece is prompt alone
        ([IGNORED, 5], 0),
        ([], 0),
    ],
)
def test_a_piece_counts_if_it_has_labels_and_no_prompt(labels, pieces):
    assert pieces_without_prompt(np.array(labels, dtype=int) != IGNORED, 2) == pieces


@pytest.mark.parametrize("packing", [None, "bfd"])
def test_rows_that_lost_all_labels_are_counted(packing, tiny_tokenizer, caplog):
    rows = Dataset.from_list([{"prompt": "1" * 20, "completion": "2"}, ASKED])
    caplog.clear()
    left = tokenize_rows(rows, tiny_tokenizer, max_length=8, packing=packing)
    assert len(left) == (1 if packing is None else 2)
    assert "1 of 2" in caplog.text
    assert "no token to train on within max_length=8" in caplog.text
