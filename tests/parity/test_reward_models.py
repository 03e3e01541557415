"""Reward models have TRL 1.16's loss, gradient, metrics and weights; models of steps TRL 1.13's.

PRM is read from its wheel: rows are prepared by its own source, and trained on by transformers'
`Trainer`, of which the rest of it was inherited.
"""

import copy
from dataclasses import MISSING, fields
from inspect import signature
from itertools import chain
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import trl
from datasets import Dataset
from peers import QUIET, difference, double
from releases import class_of, functions, parsed, run, stated, wheel
from transformers import (
    DataCollatorForTokenClassification,
    LlamaForSequenceClassification,
    LlamaForTokenClassification,
    Trainer,
    TrainingArguments,
)

import core

TOLERANCE = 1e-10
PRM_RELEASE = "1.13"
PRM_FILE = "trl/experimental/prm/prm_{}.py"
SHORT = {name: value for name, value in QUIET.items() if "gen" not in name and "len" not in name}
TEXTS = [("1+2=", "3", "4"), ("12+34=", "46 is it", "45"), ("x", "y z", "w"), ("7*8-9=", "47", "5")]
MARGINS = (0.5, 0.0, -1.25, 3.0)  # with no rounding in 32 bits, in which TRL has them
RUN = {
    "max_steps": 20,
    "per_device_train_batch_size": 4,
    "learning_rate": 1e-3,
    "lr_scheduler_type": "linear",
    "warmup_steps": 3,
}


