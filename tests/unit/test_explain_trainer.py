"""A real training run says what it plans, what is wrong with it and where its time went."""

import copy
import shutil

import pytest
import torch
from same_batch import QUIET, sums

from core import GRPOConfig, GRPOTrainer
from core.explain.jsonl import JsonlCallback, read_log

TIMES = ("step_time", "train_runtime", "_per_second")


def build(model, tokenizer, folder, *, complete=None, steps=6, log="log.jsonl", **options):
    """A trainer that logs to `folder`, with completions from `complete` if it is given."""

    def rollout(rows, trainer):  # noqa: ARG001 - the caller's signature
        return {
            "prompt_ids": [tokenizer(row).input_ids for row in rows],
            "completion_ids": [complete(i, tokenizer) for i in range(len(rows))],
            "logprobs": None,
        }

    settings = {
        "output_dir": str(folder / "out"),
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "max_completion_length": 6,
        "max_steps": steps,
        "learning_rate": 1e-3,
    }
    return GRPOTrainer(
        model=copy.deepcopy(model),
        reward_funcs=first_token,
        args=GRPOConfig(**QUIET | settings | options),
        train_dataset=sums(8),
        processing_class=tokenizer,
        rollout_func=rollout if complete else None,
        callbacks=[JsonlCallback(folder / log)],
    )


def first_token(completion_ids, **_):
    return [ids[0] / 10 for ids in completion_ids]


def cut(i, tokenizer):  # noqa: ARG001 - one of several
    return [5 + i, 6, 7, 8, 9, 10]


def clone(i, tokenizer):  # noqa: ARG001 - one of several
    return [5, 6, tokenizer.eos_token_id]


def equal_reward(i, tokenizer):
    return [5, 6 + i, tokenizer.eos_token_id]


def healthy(i, tokenizer):
    return [5 + i, 6, 7, tokenizer.eos_token_id]


SICK = [
    (healthy, set()),
    (cut, {"all_cut"}),
    (clone, {"clones", "equal_rewards", "no_gradient"}),
    (equal_reward, {"equal_rewards", "no_gradient"}),
]


@pytest.mark.parametrize(("complete", "expected"), SICK)
def test_says_what_is_wrong(complete, expected, tiny_llama, tiny_tokenizer, tmp_path, capsys):
    build(tiny_llama, tiny_tokenizer, tmp_path, complete=complete).train()
    lines = [line for line in capsys.readouterr().err.splitlines() if "health/" in line]
    assert {line.split("health/")[1].split(":")[0] for line in lines} == expected
    assert len(lines) == len(expected)
    last = [row for row in read_log(tmp_path / "log.jsonl") if "loss" in row][-1]
    assert {k for k in last if k.startswith("health/")} == {f"health/{name}" for name in expected}


def test_batch_plan_starts_the_run(tiny_llama, tiny_tokenizer, tmp_path, capsys):
    build(tiny_llama, tiny_tokenizer, tmp_path, steps=1).train()
    printed = capsys.readouterr().err
    assert printed.startswith("Batch plan\n  one rollout    2 prompts x 4 completions each")


def test_phase_table_ends_the_run(tiny_llama, tiny_tokenizer, tmp_path, capsys):
    trainer = build(tiny_llama, tiny_tokenizer, tmp_path, steps=2, beta=0.1)
    trainer.train()
    table = capsys.readouterr().err
    seconds = trainer.phases.summary()
    assert sum(seconds.values()) == pytest.approx(trainer.phases.elapsed_s)
    for name in ("rollout", "rewards", "reference", "forward", "backward", "optimizer"):
        assert seconds[name] > 0
        assert f"\n{name} " in table


def lines_without_times(path):
    return [
        {k: v for k, v in row.items() if not any(time in k for time in TIMES)}
        for row in read_log(path)
    ]


def test_log_of_a_resumed_run_is_that_of_an_unbroken_one(tiny_llama, tiny_tokenizer, tmp_path):
    saving = {"save_strategy": "steps", "save_steps": 2}
    build(tiny_llama, tiny_tokenizer, tmp_path / "a", **saving).train()
    broken = tmp_path / "b"
    build(tiny_llama, tiny_tokenizer, broken, **saving).train()
    shutil.rmtree(broken / "out" / "checkpoint-6")  # as if killed in step 6, amid a line
    shutil.rmtree(broken / "out" / "checkpoint-4")
    log = broken / "log.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:5]) + '{"step": 6, "lo')
    resumed = build(tiny_llama, tiny_tokenizer, broken, **saving)
    torch.manual_seed(1)  # what the process did before does not matter
    resumed.train(resume_from_checkpoint=str(broken / "out" / "checkpoint-2"))
    straight = lines_without_times(tmp_path / "a" / "log.jsonl")
    again = lines_without_times(log)
    assert [row["step"] for row in again] == [1, 2, 3, 4, 5, 6, 6]
    assert again[:-1] == straight[:-1]  # the last line's `train_loss` counts this process only


@pytest.mark.parametrize("beta", [0.0, 0.04])
def test_a_run_without_any_verdict_is_told_and_goes_on(beta, make_grpo, capsys):
    """Logs hold None then, which no condition may trip over.

    A policy that never moves is its reference, so that KL has no gradient either.
    """
    trainer = make_grpo(lambda completions, **_: [None] * len(completions), max_steps=3, beta=beta)
    trainer.train()
    assert trainer.state.global_step == 3
    said = capsys.readouterr().err
    assert "health/no_gradient" in said
