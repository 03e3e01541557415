"""Evaluating changes nothing that is trained: weights and logs are those of a run without it."""

import random

import numpy as np
import pytest
import torch
from datasets import Dataset
from grpo_runs import logs, prompts, weights

from core import SFTConfig, SFTTrainer
from core.trainers.random_state import unchanged_random_state

ROLLOUT = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "max_steps": 4}
CASES = {
    "a rollout a step": {},
    "two steps a rollout": {"steps_per_generation": 4},
    "old rollouts": {"num_iterations": 2},
    "a reference": {"beta": 0.1},
}


@pytest.mark.parametrize("case", CASES)
def test_rollout_trainers_learn_the_same_with_and_without_evaluations(case, make_grpo):
    settings = {**ROLLOUT, **CASES[case]}
    plain = make_grpo(**settings, dataset=prompts(8))
    plain.train()
    evaluated = make_grpo(
        **settings,
        dataset=prompts(8),
        evaluation=prompts(4),
        eval_strategy="steps",
        eval_steps=1,
        eval_on_start=True,
        per_device_eval_batch_size=4,
    )
    evaluated.train()
    assert len(logs(evaluated, "eval_loss")) == 5
    assert torch.equal(weights(plain.model), weights(evaluated.model))
    assert logs(plain, "reward") == logs(evaluated, "reward")


def test_fine_tuning_is_the_same_with_and_without_evaluations(
    build_llama, tiny_tokenizer, tmp_path
):
    rows = [{"prompt": f"{a}+1=", "completion": f"{a + 1} is it"} for a in range(8)]
    learned = []
    for watched in ({}, {"eval_strategy": "steps", "eval_steps": 1}):
        trainer = SFTTrainer(
            model=build_llama(seed=1, attention_dropout=0.5),
            args=SFTConfig(
                output_dir=str(tmp_path),
                max_steps=3,
                learning_rate=1e-2,
                use_cpu=True,
                bf16=False,
                logging_steps=1,
                save_strategy="no",
                report_to="none",
                disable_tqdm=True,
                per_device_train_batch_size=4,
                **watched,
            ),
            train_dataset=Dataset.from_list(rows),
            eval_dataset=Dataset.from_list(rows[:3]) if watched else None,
            processing_class=tiny_tokenizer,
        )
        trainer.train()
        learned.append(weights(trainer.model))
    assert torch.equal(*learned)


def test_every_generator_is_put_back_also_after_an_error():
    def drawn():
        return random.random(), np.random.rand(), torch.rand(1).item()

    random.seed(0), np.random.seed(0), torch.manual_seed(0)
    first, second = drawn(), drawn()
    random.seed(0), np.random.seed(0), torch.manual_seed(0)
    assert drawn() == first

    def fails():
        with unchanged_random_state(torch.device("cpu")):
            drawn()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert drawn() == second