def pairs(kind, count=8, *, margin=False):
    """Pairs as texts with or without a prompt of their own, or as conversations."""
    texts = [(TEXTS[i % 4][0] + "=" * (i // 4), *TEXTS[i % 4][1:]) for i in range(count)]
    if kind == "turns":
        rows = [
            {
                "prompt": [{"role": "user", "content": p}],
                **{
                    name: [{"role": "assistant", "content": text}]
                    for name, text in zip(("chosen", "rejected"), answers, strict=True)
                },
            }
            for p, *answers in texts
        ]
    elif kind == "whole":
        rows = [{"chosen": p + c, "rejected": p + r} for p, c, r in texts]
    else:
        rows = [{"prompt": p, "chosen": c, "rejected": r} for p, c, r in texts]
    if margin:
        rows = [{**row, "margin": MARGINS[i % 4]} for i, row in enumerate(rows)]
    return Dataset.from_list(rows)


def solutions(count=8):
    """Solutions of one to three steps, of which some are wrong from some step on."""
    return Dataset.from_list(
        [
            {
                "prompt": f"{i}+{i + 1}?",
                "completions": [f"{i} and {i + 1}", f"so {2 * i + 1}", "done"][: 1 + i % 3],
                "labels": [i % 4 > 0, i % 3 > 0, i % 3 > 0][: 1 + i % 3],
            }
            for i in range(count)
        ]
    )


def classifier(kind, llama, labels):
    settings = copy.deepcopy(llama.config)
    settings.num_labels, settings.classifier_dropout = labels, 0.0
    torch.manual_seed(7)
    return kind(settings)


def built(package, model, tokenizer, folder, rows, **changes):
    """A reward trainer of `package` on a copy of the model."""
    return package.RewardTrainer(
        model=copy.deepcopy(model),
        args=package.RewardConfig(output_dir=str(folder), **SHORT | changes),
        train_dataset=rows,
        processing_class=copy.deepcopy(tokenizer),
    )


def outcome(trainer):
    """Loss, gradient and metrics of the first batch of a trainer."""
    trainer.model.train()
    (batch,) = [trainer._prepare_inputs(rows) for rows in trainer.get_train_dataloader()]
    loss = trainer.compute_loss(trainer.model, batch)
    loss.backward()
    logged = getattr(trainer, "_metrics", {"train": {}})["train"]
    metrics = {name: values[-1] for name, values in logged.items()}
    gradient = torch.cat([p.grad.flatten() for p in trainer.model.parameters()])
    return SimpleNamespace(loss=loss.detach(), gradient=gradient, metrics=metrics)


@pytest.mark.parametrize("kind", ["prompts", "whole", "turns"])
@pytest.mark.parametrize("margin", [False, True])
@pytest.mark.parametrize("coefficient", [None, 0.01, 0.7])
def test_reward(coefficient, margin, kind, build_llama, tiny_tokenizer, tmp_path, measured):
    model = double(classifier(LlamaForSequenceClassification, build_llama(), 1))
    settings = {"center_rewards_coefficient": coefficient}
    ours, theirs = (
        outcome(built(p, model, tiny_tokenizer, tmp_path, pairs(kind, margin=margin), **settings))
        for p in (core, trl)
    )
    assert theirs.gradient.abs().max() > 1e-3
    assert measured("reward: loss", difference(ours.loss, theirs.loss)) < TOLERANCE
    assert measured("reward: gradient", difference(ours.gradient, theirs.gradient)) < TOLERANCE
    assert ours.metrics.keys() == theirs.metrics.keys() >= {"accuracy", "margin", "num_tokens"}
    for name, value in theirs.metrics.items():
        error = difference(ours.metrics[name], value)
        assert measured(f"reward: {name}", error) < TOLERANCE, name


def ends(model, *trainers):
    """The weights before, and after each of several trainings."""
    return [
        torch.cat([p.detach().flatten() for p in m.parameters()])
        for m in (model, *(trainer.model for trainer in trainers))
    ]


def logs(trainer):
    return [row for row in trainer.state.log_history if "loss" in row]


@pytest.mark.parametrize("coefficient", [None, 0.1])
def test_replay_of_a_reward_model(coefficient, build_llama, tiny_tokenizer, tmp_path, measured):
    """Twenty steps of Adam in 32 bits, over two epochs of shuffled pairs with margins."""
    model = classifier(LlamaForSequenceClassification, build_llama(), 1)
    settings = {**RUN, "center_rewards_coefficient": coefficient}
    rows = pairs("turns", 40, margin=coefficient is not None)
    ours, theirs = (
        built(package, model, tiny_tokenizer, tmp_path, rows, **settings) for package in (core, trl)
    )
    for trainer in (ours, theirs):
        trainer.train()
    assert len(logs(ours)) == len(logs(theirs)) == 20
    for row, other in zip(logs(ours), logs(theirs), strict=True):
        for name in other.keys() - {"grad_norm"}:
            error = abs(row[name] - other[name]) / max(1.0, abs(other[name]))
            assert measured("run, reward: logs", error) < 1e-4, name
    start, end, peer = ends(model, ours, theirs)
    assert (end - start).abs().max() > 5e-3  # it did train
    assert measured("run, reward: weights", (end - peer).abs().max().item()) < 1e-5


def prm(model, tokenizer, folder, rows, **changes):
    """Our trainer of steps on a copy of a model."""
    return core.PRMTrainer(
        model=copy.deepcopy(model),
        args=core.PRMConfig(output_dir=str(folder), **SHORT | changes),
        train_dataset=rows,
        processing_class=copy.deepcopy(tokenizer),
    )


def tokenized(rows, tokenizer, **settings):
    """Rows as the release prepares them."""
    path = wheel(PRM_RELEASE)
    kind = class_of(path, PRM_FILE.format("trainer"), "PRMTrainer", ("tokenize_row",), chain=chain)
    options = {
        "step_separator": "\n",
        "max_length": 1024,
        "max_completion_length": None,
        "train_on_last_step_only": False,
        "is_eval": False,
        **settings,
    }
    return [kind.tokenize_row(row, tokenizer, **options) for row in rows]


def prm_peer(model, tokenizer, folder, rows, **changes):
    """What the release trained, see the module's docstring."""
    return Trainer(
        model=copy.deepcopy(model),
        args=TrainingArguments(
            output_dir=str(folder), **{"learning_rate": 1e-5, **SHORT, **changes}
        ),
        train_dataset=Dataset.from_list(tokenized(rows, tokenizer)),
        data_collator=DataCollatorForTokenClassification(tokenizer),
        processing_class=tokenizer,
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"step_separator": " ; "},
        {"max_length": 14},
        {"max_completion_length": 9},
        {"train_on_last_step_only": True},
    ],
    ids=str,
)
def test_rows_of_steps(changes, build_llama, tiny_tokenizer, tmp_path):
    """Rows without a label, of which TRL trains on none, are left out."""
    model = classifier(LlamaForTokenClassification, build_llama(), 2)
    ours = prm(model, tiny_tokenizer, tmp_path, solutions(), **changes).train_dataset.to_list()
    theirs = tokenized(solutions(), tiny_tokenizer, **changes)
    kept = [row for row in theirs if {*row["labels"]} - {-100}]
    assert ours == [{"input_ids": row["input_ids"], "labels": row["labels"]} for row in kept]


def test_steps(build_llama, tiny_tokenizer, tmp_path, monkeypatch, measured):
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)  # of transformers' loss
    model = double(classifier(LlamaForTokenClassification, build_llama(), 2))
    ours, theirs = (
        outcome(make(model, copy.deepcopy(tiny_tokenizer), tmp_path, solutions()))
        for make in (prm, prm_peer)
    )
    assert theirs.gradient.abs().max() > 1e-3
    assert measured("prm 1.13: loss", difference(ours.loss, theirs.loss)) < TOLERANCE
    assert measured("prm 1.13: gradient", difference(ours.gradient, theirs.gradient)) < TOLERANCE


