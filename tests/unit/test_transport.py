"""Losses across vocabularies: worked examples of GOLD's card, and laws of groups and distances."""

from itertools import accumulate, permutations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.losses.divergence import divergence
from core.losses.transport import (
    LEAST,
    Matches,
    aligned_groups,
    matched_and_sorted,
    matches_of,
    merged,
    sorted_l1,
)

LENGTHS = st.lists(st.integers(0, 4), min_size=1, max_size=8)
ROWS = st.lists(st.lists(st.floats(0.01, 1), min_size=4, max_size=4), min_size=4, max_size=4).map(
    lambda rows: tensor(rows) / tensor(rows).sum(-1, keepdim=True)
)


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def test_the_worked_example_of_sorted_distances():
    student = tensor([[0.7, 0.2, 0.1], [0.25, 0.5, 0.25]])
    teacher = tensor([[0.1, 0.6, 0.2, 0.1], [0.3, 0.3, 0.2, 0.2]])
    assert sorted_l1(student, teacher).tolist() == pytest.approx([0.2, 0.5])
    assert sorted_l1(teacher, student).tolist() == pytest.approx([0.2, 0.5])


@pytest.mark.parametrize(
    ("strategy", "expected"), [("observed", [0.54, 0.27, 0.09]), ("bayesian", [0.03, 0.54, 0.03])]
)
def test_the_worked_example_of_a_merge(strategy, expected):
    rows = tensor([[0.6, 0.3, 0.1], [0.05, 0.9, 0.05]])
    found = merged(rows, torch.tensor([0, 1]), [[0, 1]], strategy)
    assert found[0].tolist() == pytest.approx(expected)


def test_the_worked_example_of_groups():
    assert aligned_groups([4, 9, 10], [2, 4, 10]) == ([[0], [1, 2]], [[0, 1], [2]])


def test_tokens_without_text_are_in_no_group():
    """A beginning token on one side, an end token on the other, and one behind the common text."""
    assert aligned_groups([0, 3, 6], [3, 6, 6]) == ([[1], [2]], [[0], [1]])
    assert aligned_groups([3, 6, 8], [3, 7]) == ([[0]], [[0]])
    assert aligned_groups([2], [1]) == ([], [])


def test_a_character_cut_into_tokens_is_one_group():
    """Of two characters of three bytes the second is cut, by the student after its first byte."""
    assert aligned_groups([3, 4, 6], [3, 6]) == ([[0], [1, 2]], [[0], [1]])


@given(LENGTHS, LENGTHS)
def test_groups_end_at_one_byte_and_hold_all_text_before_it(lengths, other):
    sides = [[*accumulate(lengths)], [*accumulate(other)]]
    groups = aligned_groups(*sides)
    common = sorted({*sides[0]} & {*sides[1]} - {0})
    for ends, side in zip(sides, groups, strict=True):
        assert [ends[group[-1]] for group in side] == common
        texts = [i for i, end in enumerate(ends) if end > (ends[i - 1] if i else 0)]
        inside = [i for i in texts if common and ends[i] <= common[-1]]
        assert [i for group in side for i in group] == inside
        assert all(side)


@given(ROWS, st.permutations(range(4)))
def test_a_permutation_changes_no_sorted_distance(rows, order):
    other = rows.flip(0)
    assert sorted_l1(rows[:, order], other).tolist() == sorted_l1(rows, other).tolist()


@given(ROWS, st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_a_group_of_one_token_keeps_its_row_and_the_rest_multiply(rows, tokens):
    ids = torch.tensor(tokens)
    for strategy in ("bayesian", "observed"):
        assert merged(rows, ids, [[2]], strategy).tolist() == rows[2:3].tolist()
        assert merged(rows, ids, [], strategy).shape == (0, 4)
    chance = rows[0, tokens[0]] * rows[1, tokens[1]]
    last = merged(rows, ids, [[0, 1, 2], [3]], "bayesian")
    assert last[0].tolist() == pytest.approx((rows[2] * chance).tolist())
    assert last[1].tolist() == rows[3].tolist()


def test_entries_with_equal_texts_match_in_one_order():
    """The vocabulary of a tokenizer is in another order in each process."""
    for entries in permutations([("c", 0), ("x", 1), ("a", 2)]):
        matches = matches_of({"a": 0, "b": 1, "c": 2}, dict(entries))
        assert [places.tolist() for places in matches] == [[2, 0], [0, 2]]
    assert matches_of({"a": 0}, {"b": 0}).own.tolist() == []


@given(ROWS, st.sampled_from([0.0, 0.3, 1.0]))
def test_one_vocabulary_has_the_divergence_of_its_entries(rows, beta):
    every, other = Matches(torch.arange(4), torch.arange(4)), rows.flip(0)
    matched, distance = matched_and_sorted(rows, other, every, beta)
    expected = divergence(rows.log(), other.log(), beta)
    assert matched.tolist() == pytest.approx(expected.tolist(), abs=1e-12)
    assert distance.tolist() == [0.0] * 4
    order = torch.tensor([2, 0, 3, 1])  # matched entries are told apart, unlike sorted ones
    moved = Matches(order.argsort(), torch.arange(4))
    again, _ = matched_and_sorted(rows[:, order], other, moved, beta)
    assert again.tolist() == pytest.approx(matched.tolist(), abs=1e-12)


def test_vocabularies_without_common_entries_have_sorted_distances_alone():
    rows, none = torch.eye(3, 4).double(), Matches(*(torch.tensor([], dtype=torch.long),) * 2)
    matched, distance = matched_and_sorted(rows, rows[:, [1, 0, 2, 3]], none, 0.5)
    assert matched.tolist() == distance.tolist() == [0.0] * 3


def test_an_impossible_entry_counts_as_a_least_probability():
    rows, every = tensor([[0.0, 0.5]]), Matches(torch.arange(2), torch.arange(2))
    loss, _ = matched_and_sorted(rows, tensor([[0.5, 0.5]]), every, 0.0)
    assert loss.item() == pytest.approx(0.5 * (tensor(0.5).log() - tensor(LEAST).log()).item())


def test_the_reverse_divergence_falls_below_0_when_mass_leaves_the_matched_entries():
    every, teacher = Matches(torch.arange(2), torch.arange(2)), tensor([[0.6, 0.4]])
    losses = [
        matched_and_sorted(teacher * share, teacher, every, 1.0)[0].item() for share in (1.0, 0.5)
    ]
    assert losses == pytest.approx([0.0, 0.5 * tensor(0.5).log().item()])
    forward, _ = matched_and_sorted(teacher / 2, teacher, every, 0.0)
    assert forward.item() == pytest.approx(-tensor(0.5).log().item())
