"""Divergences of a student from a teacher: worked examples of cards, bounds, limits, padding."""

from math import exp, inf, log, nan

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.losses.divergence import (
    divergence,
    kl,
    on_top_k,
    sampled_reverse_kl,
    token_divergences,
)
from eval.errors import BadValue

STUDENT = [[1.0, 0.0, -1.0], [0.2, 0.3, 0.5]]
TEACHER = [[0.5, 1.0, -0.5], [2.0, 0.0, -1.0]]
ROW = st.lists(st.floats(-8, 8), min_size=5, max_size=5)
BETAS = st.floats(0, 1)
INSIDE = st.floats(0.01, 0.99)


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def logps(*rows):
    return tensor([*rows]).log_softmax(-1)


def number(student, teacher, beta):
    return divergence(logps(student), logps(teacher), beta).item()


@pytest.mark.parametrize(
    ("beta", "expected"),
    [
        (0.0, [0.245251, 0.691542]),
        (0.1, [0.021829, 0.061875]),
        (0.5, [0.059213, 0.177195]),
        (0.9, [0.021423, 0.073901]),
        (1.0, [0.239401, 0.891038]),
    ],
)
def test_the_worked_example_of_gkd(beta, expected):
    """Of arXiv 2306.13649; at 0 and 1 that of SDFT, and at 1 MiniLLM's single step, too."""
    found = divergence(logps(*STUDENT), logps(*TEACHER), beta)
    assert found.tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("beta", "mean"), [(0.0, 0.142789), (0.5, 0.035481), (1.0, 0.14746)])
def test_the_worked_example_at_temperature_2(beta, mean):
    cooled = (logps(*(tensor(x) / 2).tolist()) for x in (STUDENT, TEACHER))
    assert divergence(*cooled, beta).mean().item() == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize(("beta", "limit"), [(1e-4, 0.468345), (1 - 1e-4, 0.565116)])
def test_the_worked_example_of_limits(beta, limit):
    mean = divergence(logps(*STUDENT), logps(*TEACHER), beta).mean().item()
    assert mean / 1e-4 == pytest.approx(limit, abs=1e-5)


@pytest.mark.parametrize(
    ("has_tail", "expected"),
    [(True, [0.355794, 0.089135, 0.382763]), (False, [0.345995, 0.082341, 0.332724])],
)
def test_the_worked_example_of_sdpo(has_tail, expected):
    """Of arXiv 2601.20802, at alpha 0, 0.5 and 1."""
    pair = logps([2.0, 1.0, 0.0, -1.0]), logps([0.5, 1.2, 0.4, -0.5])
    found = [divergence(*on_top_k(*pair, 2, has_tail=has_tail), alpha) for alpha in (0, 0.5, 1)]
    assert [x.item() for x in found] == pytest.approx(expected, abs=1e-6)
    full = [divergence(*pair, alpha).item() for alpha in (0.0, 0.5, 1.0)]
    assert full == pytest.approx([0.356095, 0.089177, 0.382882], abs=1e-6)
    sampled = sampled_reverse_kl(*(x[:, [1]] for x in pair))
    assert sampled.item() == pytest.approx(0.986136, abs=1e-6)


def test_the_worked_example_of_on_policy_distillation():
    tokens = torch.tensor([[0], [2]])
    student, teacher = (logps(*x).gather(1, tokens) for x in (STUDENT, TEACHER))
    assert student.flatten().tolist() == pytest.approx([-0.407606, -0.939831], abs=1e-6)
    assert teacher.flatten().tolist() == pytest.approx([-1.104131, -3.169846], abs=1e-6)
    assert (student - teacher).mean().item() == pytest.approx(1.46327, abs=5e-6)
    assert sampled_reverse_kl(student, teacher).mean().item() == pytest.approx(-1.189872, abs=1e-6)


def test_the_sampled_loss_has_no_gradient_through_its_weight():
    student, teacher = tensor([[-0.4]]).requires_grad_(), tensor([[-1.5]])
    (gradient,) = torch.autograd.grad(sampled_reverse_kl(student, teacher).sum(), student)
    assert gradient.item() == pytest.approx(1.1)


@given(ROW, ROW, INSIDE | st.sampled_from([0.0, 1.0]))
def test_exchanging_the_models_is_exchanging_beta(student, teacher, beta):
    swapped = number(teacher, student, 1 - beta)
    assert number(student, teacher, beta) == pytest.approx(swapped, rel=1e-9, abs=1e-12)


@given(ROW, ROW, INSIDE)
def test_a_divergence_inside_is_between_0_and_the_entropy_of_its_weights(student, teacher, beta):
    bound = -beta * log(beta) - (1 - beta) * log(1 - beta)
    assert -1e-12 <= number(student, teacher, beta) <= bound + 1e-12


@given(INSIDE)
def test_models_without_a_common_token_reach_the_bound(beta):
    student, teacher = ([1.0, 2.0, -inf, -inf], [-inf, -inf, 3.0, 0.0])
    bound = -beta * log(beta) - (1 - beta) * log(1 - beta)
    assert number(student, teacher, beta) == pytest.approx(bound)
    assert number(student, teacher, 0.0) == number(student, teacher, 1.0) == inf


@given(ROW, BETAS)
def test_equal_models_have_no_divergence(row, beta):
    assert abs(number(row, [x + 3.0 for x in row], beta)) < 1e-12


