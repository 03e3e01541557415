import pandas as pd
import pytest
import torch
from grpo_runs import digits, logs, prompts, weights

RESUMED = {
    "between rollouts": {},
    "inside a rollout": {"steps_per_generation": 6},
    "with some dropped": {"steps_per_generation": 6, "rollout_selection": "varied"},
    "with some rejected": {
        "steps_per_generation": 6,
        "rollout_selection": "efficient",
        "selection_kept": 2,
    },
    "between iterations": {"num_iterations": 3},
    "with tokens chosen by entropy": {"num_iterations": 3, "top_entropy_quantile": 0.5},
    "with a steered bonus": {
        "use_adaptive_entropy": True,
        "entropy_coef": 0.05,
        "entropy_coef_delta": 0.02,
        "entropy_target": 9.0,
    },
    "with weights of the past": {"rollout_lag": 3},
    "with old and rounded weights": {
        "rollout_lag": 2,
        "rollout_bits": 4,
        "steps_per_generation": 6,
    },
    "with a kept sampling mask": {
        "steps_per_generation": 6,
        "top_k": 5,
        "keep_sampling_mask": True,
    },
    "with a moved reference": {"beta": 0.1, "sync_ref_model": True, "ref_model_sync_steps": 2},
}


@pytest.mark.parametrize("case", RESUMED)
def test_resumed_run_is_the_same_run(case, make_grpo):
    settings = {"max_steps": 9, "save_strategy": "steps", "save_steps": 4, **RESUMED[case]}
    whole = make_grpo(**settings, dataset=prompts(6))
    whole.train()
    resumed = make_grpo(**settings, dataset=prompts(6))
    resumed.train(resume_from_checkpoint=f"{whole.args.output_dir}/checkpoint-4")
    assert torch.equal(weights(whole.model), weights(resumed.model))
    for name in ("loss", "reward", "num_tokens", "grad_norm"):
        assert logs(whole, name) == logs(resumed, name)


def test_run_goes_on_after_a_reward_is_fixed(make_grpo):
    calls = []

    def fragile(completions, answer, **_):
        calls.append(answer)
        if len(calls) == 3:
            raise ValueError("no such answer")
        return digits(completions)

    settings = {"max_steps": 4, "save_strategy": "steps", "save_steps": 1}
    broken = make_grpo(fragile, **settings)
    with pytest.raises(ValueError, match="no such answer"):
        broken.train()
    assert len(calls) == 3
    fixed = make_grpo(**settings)
    fixed.train(resume_from_checkpoint=True)
    straight = make_grpo(**settings)
    straight.train()
    assert torch.equal(weights(fixed.model), weights(straight.model))


def without_times(trainer):
    times = ("runtime", "per_second", "step_time")
    return [
        {name: value for name, value in row.items() if not any(t in name for t in times)}
        for row in trainer.state.log_history
    ]


def test_checkpoint_between_two_logs_changes_no_log(make_grpo):
    settings = {"max_steps": 6, "save_strategy": "steps", "save_steps": 2, "logging_steps": 3}
    whole = make_grpo(**settings)
    whole.train()
    resumed = make_grpo(**settings)
    resumed.train(resume_from_checkpoint=f"{whole.args.output_dir}/checkpoint-4")
    assert len(without_times(whole)) == 3
    assert without_times(resumed) == without_times(whole)  # loss and train_loss too


@pytest.mark.parametrize("length", [{"max_steps": 2}, {"max_steps": -1, "num_train_epochs": 1}])
def test_a_run_resumed_at_its_last_step_trains_nothing(length, make_grpo):
    settings = {**length, "save_strategy": "steps", "save_steps": 1}
    whole = make_grpo(**settings, dataset=prompts(6))
    whole.train()
    last = whole.state.global_step
    resumed = make_grpo(**settings, dataset=prompts(6))
    resumed.train(resume_from_checkpoint=f"{whole.args.output_dir}/checkpoint-{last}")
    assert resumed.state.global_step == last == whole.state.max_steps
    assert torch.equal(weights(whole.model), weights(resumed.model))
    assert without_times(resumed)[:last] == without_times(whole)[:last]


def test_completions_logged_after_a_resume_are_those_of_the_rollout(make_grpo, tmp_path):
    settings = {"max_steps": 4, "save_strategy": "steps", "save_steps": 1, "num_iterations": 4}
    frames = []
    for start in (None, str(tmp_path / "out" / "checkpoint-3")):
        make_grpo(**settings, log_completions=True).train(resume_from_checkpoint=start)
        frames.append(
            pd.read_parquet(tmp_path / "out" / "completions" / "completions_00004.parquet")
        )
    assert len(frames[0]) == 8
    pd.testing.assert_frame_equal(*frames)