def test_accuracy_of_steps(build_llama, tiny_tokenizer, tmp_path):
    """The release computes it of padded logits of a whole evaluation."""
    model = classifier(LlamaForTokenClassification, build_llama(), 2)
    rows = solutions(12)
    mine = prm(model, tiny_tokenizer, tmp_path, rows, per_device_eval_batch_size=5)
    found = mine.evaluate(rows)["eval_accuracy"]
    path = wheel(PRM_RELEASE)
    (function,) = functions(parsed(path, PRM_FILE.format("trainer")), ["compute_accuracy"])
    accuracy = run([function], path, np=np)["compute_accuracy"]
    batch = DataCollatorForTokenClassification(tiny_tokenizer)(tokenized(rows, tiny_tokenizer))
    with torch.no_grad():
        logits = mine.model.eval()(**{k: v for k, v in batch.items() if k != "labels"}).logits
    expected = accuracy((logits.numpy(), batch["labels"].numpy()))["accuracy"]
    assert 0 < expected < 1
    assert found == pytest.approx(expected, abs=1e-9)


def test_replay_of_steps(build_llama, tiny_tokenizer, tmp_path, measured):
    """Twenty steps of Adam in 32 bits, over two epochs of shuffled solutions."""
    model = classifier(LlamaForTokenClassification, build_llama(), 2)
    ours, theirs = (
        make(model, copy.deepcopy(tiny_tokenizer), tmp_path, solutions(40), **RUN)
        for make in (prm, prm_peer)
    )
    for trainer in (ours, theirs):
        trainer.train()
    for row, other in zip(logs(ours), logs(theirs), strict=True):
        error = abs(row["loss"] - other["loss"])
        assert measured("run, prm 1.13: logs", error) < 1e-4
    start, end, peer = ends(model, ours, theirs)
    assert (end - start).abs().max() > 5e-3
    assert measured("run, prm 1.13: weights", (end - peer).abs().max().item()) < 1e-5


def test_steps_were_multiplied_by_the_accumulation(build_llama, tiny_tokenizer, tmp_path):
    """The release's loss of 4 rows twice is that of 8 rows times two; ours is that of 8 rows."""
    model = classifier(LlamaForTokenClassification, build_llama(), 2)
    rows = Dataset.from_list([solutions(8)[i] for i in (1, 4, 7, 1, 4, 7, 1, 4)])  # of two steps
    found = []
    for size, parts in ((8, 1), (4, 2)):
        changes = {"per_device_train_batch_size": size, "gradient_accumulation_steps": parts}
        changes |= {"max_steps": 1, "learning_rate": 0.0}
        made = [make(model, copy.deepcopy(tiny_tokenizer), tmp_path, rows, **changes) for make in (
            prm, prm_peer
        )]  # fmt: skip
        for trainer in made:
            trainer.train()
        found.append([logs(trainer)[0]["loss"] for trainer in made])
    (whole, their_whole), (split, their_split) = found
    assert whole == pytest.approx(their_whole, rel=1e-5)
    assert split == pytest.approx(whole, rel=1e-5)
    assert their_split == pytest.approx(2 * their_whole, rel=1e-5)


def defaults(config):
    return {
        f.name: f.default if f.default_factory is MISSING else f.default_factory()
        for f in fields(config)
    }


def arguments(trainer):
    return [(p.name, p.default) for p in signature(trainer).parameters.values()]


def test_settings_and_arguments_of_reward(tmp_path):
    assert defaults(core.RewardConfig) == defaults(trl.RewardConfig)
    given = {"output_dir": str(tmp_path), "use_cpu": True, "activation_checkpointing": True}
    ours, theirs = (p.RewardConfig(**given) for p in (core, trl))
    for name in defaults(trl.RewardConfig):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert arguments(core.RewardTrainer) == arguments(trl.RewardTrainer)


def test_settings_and_arguments_of_the_release_with_prm():
    (node,) = [
        n
        for n in parsed(wheel(PRM_RELEASE), PRM_FILE.format("config")).body
        if getattr(n, "name", "") == "PRMConfig"
    ]
    theirs, ours = dict(stated(node)), defaults(core.PRMConfig)
    assert theirs.keys() >= {"learning_rate", "step_separator", "max_completion_length"}
    assert {name: ours[name] for name in theirs} == theirs
    shared = defaults(core.RewardConfig).keys()
    assert ours.keys() - shared <= theirs.keys()
    found = parsed(wheel(PRM_RELEASE), PRM_FILE.format("trainer"))
    (node,) = [n for n in found.body if getattr(n, "name", "") == "PRMTrainer"]
    (init,) = [n for n in node.body if getattr(n, "name", "") == "__init__"]
    assert [a.arg for a in init.args.args][1:] == [name for name, _ in arguments(core.PRMTrainer)]
