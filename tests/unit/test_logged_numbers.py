"""Numbers that a step logs beside TRL's: right and wrong answers, repetition, and drift."""

import math

import pytest
import torch
from accelerate import Accelerator
from grpo_runs import logs

from core.collect.metrics import loss_metrics, loss_sums
from core.collect.outcomes import outcome_metrics, repetition, right_answers
from core.configs.grpo import GRPOConfig
from core.losses.aggregate import Scale
from core.losses.batch import Rollout
from core.losses.loss_statistics import DRIFT
from core.losses.policy import policy_loss

NONE = math.nan


def test_lengths_of_right_and_wrong_answers_and_groups_of_one_kind():
    right = torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, NONE])
    lengths = torch.tensor([2, 4, 6, 10, 8, 8, 6, 100])
    assert outcome_metrics(right, lengths, group=2) == {
        "completions/right_mean_length": 4.0,
        "completions/wrong_mean_length": 8.0,
        "frac_all_right": 0.25,
        "frac_all_wrong": 0.25,
    }


def test_no_length_is_logged_where_there_is_no_such_answer():
    found = outcome_metrics(torch.ones(4), torch.full((4,), 3), group=2)
    assert "completions/wrong_mean_length" not in found
    assert (found["frac_all_right"], found["frac_all_wrong"]) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("judge", "expected"),
    [
        (None, [1.0, 0.0, 0.0, NONE]),  # the reward that is called accuracy
        ("length", [0.0, 1.0, 0.0, NONE]),
    ],
)
def test_right_is_what_the_judging_reward_pays_for(judge, expected):
    rewards = torch.tensor([[1.0, -3.0], [-1.0, 2.0], [NONE, NONE], [NONE, NONE]])
    rewards[2] = 0.0
    found = right_answers(rewards, torch.ones(2), ["accuracy", "length"], judge)
    assert torch.equal(found.nan_to_num(-1.0), torch.tensor(expected).nan_to_num(-1.0))


def test_without_a_judge_right_is_what_all_rewards_pay_for_together():
    rewards = torch.tensor([[1.0, -3.0], [-1.0, 2.0]])
    found = right_answers(rewards, torch.tensor([1.0, 0.25]), ["format", "length"], None)
    assert found.tolist() == [1.0, 0.0]


def test_repetition_is_the_share_of_trigrams_that_came_before():
    assert repetition([[1, 2, 3, 1, 2, 3], [1, 2, 3, 4], [1]]) == pytest.approx((1 / 4) / 3)


def drift(log_ratio, old_probability, advantages, mask):
    """What the statistics of drift come to for log-ratios and probabilities (B, T)."""
    old = torch.tensor(old_probability, dtype=torch.float64).log()
    r = Rollout(
        logps=old + torch.tensor(log_ratio, dtype=torch.float64),
        old_logps=old,
        advantages=torch.tensor(advantages, dtype=torch.float64).unsqueeze(1),
        mask=torch.tensor(mask, dtype=torch.float64),
    )
    c = GRPOConfig(output_dir="none", report_to="none", use_cpu=True, bf16=False)
    scale = Scale(
        rollout_tokens=r.mask.sum(), accumulation=1, micro_batches=1, processes=1, max_length=2
    )
    sums = loss_sums(policy_loss(r, c, scale), r, torch.zeros_like(old), c, DRIFT)
    return loss_metrics([sums], DRIFT, Accelerator(cpu=True))


def test_drift_of_tokens_of_completions_and_of_rare_tokens_that_are_rewarded():
    """Tokens 0.2, 0.4 and 0: mean 0.2, variance 0.08 / 3; completions 0.3 and 0: deviation 0.15.

    One rewarded token was rarer than 0.1; what is masked counts nowhere.
    """
    found = drift(
        [[0.2, 0.4], [0.0, 9.0], [5.0, 5.0]],
        [[0.05, 0.5], [0.01, 0.01], [0.01, 0.01]],
        [1.0, -1.0, 1.0],
        [[1, 1], [1, 0], [0, 0]],
    )
    assert found["ratio/token_log_std"] == pytest.approx(math.sqrt(0.08 / 3))
    assert found["ratio/sequence_log_std"] == pytest.approx(0.15)
    assert found["ratio/rare_rise"] == pytest.approx(0.05 * (math.exp(0.2) - 1))


def test_where_no_rare_token_is_rewarded_no_rise_is_logged():
    assert "ratio/rare_rise" not in drift([[0.1, 0.1]], [[0.5, 0.01]], [-1.0], [[1, 1]])


def test_a_run_off_policy_logs_drift_from_its_second_update_on(make_grpo):
    trainer = make_grpo(num_iterations=3, max_steps=3, learning_rate=1e-2)
    trainer.train()
    for name in ("ratio/token_log_std", "ratio/sequence_log_std"):
        first, *later = logs(trainer, name)
        assert first == 0.0
        assert min(later) > 0.0
    assert logs(trainer, "ratio/sequence_log_std")[1] < logs(trainer, "ratio/token_log_std")[1]


def test_a_run_on_policy_logs_no_drift_but_right_and_wrong(make_grpo):
    trainer = make_grpo(max_steps=2)
    trainer.train()
    row = trainer.state.log_history[0]
    assert not [name for name in row if name.startswith("ratio/")]
    assert {"frac_all_right", "frac_all_wrong", "completions/repetition"} <= row.keys()
    prompts = row["num_completions"] / trainer.args.num_generations
    assert row["num_effective_prompts"] == prompts * (1 - row["frac_reward_zero_std"])