@given(ROW, ROW, INSIDE)
def test_a_loss_jumps_where_the_formula_changes(student, teacher, beta):
    """At 0 and 1 it is at least 1 / beta and 1 / (1 - beta) times as large as inside."""
    inside = number(student, teacher, beta)
    assert inside <= beta * number(student, teacher, 0.0) + 1e-12
    assert inside <= (1 - beta) * number(student, teacher, 1.0) + 1e-12


@given(ROW, ROW, BETAS, st.integers(1, 5))
def test_a_tail_bucket_never_adds_to_the_divergence(student, teacher, beta, k):
    """Merging tokens loses what tells them apart, and more tokens tell more apart."""
    pair = logps(student), logps(teacher)
    full = divergence(*pair, beta).item()
    buckets = divergence(*on_top_k(*pair, k, has_tail=True), beta).item()
    assert -1e-12 <= buckets <= full + 1e-12
    if k >= 4:  # a tail of one token or none
        assert buckets == pytest.approx(full, abs=1e-12)


@given(ROW, ROW, st.integers(1, 5))
def test_a_tail_makes_the_top_tokens_a_distribution(student, teacher, k):
    for part in on_top_k(logps(student), logps(teacher), k, has_tail=True):
        assert part.exp().sum().item() == pytest.approx(1.0)
    if k > 1:
        for part in on_top_k(logps(student), logps(teacher), k, has_tail=False):
            assert part.exp().sum().item() == pytest.approx(1.0)


def test_top_tokens_are_the_students():
    student, teacher = logps([0.0, 3.0, 2.0]), logps([5.0, 1.0, 0.0])
    kept, other = on_top_k(student, teacher, 2, has_tail=True)
    assert kept[0, :3].tolist() == [-inf, *student[0, 1:].tolist()]
    tail = teacher[0, 0].item()
    assert other[0].tolist() == pytest.approx([-inf, *teacher[0, 1:].tolist(), tail])


@pytest.mark.parametrize("beta", [-0.1, 1.1, nan])
def test_a_beta_outside_is_refused(beta):
    with pytest.raises(BadValue, match="expected 0 "):
        number(STUDENT[0], TEACHER[0], beta)


@pytest.mark.parametrize(("k", "has_tail"), [(1, False), (0, True), (4, True), (4, False)])
def test_a_top_k_that_compares_nothing_or_too_much_is_refused(k, has_tail):
    with pytest.raises(BadValue, match=f"top-k of {k} with"):
        on_top_k(logps(*STUDENT), logps(*TEACHER), k, has_tail=has_tail)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("k", [None, 2, 3, 4])
def test_a_token_impossible_under_both_models_adds_nothing(beta, k):
    """A vocabulary that is padded with -inf has a finite loss and gradient."""
    padded = [tensor([[*row, -inf]]) for row in (STUDENT[0], TEACHER[0])]
    plain = [tensor([STUDENT[0]]), tensor([TEACHER[0]])]
    results = []
    for student, teacher in (padded, plain):
        logits = student.requires_grad_()
        pair = logits.log_softmax(-1), teacher.log_softmax(-1)
        if k is not None:
            pair = on_top_k(*pair, min(k, logits.size(1)), has_tail=True)
        loss = divergence(*pair, beta).sum()
        results.append((loss.item(), torch.autograd.grad(loss, logits)[0][0, :3].tolist()))
    assert results[0][0] == pytest.approx(results[1][0], abs=1e-12)
    assert results[0][1] == pytest.approx(results[1][1], abs=1e-12)


def test_a_token_that_only_one_model_can_produce_is_counted():
    student, teacher = logps([0.0, -inf]), logps([0.0, 0.0])
    assert kl(student, teacher).item() == pytest.approx(log(2))
    assert kl(teacher, student).item() == inf
    expected = 0.5 * (0.5 * log(0.5 / 0.75) + 0.5 * log(2)) + 0.5 * log(1 / 0.75)
    assert divergence(student, teacher, 0.5).item() == pytest.approx(expected)


@given(st.lists(ROW, min_size=6, max_size=6), BETAS, st.sampled_from([nan, inf, -inf, 1e300]))
def test_padding_is_not_read(rows, beta, filler):
    mask = torch.tensor([[1, 0, 1], [0, 0, 1]])
    logits, teacher = tensor(rows).view(2, 3, 5), tensor(rows[::-1]).view(2, 3, 5)

    def measured(student, other):
        student.requires_grad_()
        found = token_divergences(student, other, mask, lambda s, t: divergence(s, t, beta))
        return found.detach(), torch.autograd.grad(found.sum(), student)[0]

    filled = [torch.where(mask[..., None] > 0, x, filler) for x in (logits, teacher)]
    values, gradient = measured(*filled)
    expected, exact = measured(logits.clone(), teacher)
    assert values.tolist() == expected.tolist()
    assert gradient.tolist() == exact.tolist()
    assert (values[mask == 0] == 0).all()
    alone = divergence(logits[0, :1].log_softmax(-1), teacher[0, :1].log_softmax(-1), beta)
    assert values[0, 0].item() == pytest.approx(alone.item(), abs=1e-12)


def test_a_sum_over_the_vocabulary_is_not_clamped():
    """A teacher that is sure of another token than the student has a KL beyond any usual bound."""
    student, teacher = logps([0.0, 500.0]), logps([500.0, 0.0])
    assert kl(student, teacher).item() == pytest.approx(500.0)
    assert divergence(student, teacher, 0.0).item() == pytest.approx(500.0)
    assert exp(-number([0.0, 500.0], [500.0, 0.0], 0.5)) == pytest.approx(0.5)
