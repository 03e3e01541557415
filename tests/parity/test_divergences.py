"""Divergences, weights and returns of distillation, and those of TRL 1.16 or of MiniLLM's release.

The divisor of a mean is handed in; the numbers are of one token or one completion each.
"""

from collections import defaultdict
from types import SimpleNamespace

import pytest
import torch
from releases import class_of, wheel
from torch.nn import functional
from trl.experimental.gkd import GKDTrainer
from trl.experimental.gold.gold_trainer import GOLDTrainer, ULDLoss
from trl.experimental.iw_opd import IWOPDTrainer
from trl.experimental.sdft import loss_utils as sdft
from trl.experimental.sdpo import loss_utils as sdpo

from core.losses.divergence import (
    divergence,
    on_top_k,
    sampled_reverse_kl,
    token_divergences,
)
from core.losses.returns import later_rewards, mean_of_later_rewards
from core.losses.token_weights import capped_ratio, position_weights
from core.losses.transport import (
    aligned_groups,
    matched_and_sorted,
    matches_of,
    merged,
    sorted_l1,
)

LIMIT = 1e-10
BETAS = [0.0, 0.1, 0.3, 0.5, 0.9, 1.0]
PADDING = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]])
LABELS = torch.where(PADDING > 0, 1, -100)
TOKENS = torch.tensor([[1, 0, 4, 2], [3, 3, 0, 1]])
MINILLM = "trl/experimental/minillm/minillm_trainer.py"


def logits(seed, *shape):
    draw = torch.Generator().manual_seed(seed)
    return 2 * torch.randn(*(shape or (2, 4, 6)), generator=draw, dtype=torch.float64)


def logps(x):
    return x.log_softmax(-1)


def chosen(x):
    return logps(x).gather(-1, TOKENS.unsqueeze(-1)).squeeze(-1)


def compare(ours, theirs, *leaves):
    """Losses, and gradients by the leaves, differ by less than the limit."""
    assert (ours - theirs).abs().max().item() < LIMIT
    for leaf in leaves:
        found, expected = (
            torch.autograd.grad(x.sum(), leaf, retain_graph=True)[0] for x in (ours, theirs)
        )
        assert expected.abs().max() > 1e-3
        assert (found - expected).abs().max().item() < LIMIT


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("trainer", [GKDTrainer, GOLDTrainer, IWOPDTrainer])
def test_the_divergence_of_labelled_tokens(trainer, beta, temperature):
    student, teacher = logits(0).requires_grad_(), logits(1)
    ours = token_divergences(
        student / temperature, teacher / temperature, PADDING, lambda s, t: divergence(s, t, beta)
    )
    theirs = trainer.generalized_jsd_loss(
        student, teacher, LABELS, beta=beta, temperature=temperature, num_items_in_batch=7
    )
    compare(ours.sum() / 7, theirs, student)


@pytest.mark.parametrize("module", [sdpo, sdft])
@pytest.mark.parametrize("alpha", BETAS)
def test_the_divergences_of_self_distillation(module, alpha):
    student, teacher = logits(2, 5, 6).requires_grad_(), logits(3, 5, 6)
    pair = logps(student), logps(teacher)
    full = module.compute_full_logit_self_distillation_loss(
        student, teacher, distillation_alpha=alpha
    )
    compare(divergence(*pair, alpha), full, student)
    for k in (1, 2, 4):
        for has_tail in (True, False)[: 1 if k == 1 else 2]:
            theirs = module.compute_topk_self_distillation_loss(
                student,
                teacher,
                distillation_topk=k,
                distillation_alpha=alpha,
                distillation_add_tail=has_tail,
            )
            ours = divergence(*on_top_k(*pair, k, has_tail=has_tail), alpha)
            compare(ours, theirs, student)


def test_a_top_k_of_one_token_without_tail_has_no_loss_in_trl():
    loss = sdpo.compute_topk_self_distillation_loss(
        logits(2, 5, 6),
        logits(3, 5, 6),
        distillation_topk=1,
        distillation_alpha=0.5,
        distillation_add_tail=False,
    )
    assert (loss == 0).all()


def test_a_token_impossible_under_both_models_is_no_number_in_trl():
    padded = [torch.cat([logits(seed), torch.full((2, 4, 1), -torch.inf)], -1) for seed in (0, 1)]
    for beta in BETAS:
        theirs = GKDTrainer.generalized_jsd_loss(*padded, LABELS, beta=beta)
        ours = token_divergences(*padded, PADDING, lambda s, t, b=beta: divergence(s, t, b))
        assert theirs.isnan()
        assert ours.isfinite().all()


def test_the_top_k_of_iw_opd_at_the_reverse_kl():
    student, teacher = logits(4).requires_grad_(), logits(5)
    theirs = IWOPDTrainer.generalized_jsd_loss(
        student, teacher, LABELS, beta=1.0, top_k=3, add_tail=True, num_items_in_batch=7
    )
    ours = token_divergences(
        student, teacher, PADDING, lambda s, t: divergence(*on_top_k(s, t, 3, has_tail=True), 1.0)
    )
    compare(ours.sum() / 7, theirs, student)


