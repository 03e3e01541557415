import math

import pandas as pd
import pytest
import torch
from datasets import Dataset
from grpo_runs import digits, logs, prompts, text_of, weights
from transformers import LlamaConfig, LlamaForSequenceClassification

from core.rewards import StepAccuracy
from core.shards.reference import mix_into

pytestmark = pytest.mark.versions

METRICS = """
    loss grad_norm learning_rate epoch num_tokens step_time entropy reward reward_std
    completions/mean_length completions/min_length completions/max_length
    completions/mean_terminated_length completions/min_terminated_length
    completions/max_terminated_length completions/clipped_ratio rewards/digits/mean
    rewards/digits/std frac_reward_zero_std clip_ratio/low_mean clip_ratio/low_min
    clip_ratio/high_mean clip_ratio/high_max clip_ratio/region_mean
"""


def test_learns_what_is_rewarded(make_grpo):
    trainer = make_grpo(learning_rate=2e-2, max_steps=25, per_device_train_batch_size=16)
    trainer.train()
    reward = logs(trainer, "reward")
    assert sum(reward[-5:]) / 5 > sum(reward[:5]) / 5 + 0.2


def test_logs_trls_metrics(make_grpo):
    trainer = make_grpo(beta=0.1)
    trainer.train()
    assert set(METRICS.split()) | {"kl"} <= set(trainer.state.log_history[0])
    assert logs(trainer, "kl")[0] == 0.0
    assert logs(trainer, "kl")[1] > 0.0


