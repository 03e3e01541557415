"""Our online DPO trainer takes the steps of TRL's on the same completions."""

import copy
import random
import re
from dataclasses import fields

import pytest
import torch
from datasets import Dataset
from peers import difference, double
from test_interface import defaults
from trl.experimental.online_dpo import OnlineDPOConfig, OnlineDPOTrainer

import core
from core.collect.generation import Generated, decode_completions

STEPS, PAIRS, LONGEST = 20, 4, 10
TOLERANCE = 1e-10
QUIET = {
    "use_cpu": True,
    "bf16": False,
    "activation_checkpointing": False,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "logging_steps": 1,
    "max_steps": STEPS,
    "per_device_train_batch_size": PAIRS,
    "max_new_tokens": LONGEST,
    "learning_rate": 0.05,
    "optim": "sgd",
    "lr_scheduler_type": "constant",
}
OF_PADDING = ("objective/kl", "objective/non_score_reward", "objective/rlhf_reward")
OF_PADDING = (*OF_PADDING, "objective/entropy")  # which TRL sums over it, too (trl#6803)


def digits(completions, **_):
    texts = [completion[0]["content"] for completion in completions]
    return [sum(map(str.isdigit, text)) / (len(text) + 1) for text in texts]


def letters(completions, **_):
    return [len(re.sub("[^a-z]", "", completion[0]["content"])) / 7 for completion in completions]


def sums():
    """Prompts of one length: rotations are in single precision, and padding moves positions."""
    texts = [f"{i:02}+{i:02}=" for i in range(2 * PAIRS)]
    return Dataset.from_dict({"prompt": [[{"role": "user", "content": t}] for t in texts]})


def completions_of(tokenizer, draw, *, same_length):
    """Completions of some lengths with an end token, or of the largest length, most without."""
    found = []
    for _ in range(2 * PAIRS):
        length = LONGEST if same_length else draw.choice([2, 5, LONGEST])
        ids = [draw.randrange(5, 60) for _ in range(length)]
        found.append(ids if length == LONGEST else [*ids[:-1], tokenizer.eos_token_id])
    return found


def players(tokenizer, *, same_length):
    """Ours, which writes down what it plays, and TRL's, which plays the same."""
    rollouts, draw = [], random.Random(7)

    class Ours(core.OnlineDPOTrainer):
        def generate(self, prompts):
            ids = [
                tokenizer.apply_chat_template(p, add_generation_prompt=True)["input_ids"]
                for p in prompts
            ]
            completions = completions_of(tokenizer, draw, same_length=same_length)
            rollouts.append((ids, completions))
            texts = decode_completions(tokenizer, prompts, completions)
            return Generated(prompt_ids=ids, completion_ids=completions, completions=texts)

    class Theirs(OnlineDPOTrainer):
        def _generate(self, model, prompts, images=None):  # noqa: ARG002 - its signature
            prompt_ids, completions = rollouts.pop(0)
            order = [*range(0, 2 * PAIRS, 2), *range(1, 2 * PAIRS, 2)]
            width = max(map(len, completions))
            ids = torch.tensor(
                [
                    completions[i] + [tokenizer.pad_token_id] * (width - len(completions[i]))
                    for i in order
                ]
            )
            lengths = torch.tensor([len(completions[i]) for i in order])
            mask = (torch.arange(width) < lengths.unsqueeze(1)).long()
            prompt = torch.tensor([prompt_ids[i] for i in order])
            return prompt, torch.ones_like(prompt), ids, mask, None

    return rollouts, Ours, Theirs


def trained(kind, config, model, reference, tokenizer, folder, rewards, changes):
    trainer = kind(
        model=copy.deepcopy(model),
        ref_model=copy.deepcopy(reference),
        reward_funcs=list(rewards),
        args=config(output_dir=str(folder), **QUIET | changes),
        train_dataset=sums(),
        processing_class=tokenizer,
    )
    trainer.train()
    return trainer, [row for row in trainer.state.log_history if "objective/kl" in row]


CASES = {
    "defaults": {},
    "IPO": {"loss_type": "ipo", "beta": 0.5},
    "a penalty": {"missing_eos_penalty": 0.4, "beta": 1.0},
    "two rewards": {"reward_weights": [0.3, 2.0]},
    "a prompt that is cut": {"max_length": LONGEST + 3},
}