@pytest.mark.parametrize("module", [sdpo, sdft])
def test_the_loss_of_sampled_tokens_and_its_ratio(module):
    student, teacher = logits(6).requires_grad_(), logits(7)
    theirs = module.compute_sampled_token_self_distillation_loss(
        student, teacher, TOKENS, distillation_alpha=1.0
    )
    ours = sampled_reverse_kl(chosen(student), chosen(teacher))
    compare(ours, theirs, student)
    old = chosen(logits(8)) * torch.tensor([1.0, 1.0, 30.0, 1.0])  # a difference beyond 20
    ratio = capped_ratio(chosen(student) - old, torch.ones_like(old), 2.0)
    assert (ratio == 2.0).any()
    assert (ratio < 2.0).any()
    theirs = module.apply_importance_sampling_clipping(theirs, chosen(student), old, 2.0)
    compare(ours * ratio, theirs, student)


@pytest.mark.parametrize("gamma", [0.0, 0.5])
def test_the_weighted_loss_of_iw_opd(gamma):
    student, teacher, old = logits(9).requires_grad_(), chosen(logits(10)), chosen(logits(11))
    trainer = SimpleNamespace(
        temperature=1.0,
        iw_opd_gamma=gamma,
        iw_opd_epsilon=1e-8,
        model=SimpleNamespace(training=True),
        _metrics=defaultdict(lambda: defaultdict(list)),
    )
    theirs = IWOPDTrainer._compute_iw_opd_loss(trainer, student, TOKENS, LABELS, teacher, old, 7)
    advantages = teacher - old
    weights = position_weights(advantages, PADDING, gamma, "all")
    ours = -(weights * advantages * chosen(student) * PADDING).sum() / 7
    compare(ours, theirs, student)


@pytest.mark.parametrize("strategy", ["observed", "bayesian"])
def test_groups_and_merged_rows_of_gold(strategy):
    ends = [2, 5, 6, 9], [5, 7, 9]
    spans = [[(0, end) for end in side] for side in ends]
    assert aligned_groups(*ends) == ULDLoss._align_by_byte_offsets(*spans)
    probabilities, tokens = logits(12, 4, 6).softmax(-1).requires_grad_(), [1, 0, 4, 2]
    loss = SimpleNamespace(token_merge_strategy=strategy)
    groups = aligned_groups(*ends)[0]
    theirs = ULDLoss._merge_probabilities_with_alignment_groups(loss, probabilities, groups, tokens)
    compare(merged(probabilities, torch.tensor(tokens), groups, strategy), theirs, probabilities)


@pytest.mark.parametrize("skips", [True, False])
def test_the_positional_loss_of_gold(skips):
    """Of the logits at the labels, and with both ends of an answer, as its trainer is."""
    loss = SimpleNamespace(
        skip_student_eos=skips,
        skip_teacher_eos=skips,
        token_merge_strategy="observed",
        student_temperature=1.0,
        teacher_temperature=1.0,
        use_extended_uld=False,
        use_hybrid_loss=False,
        distillation_weight=1.0,
        _get_start_and_size_answers=lambda labels: ULDLoss._get_start_and_size_answers(
            SimpleNamespace(ignore_index=-100), labels
        ),
    )
    student, teacher = logits(13).requires_grad_(), logits(14, 2, 4, 9)
    theirs = ULDLoss._compute_distillation_loss(
        loss, student, teacher, LABELS, LABELS, TOKENS, TOKENS
    )
    rows = [length - skips for length in (3, 2)]
    ours = [
        sorted_l1(student[i, :n].softmax(-1), teacher[i, :n].softmax(-1)).mean()
        for i, n in enumerate(rows)
    ]
    compare(torch.stack(ours).mean(), theirs, student)


VOCABULARY = {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5}
OTHER = {"x": 0, "c": 1, "a": 2, "y": 3, "f": 4, "z": 5, "w": 6, "v": 7, "e": 8}
ENDS, OTHER_ENDS = [2, 4, 5, 8], [2, 5, 6, 8]  # bytes at which completion tokens end
PROMPT, ANSWER = 2, 4  # tokens