def test_logged_lengths_and_tokens_are_those_of_the_completions(make_grpo, tiny_tokenizer):
    def rollout(rows, trainer):  # noqa: ARG001 - the caller's signature
        ids = [[9] * 3 + [tiny_tokenizer.eos_token_id], [9] * 8] * (len(rows) // 2)
        return {"prompt_ids": [[7, 7]] * len(rows), "completion_ids": ids, "logprobs": None}

    trainer = make_grpo(rollout=rollout, max_steps=1)
    trainer.train()
    row = trainer.state.log_history[0]
    assert row["completions/mean_length"] == 6.0
    assert row["completions/mean_terminated_length"] == row["completions/min_length"] == 4.0
    assert row["completions/clipped_ratio"] == 0.5
    assert row["completions/unique_fraction"] == 0.5
    assert row["num_tokens"] == 8 * 2 + 4 * 4 + 4 * 8


def test_rewards_with_none_and_weights(make_grpo):
    def second_only(completions, **_):
        return [None, 1.0] * (len(completions) // 2)

    def never(completions, **_):
        return [None] * len(completions)

    trainer = make_grpo([second_only, never], reward_weights=[2.0, 5.0], max_steps=1)
    trainer.train()
    row = trainer.state.log_history[0]
    assert row["rewards/second_only/mean"] == 1.0
    assert row["rewards/never/mean"] is None
    assert row["reward"] == 2.0
    assert row["loss"] == 0.0  # the unscored and the equal ones teach nothing


def test_reward_functions_get_columns_state_and_loggers(make_grpo):
    seen = []

    def curious(completions, answer, trainer_state, log_extra, log_metric, **_):
        seen.append((trainer_state.global_step, answer))
        log_extra("answer", answer)
        log_metric("longest", max(map(len, map(text_of, completions))))
        return [float(len(answer[0]))] * len(completions)

    trainer = make_grpo(
        curious, log_completions=True, num_completions_to_print=1, shuffle_dataset=False
    )
    trainer.train()
    assert seen == [(0, ["0"] * 4 + ["2"] * 4), (1, ["4"] * 4 + ["6"] * 4)]
    assert 0 <= logs(trainer, "longest")[0] <= 8
    frame = pd.read_parquet(f"{trainer.args.output_dir}/completions/completions_00001.parquet")
    assert list(frame) == ["step", "prompt", "completion", "curious", "answer", "advantage"]
    assert frame["answer"].tolist() == ["0"] * 4 + ["2"] * 4
    assert frame["advantage"].tolist() == [0.0] * 8


def test_evaluation_logs_the_same_with_a_prefix_and_changes_no_weight(make_grpo):
    trainer = make_grpo(evaluation=prompts(3), num_generations_eval=2, per_device_eval_batch_size=4)
    before = weights(trainer.model)
    found = trainer.evaluate()
    named = set(METRICS.split()) - {"loss", "grad_norm", "learning_rate", "step_time", "epoch"}
    assert {f"eval_{name}" for name in named} <= set(found)
    assert found["eval_reward"] > 0
    assert torch.equal(before, weights(trainer.model))


@pytest.mark.parametrize(
    ("accumulation", "steps_per_generation", "iterations", "needed"),
    [(2, 2, 1, False), (4, 2, 1, False), (4, 2, 2, False), (2, 4, 1, True), (2, 2, 2, True)],
)
def test_old_logps_only_if_the_policy_moves_before_they_are_used(
    make_grpo, accumulation, steps_per_generation, iterations, needed
):
    trainer = make_grpo(
        gradient_accumulation_steps=accumulation,
        steps_per_generation=steps_per_generation,
        num_iterations=iterations,
    )
    trainer.model.train()
    rows = [dict(row) for row in trainer.train_dataset.select([0] * 4 + [1] * 4)]
    batch = trainer._prepare_inputs(rows * (steps_per_generation // 2))
    assert ("old_per_token_logps" in batch) == needed


def test_several_updates_from_one_rollout_move_the_ratio(make_grpo):
    trainer = make_grpo(num_iterations=3, max_steps=3, learning_rate=1e-2, epsilon=1e-4)
    trainer.train()
    low, high = logs(trainer, "clip_ratio/low_mean"), logs(trainer, "clip_ratio/high_mean")
    assert low[0] == high[0] == 0.0
    assert low[2] + high[2] > 0.0
    assert len(logs(trainer, "reward")) == 1  # one rollout


def test_truncated_completions_are_masked(make_grpo, tiny_tokenizer):
    def rollout(rows, trainer):  # noqa: ARG001 - the caller's signature
        ids = [[9, 9, tiny_tokenizer.eos_token_id], [9] * 8] * (len(rows) // 2)
        return {"prompt_ids": [[7, 7]] * len(rows), "completion_ids": ids, "logprobs": None}

    trainer = make_grpo(rollout=rollout, mask_truncated_completions=True)
    trainer.model.train()
    batch = trainer._prepare_inputs([dict(row) for row in trainer.train_dataset])
    whole = batch["completion_mask"].sum(1) == 3
    assert batch["completion_mask"][~whole].sum() == 0
    assert batch["num_items_in_batch"].item() == 4 * 3


def test_process_supervision_gives_advantages_to_tokens(make_grpo, tiny_tokenizer):
    texts = ["1+1=2", "1+1=3", "2=3\n1=1", "no"]

    def rollout(rows, trainer):  # noqa: ARG001 - the caller's signature
        ids = [[*tiny_tokenizer(text).input_ids, tiny_tokenizer.eos_token_id] for text in texts]
        return {"prompt_ids": [[7]] * 4, "completion_ids": ids[: len(rows)], "logprobs": None}

    one = Dataset.from_list([{"prompt": "1, 1, 2, 3 and 4", "answer": "2"}])
    trainer = make_grpo(
        StepAccuracy(),
        rollout=rollout,
        dataset=one,
        advantage_estimator="process",
        gradient_accumulation_steps=1,
    )
    found = trainer.rollout([dict(one[0])] * 4)["advantages"]
    spread = math.sqrt(1 / 3) + 1e-4  # of the steps 1 0 0 1
    up = 0.5 / spread
    assert found[0].tolist() == pytest.approx([up] * 6 + [0.0] * 2)
    assert found[1].tolist() == pytest.approx([-up] * 6 + [0.0] * 2)
    assert found[2].tolist() == pytest.approx([0.0] * 4 + [up] * 4)
    assert found[3].tolist() == [0.0] * 8


def test_rejection_sampling_weighs_the_right_ones_alike(make_grpo):
    def right(completions, **_):
        return [1.0, 0.0, 0.0, 0.0] * (len(completions) // 4)

    trainer = make_grpo(right, advantage_estimator="correct")
    rows = [dict(row) for row in trainer.train_dataset.select([0] * 4 + [1] * 4)]
    assert trainer.rollout(rows)["advantages"].tolist() == [1.0, 0, 0, 0] * 2


def test_offline_sampling_keeps_the_starting_policy(make_grpo):
    trainer = make_grpo(rollout_policy="reference", learning_rate=1.0)
    start = weights(trainer.model)
    trainer.train()
    assert torch.equal(weights(trainer.ref_model), start)
    assert not torch.equal(weights(trainer.model), start)
    assert not logs(trainer, "kl")


def test_reference_moves_towards_the_policy(build_llama):
    reference, policy = build_llama(0), build_llama(1)
    start, goal = weights(reference), weights(policy)
    mix_into(reference, policy, 0.25)
    torch.testing.assert_close(weights(reference), 0.75 * start + 0.25 * goal)
    mix_into(reference, policy, 1.0)
    assert torch.equal(weights(reference), goal)


def test_iterative_reset_takes_the_policy_every_n_steps(make_grpo):
    trainer = make_grpo(
        beta=0.1,
        sync_ref_model=True,
        ref_model_mixup_alpha=1.0,
        ref_model_sync_steps=2,
        max_steps=4,
    )
    trainer.train()
    assert torch.equal(weights(trainer.ref_model), weights(trainer.model))
    kl = logs(trainer, "kl")
    assert kl[0] == kl[2] == 0.0  # right after the start and the reset
    assert kl[1] > 0.0
    assert kl[3] > 0.0


def test_reward_models_score_prompt_and_completion(make_grpo, tiny_tokenizer, tmp_path):
    config = LlamaConfig(
        vocab_size=len(tiny_tokenizer),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_labels=1,
    )
    folder = tmp_path / "judge"
    LlamaForSequenceClassification(config).save_pretrained(folder)
    tiny_tokenizer.save_pretrained(folder)
    trainer = make_grpo([str(folder), digits], max_steps=1)
    trainer.train()
    assert trainer.state.log_history[0]["rewards/judge/std"] > 0


def test_standard_prompts_are_text_to_the_rewards(make_grpo):
    seen = []

    def read(prompts, completions, **_):
        seen.append((prompts[0], type(completions[0])))
        return [0.0] * len(prompts)

    text = Dataset.from_dict({"prompt": ["1+1="] * 4})
    make_grpo(read, dataset=text, max_steps=1).train()
    assert seen == [("1+1=", str)]


def test_phases_cover_a_step(make_grpo):
    trainer = make_grpo(beta=0.1)
    trainer.train()
    assert set(trainer.phases.summary()) == {
        "rollout",
        "rewards",
        "reference",
        "forward",
        "backward",
        "optimizer",
        "other",
    }
