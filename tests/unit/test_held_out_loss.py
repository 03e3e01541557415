"""A held-out loss is a mean over the held-out set: the evaluation's batch size changes nothing."""

import pytest
import torch
from datasets import Dataset
from grpo_runs import prompts

from core import SFTConfig, SFTTrainer

LOSSES = ("dapo", "grpo", "bnpo", "dr_grpo")
GROUP = 2


@pytest.mark.parametrize("settings", [{}, {"padding_free": True}, {"loss_type": "dft"}])
def test_fine_tuning_averages_over_all_labelled_tokens(
    settings, build_llama, tiny_tokenizer, tmp_path
):
    rows = [{"prompt": f"{i}=", "completion": "is it " * (i % 4 + 1)} for i in range(12)]
    found = []
    for size in (1, 2, 5, 12):
        config = SFTConfig(
            output_dir=str(tmp_path),
            use_cpu=True,
            bf16=False,
            report_to="none",
            per_device_eval_batch_size=size,
            **settings,
        )
        trainer = SFTTrainer(
            model=build_llama(seed=1).double(),
            args=config,
            train_dataset=Dataset.from_list(rows),
            eval_dataset=Dataset.from_list(rows),
            processing_class=tiny_tokenizer,
        )
        metrics = trainer.evaluate()
        names = ("eval_loss", "eval_entropy", "eval_mean_token_accuracy")
        found.append([metrics[name] for name in names])
    assert found == [pytest.approx(found[0], rel=1e-6)] * 4


def told(prompts, trainer):
    """Completions that depend on their prompts and their places in a group alone."""
    tokenizer, ids = trainer.processing_class, []
    for place, prompt in enumerate(prompts):
        number = int(prompt[0]["content"].split("+")[0])
        ids.append(tokenizer("12ab" * (number + 1) + "x7" * (place % GROUP * 2))["input_ids"])
    asked = [
        tokenizer.apply_chat_template(p, add_generation_prompt=True)["input_ids"] for p in prompts
    ]
    logps = [[0.0] * len(row) for row in ids]
    return {"prompt_ids": asked, "completion_ids": ids, "logprobs": logps}


@pytest.mark.parametrize("loss_type", LOSSES)
def test_online_trainers_average_as_the_loss_says(loss_type, make_grpo):
    found = []
    for size in (2, 4, 10):
        trainer = make_grpo(
            evaluation=prompts(5),
            rollout=told,
            num_generations=GROUP,
            loss_type=loss_type,
            beta=0.5,
            max_completion_length=64,
            per_device_eval_batch_size=size,
        )
        with torch.no_grad():  # so that the policy is not the reference, whose KL the loss has
            for weight in trainer.model.parameters():
                weight.mul_(1.1)
        metrics = trainer.evaluate()
        names = (
            "eval_loss",
            "eval_kl",
            "eval_entropy",
            "eval_reward",
            "eval_completions/mean_length",
        )
        found.append([metrics[name] for name in names])
    assert found == [pytest.approx(found[0], rel=1e-5)] * 3
    assert abs(found[0][0]) > 1e-4


def test_completions_sampled_in_evaluation_do_not_depend_on_its_batches(make_grpo):
    held_out, found = prompts(3).select([0, 1, 1, 2, 2]), []
    for size in (4, 8, 20):
        trainer = make_grpo(evaluation=held_out, beta=0.1, per_device_eval_batch_size=size)
        metrics = trainer.evaluate()
        names = ("eval_loss", "eval_reward", "eval_completions/mean_length", "eval_entropy")
        found.append([metrics[name] for name in names])
    assert found == [pytest.approx(found[0], rel=1e-5, abs=1e-7)] * 3