def universal_loss(strategy, *, hybrid=False, **weights):
    """TRL's loss of GOLD at one answer without end tokens, and what it is computed from."""
    config = SimpleNamespace(
        uld_crossentropy_weight=0.0,
        uld_distillation_weight=1.0,
        uld_student_temperature=0.7,
        uld_teacher_temperature=1.3,
        uld_skip_student_eos=False,
        uld_skip_teacher_eos=False,
        use_extended_uld=True,
        uld_token_merge_strategy=strategy,
        uld_use_hybrid_loss=hybrid,
        beta=0.3,
        **weights,
    )
    tokenizers = (SimpleNamespace(get_vocab=lambda v=v: v) for v in (VOCABULARY, OTHER))
    student, teacher = logits(19, 1, 7, 6).requires_grad_(), logits(20, 1, 7, 9)
    ids, others = torch.tensor([[0, 1, 3, 5, 2, 4, 0]]), torch.tensor([[7, 1, 8, 0, 2, 6, 3]])
    labels = torch.tensor([[-100, -100, 1, 1, 1, 1, -100]])
    spans = (torch.tensor([[[0, end] for end in (0, 0, *ends, 0)]]) for ends in (ENDS, OTHER_ENDS))
    loss = ULDLoss(config, *tokenizers)(student, teacher, labels, labels, ids, others, *spans)
    return loss, student, teacher, ids, others


def merged_answers(strategy, student, teacher, ids, others, *, late=0):
    """Our merged rows of the same answer; TRL's rows of `observed` are one token late."""
    answer = slice(PROMPT, PROMPT + ANSWER)
    rows = slice(PROMPT - 1 + late, PROMPT - 1 + ANSWER + late)
    groups = aligned_groups(ENDS, OTHER_ENDS)
    sides = ((student / 0.7, ids, groups[0]), (teacher / 1.3, others, groups[1]))
    return [
        merged(x[0, rows].softmax(-1), tokens[0, answer], side, strategy)
        for x, tokens, side in sides
    ]


def test_the_loss_of_gold_by_the_chain_rule():
    loss, *read = universal_loss("bayesian")
    compare(sorted_l1(*merged_answers("bayesian", *read)).mean(), loss, read[0])


@pytest.mark.parametrize("weights", [(None, None), (0.4, 2.0)])
def test_the_hybrid_loss_of_gold(weights):
    names = ("uld_hybrid_matched_weight", "uld_hybrid_unmatched_weight")
    loss, *read = universal_loss("bayesian", hybrid=True, **dict(zip(names, weights, strict=True)))
    pair = merged_answers("bayesian", *read)
    matched, distance = matched_and_sorted(*pair, matches_of(VOCABULARY, OTHER), 0.3)
    shared, rest = (4 / 9, 5 / 9) if weights[0] is None else weights
    compare((shared * matched + rest * distance).mean(), loss, read[0])


def test_observed_rows_are_one_token_late_in_trl():
    """TRL reads the probability of a token from the logits behind it, of the next token."""
    loss, *read = universal_loss("observed")
    ours, late = (
        sorted_l1(*merged_answers("observed", *read, late=late)).mean() for late in (0, 1)
    )
    compare(late, loss, read[0])
    assert (ours - loss).abs() > 0.05
    student, ids = read[0][0] / 0.7, read[2][0]
    token, predicted = PROMPT + 2, student.softmax(-1)[:, ids[PROMPT + 2]]  # the second of a group
    own, theirs = (
        merged_answers("observed", *read, late=late)[0][1].sum().item() for late in (0, 1)
    )
    assert own == pytest.approx(predicted[token - 1].item())
    assert theirs == pytest.approx(predicted[token].item())


@pytest.fixture
def minillm():
    """TRL's trainer of the last release with it that is at hand, without its constructor.

    Its powers of gamma have the default type of floating point numbers.
    """
    path = next(filter(None, map(at_hand, ("1.14", "1.13"))), None) or wheel("1.14")
    methods = ("_compute_advantage", "_single_step_decomposition_loss")
    made = object.__new__(class_of(path, MINILLM, "MiniLLMTrainer", methods, F=functional))
    torch.set_default_dtype(torch.float64)
    yield made
    torch.set_default_dtype(torch.float32)


def at_hand(release):
    """The wheel of a release, None if it is not there."""
    try:
        return wheel(release)
    except pytest.skip.Exception:
        return None


@pytest.mark.parametrize("gamma", [0.0, 0.95, 1.0])
def test_the_returns_of_minillm(minillm, gamma):
    student, teacher = chosen(logits(15)), chosen(logits(16))
    rewards, mask = teacher - student, torch.ones_like(student)
    vars(minillm).update(gamma=gamma, length_normalization=True)
    means = mean_of_later_rewards(rewards, mask, gamma=gamma, has_own=True)
    compare(means, minillm._compute_advantage(student, teacher))
    vars(minillm).update(length_normalization=False)
    sums = later_rewards(rewards, mask, gamma=gamma, has_own=True)
    powers = gamma ** torch.arange(4) if gamma else 1.0  # counted from the first token, not from t
    compare(sums * powers, minillm._compute_advantage(student, teacher))


def test_the_single_step_of_minillm(minillm):
    student, teacher = logits(17).requires_grad_(), logits(18)
    theirs = minillm._single_step_decomposition_loss(logps(student), logps(teacher), PADDING.bool())
    ours = token_divergences(student, teacher, PADDING, lambda s, t: divergence(s, t, 1.0))
    compare(ours.sum() / PADDING.sum(), theirs, student)