@pytest.mark.parametrize("same_length", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_replay(case, same_length, build_llama, tiny_tokenizer, tmp_path, measured):
    rollouts, ours, theirs = players(tiny_tokenizer, same_length=same_length)
    model, reference = double(build_llama()), double(build_llama(seed=1))
    rewards = (digits, letters) if case == "two rewards" else (digits,)
    changes = {"gradient_checkpointing": False, **CASES[case]}
    given = (model, reference, tiny_tokenizer, tmp_path, rewards, changes)
    mine, log = trained(ours, core.OnlineDPOConfig, *given)
    if case == "a prompt that is cut" and not same_length:
        return  # TRL cuts by the longest completion of a batch, so that others get less too
    other, their_log = trained(theirs, OnlineDPOConfig, *given)
    assert not rollouts
    assert len(log) == len(their_log) == STEPS
    for row, their_row in zip(log, their_log, strict=True):
        names = their_row.keys() - {"epoch", "step", "loss", "grad_norm"}
        assert names <= row.keys()
        assert abs(row["loss"] - their_row["loss"]) < 6e-5  # TRL rounds to four digits
        assert measured("grad_norm", difference(row["grad_norm"], their_row["grad_norm"])) < 1e-6
        for name in names:
            if name in OF_PADDING and not same_length:
                continue
            bound = 1e-6 if "score" in name or "rlhf" in name else TOLERANCE  # of single precision
            assert measured(name, difference(row[name], their_row[name])) < bound, name
    start, end, peer = (
        torch.cat([p.detach().flatten() for p in m.parameters()])
        for m in (model, mine.model, other.model)
    )
    assert (end - start).abs().max() > 1e-4
    assert measured("weights", (end - peer).abs().max().item()) < TOLERANCE


def test_trl_counts_padding_in_the_kl_and_the_entropy(build_llama, tiny_tokenizer, tmp_path):
    rollouts, ours, theirs = players(tiny_tokenizer, same_length=False)
    model, reference = double(build_llama()), double(build_llama(seed=1))
    changes = {"max_steps": 1, "gradient_checkpointing": False}
    given = (model, reference, tiny_tokenizer, tmp_path, (digits,), changes)
    (row,) = trained(ours, core.OnlineDPOConfig, *given)[1]
    (other,) = trained(theirs, OnlineDPOConfig, *given)[1]
    assert not rollouts
    for name in OF_PADDING:
        assert abs(row[name] - other[name]) > 1e-3, name
    assert other["objective/entropy"] > row["objective/entropy"] + 1  # -log p of padding, too


def test_trl_does_not_divide_by_the_accumulation(build_llama, tiny_tokenizer, tmp_path):
    """Twice the micro-batches are twice the gradient there, so that half the rate is the same."""
    rollouts, ours, theirs = players(tiny_tokenizer, same_length=True)
    model, reference = double(build_llama()), double(build_llama(seed=1))
    settings = {
        "max_steps": 1,
        "gradient_checkpointing": False,
        "gradient_accumulation_steps": 2,
        "max_grad_norm": 0.0,
    }
    given, weights = (model, reference, tiny_tokenizer, tmp_path, (digits,)), []
    for kind, config, changes in (
        (ours, core.OnlineDPOConfig, {"steps_per_generation": 1}),  # a rollout a micro-batch
        (theirs, OnlineDPOConfig, {"learning_rate": QUIET["learning_rate"] / 2}),
    ):
        trainer, _ = trained(kind, config, *given, settings | changes)
        weights.append(torch.cat([p.detach().flatten() for p in trainer.model.parameters()]))
    assert not rollouts
    start = torch.cat([p.detach().flatten() for p in model.parameters()])
    assert (weights[0] - start).abs().max() > 1e-5
    assert difference(*weights) < TOLERANCE


def test_settings(tmp_path):
    """All of TRL's with its defaults; the others are of rollouts or name a setting of them."""
    ours, theirs = defaults(core.OnlineDPOConfig), defaults(OnlineDPOConfig)
    assert {name: ours[name] for name in theirs} == theirs | {"beta": 0.1}
    own = {"tied_pairs", *(f.name for f in fields(core.GRPOConfig))}
    assert set(ours) - set(theirs) <= own
    given = {"output_dir": str(tmp_path), "use_cpu": True, "activation_checkpointing": True}
    ours, theirs = core.OnlineDPOConfig(**given), OnlineDPOConfig(**given)
    for name in defaults(OnlineDPOConfig):
        assert getattr(ours, name) == getattr(theirs, name), name


def test_arguments():
    ours, theirs = (kind.__init__.__code__ for kind in (core.OnlineDPOTrainer, OnlineDPOTrainer))
    assert ours.co_varnames[: ours.co_argcount] == theirs.co_varnames[: theirs.co_argcount]
    assert ours.co_kwonlyargcount == 1  # the judge
