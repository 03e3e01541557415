"""Laws of distillation: their numbers, and changes of losses that they notice."""

from math import log

import pytest
import torch
from law_mutants import holds, laws_of, survivors

from core import SDPOConfig
from core.distillation.own_teacher_config import token_losses
from core.laws.distilled_tokens import end_weights, hinted_gradient, rises
from core.laws.divergence_estimators import mean_divergence, mean_errors, variances
from core.laws.gaussian_students import entropy, overestimated_mass, student, teacher_logp
from core.laws.house import LAWS as HOUSE
from core.laws.logit_transport import merge_errors, permutation_changes, swapped
from core.laws.sequence_kl import (
    LENGTH,
    SEQUENCES,
    gradient_errors,
    gradients,
    policies,
    prefixes,
    sequence_gradients,
    variance_ratios,
)
from core.laws.stopping import REWARD, STOP, advantage_of_going_on, push

PAPERS = ("gkd", "on-policy-distillation", "gold", "minillm", "sdpo", "sdft", "iw-opd")
LAWS = {
    "gkd": 3,
    "on-policy-distillation": 2,
    "gold": 3,
    "minillm": 3,
    "sdpo": 1,
    "sdft": 0,
    "iw-opd": 1,
}

# Numbers beside a probability of 0, axes of matrices, and a zero that is sorted away.
EQUIVALENT = {
    "divergence": ["constant: 0.0 -> 1.0"] * 3 + ["sign: -1 -> 1"],
    "transport": ["constant: 0 -> 1"],
}


def test_a_small_student_covers_both_modes_or_one():
    assert [entropy(beta) for beta in (0.0, 1.0)] == pytest.approx([3.909, 2.584], abs=1e-3)
    assert [teacher_logp(b) for b in (0.1, 0.9)] == pytest.approx([-5.522, -3.094], abs=2e-3)
    masses = [overestimated_mass(beta) for beta in (0.0, 1.0)]
    assert masses == pytest.approx([0.2757, 0.0029], abs=1e-4)
    assert entropy(0.0) < log(65)
    assert student(1.0).argmax().item() == 20  # the larger mode


def test_the_loss_jumps_at_both_ends():
    assert mean_divergence(0.0) / mean_divergence(0.1) == pytest.approx(11.19, abs=0.01)
    assert mean_divergence(1.0) / mean_divergence(0.9) == pytest.approx(11.86, abs=0.01)


def test_sampled_tokens_have_the_gradient_of_the_divergence_and_a_variance():
    assert max(mean_errors()) < 1e-13
    assert max(variances("full")) < 1e-25
    assert min(variances("sampled")) > 0.05


def test_the_token_loss_has_another_gradient_than_the_kl_of_sequences():
    for estimator in ("reinforce", "single_step"):
        assert max(gradient_errors(estimator)) < 1e-13
    assert min(gradient_errors("token")) > 0.05
    chances = gradients("reinforce")[1]
    assert chances.sum(1).tolist() == pytest.approx([1.0] * len(chances))


def test_one_advantage_of_a_completion_has_the_gradient_of_the_kl_of_sequences():
    """That of a sampled token has the gradient of the KL at each prefix alone."""
    logits, teacher = policies()
    args = SDPOConfig(distillation_mode="sampled_completion", report_to="none", use_cpu=True)
    logps, other = (x.log_softmax(-1)[:, prefixes(), SEQUENCES] for x in (logits, teacher))
    sampled = (logps.flatten(0, 1), other.flatten(0, 1))
    apart = (sampled[0] - sampled[1]).detach()
    numbers = torch.stack([torch.zeros_like(apart), apart, sampled[0]], -1)
    losses = token_losses(numbers, None, torch.ones(3), args)
    chances = logps.detach().sum(-1).exp()
    expected = LENGTH * (chances.flatten() * losses.sum(-1)).sum()
    (gradient,) = torch.autograd.grad(expected, logits)
    torch.testing.assert_close(gradient.flatten(1), sequence_gradients())


def test_the_single_step_lowers_most_variances_and_not_all():
    ratios = sorted(variance_ratios())
    assert len(ratios) == 200
    assert ratios[100] == pytest.approx(0.706, abs=1e-3)
    assert sum(ratio > 1 for ratio in ratios) == 4
    assert ratios[-1] == pytest.approx(1.063, abs=1e-3)


def test_going_on_costs_all_later_rewards_or_their_mean():
    assert advantage_of_going_on("sum") == pytest.approx(REWARD / STOP)
    assert advantage_of_going_on("mean") == pytest.approx(REWARD)
    assert push("sum") == pytest.approx(0.18)
    assert push("mean") == pytest.approx(0.018)


def test_sorting_forgets_tokens_and_the_chain_rule_does_not():
    assert permutation_changes() == [0.0] * 32
    assert max(swapped("sorted")) < 1e-15 < 1e-4 < min(swapped("kl"))
    assert len(merge_errors("bayesian")) == 2  # of the groups of several tokens
    assert max(merge_errors("bayesian")) < 1e-15 < 1e-3 < min(merge_errors("observed"))


def test_answers_without_a_hint_have_no_gradient():
    assert hinted_gradient(0, 0) == 0
    assert 0 < hinted_gradient(0, 1) < hinted_gradient(1, 0) < hinted_gradient(2, 0)
    assert hinted_gradient(4, 0) == hinted_gradient(0, 4)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
def test_weights_begin_and_end_where_the_paper_says(gamma):
    assert set(rises(gamma)) == {0.0}
    assert end_weights(gamma, 0) == [1 + gamma] * 64
    assert end_weights(gamma, -1) == pytest.approx([1.0] * 64)


def test_every_paper_has_its_laws_and_they_hold():
    for slug, count in LAWS.items():
        laws = laws_of(slug)
        assert len(laws) == count, slug
        assert all(map(holds, laws)), slug


def forget_students():
    """Let students and gradients be computed again."""
    student.cache_clear()
    gradients.cache_clear()


@pytest.mark.parametrize("file", ["divergence", "transport"])
def test_the_laws_notice_every_change_of_losses(file):
    ours = [law for law in HOUSE if "distillation_equations" in str(law.test.left.call.function)]
    assert len(ours) == 5
    laws = [*ours, *laws_of(*PAPERS)]  # the quick ones first: the first that fails ends a trial
    found = survivors(laws, f"core/losses/{file}.py", before=forget_students)
    assert sorted(found) == EQUIVALENT[file]
