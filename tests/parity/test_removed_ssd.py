"""Our SSD trainer and that of TRL 1.15, the last release with it, from its wheel."""

import copy
import inspect
from collections import defaultdict
from types import SimpleNamespace

import pytest
import torch
import trl
from datasets import Dataset
from peers import difference, double
from releases import class_of, parsed, stated, wheel

import core

RELEASE = "1.15"
FILE = "trl/experimental/ssd/ssd_{}.py"
METHODS = ("compute_loss", "_build_buffered_batch", "_apply_prompt_template")
RATE, STEPS, ROWS = 0.05, 20, 4
QUIET = {
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "logging_steps": 1,
    "max_steps": STEPS,
    "per_device_train_batch_size": ROWS,
    "learning_rate": RATE,
    "optim": "sgd",
    "lr_scheduler_type": "constant",
    "max_grad_norm": 1e9,
    "max_completion_length": 14,
}


def chosen_logps(logits, ids):
    """Log-probabilities of tokens, as the release's own function of that name computes them."""
    return logits.log_softmax(-1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)


def peer(model, tokenizer, **numbers):
    """TRL's trainer without its constructor: what its batches and its loss read."""
    known = {
        "selective_log_softmax": chosen_logps,
        "maybe_apply_chat_template": trl.maybe_apply_chat_template,
        "_BaseTrainer": SimpleNamespace(_prepare_inputs=lambda _, inputs: inputs),
        "Any": object,
    }
    methods = class_of(wheel(RELEASE), FILE.format("trainer"), "SSDTrainer", METHODS, **known)
    trainer = object.__new__(methods)
    vars(trainer).update(
        model=model,
        accelerator=SimpleNamespace(gather=lambda x: x),
        processing_class=tokenizer,
        chat_template_kwargs={},
        model_kwarg_keys={"logits_to_keep"},
        current_gradient_accumulation_steps=1,
        _metrics={"train": defaultdict(list)},
        **numbers,
    )
    return trainer


def recorder(rollouts):
    """Our trainer, which writes down the prompts and the completions of its rollouts."""

    class Recorder(core.SSDTrainer):
        def generate(self, prompts):
            rollouts.append((prompts, super().generate(prompts)))
            return rollouts[-1][1]

    return Recorder


def padded(rows, value):
    tensors = [torch.tensor(row) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=value)


@pytest.mark.parametrize(
    "settings",
    [
        {"rollout_policy": "policy"},
        {"rollout_policy": "reference", "temperature": 1.6, "top_k": 20, "top_p": 0.8},
        {"filter_empty": False, "max_prompt_length": 6},
    ],
    ids=str,
)
def test_a_run_on_the_same_completions(settings, build_llama, tiny_tokenizer, tmp_path, measured):
    texts = [f"{i:02}+{i:02}=" for i in range(2 * ROWS)]  # of one length: rotations have 32 bits
    data = [[{"role": "user", "content": text}] for text in texts]
    rollouts, model = [], double(build_llama())
    ours = recorder(rollouts)(
        model=copy.deepcopy(model),
        args=core.SSDConfig(output_dir=str(tmp_path), **QUIET | settings),
        train_dataset=Dataset.from_dict({"prompt": data}),
        processing_class=tiny_tokenizer,
    )
    ours.train()
    numbers = {"filter_empty": True, "max_prompt_length": 512, **settings}
    theirs = peer(model.train(), copy.deepcopy(tiny_tokenizer), **numbers)
    theirs.processing_class.truncation_side = "left"
    logs = [row for row in ours.state.log_history if "loss" in row]
    start, ratios = copy.deepcopy(model), []
    for (prompts, generated), row in zip(rollouts, logs, strict=True):
        ids = generated.completion_ids
        theirs._generate_completion_ids = lambda _, ids=ids: (
            padded(ids, tiny_tokenizer.pad_token_id),
            padded([[1] * len(each) for each in ids], 0),
        )
        batch = theirs._build_buffered_batch([{"prompt": prompt} for prompt in prompts])
        loss = theirs.compute_loss(model, batch)
        loss.backward()
        with torch.no_grad():
            for weight in model.parameters():
                weight -= RATE * weight.grad
                weight.grad = None
        metrics = {name: values[-1] for name, values in theirs._metrics["train"].items()}
        ratios.append(metrics["ssd/active_sample_ratio"])
        for name in ("ssd/cross_entropy_loss", "ssd/active_sample_ratio"):
            assert measured(name, difference(row[name], metrics[name])) < 1e-10
        if ratios[-1] == 1:  # else TRL counts completions that are left out as empty
            for name in ("mean", "min", "max"):
                length = f"completions/{name}_length"
                assert row[length] == pytest.approx(metrics[length])
    assert len(logs) == STEPS
    assert settings.get("filter_empty", True) == (min(ratios) < 1)
    moved = 0.0
    for mine, other, before in zip(
        ours.model.parameters(), model.parameters(), start.parameters(), strict=True
    ):
        assert measured("weights", difference(mine, other)) < 1e-10
        moved = max(moved, difference(mine, before))
    assert moved > 1e-2


def test_settings_and_arguments_are_those_of_the_release():
    (node,) = [
        n
        for n in parsed(wheel(RELEASE), FILE.format("config")).body
        if getattr(n, "name", "") == "SSDConfig"
    ]
    theirs, ours = dict(stated(node)), core.SSDConfig.__dataclass_fields__
    assert len(theirs) > 30
    assert {name: ours[name].default for name in theirs} == theirs
    tree = parsed(wheel(RELEASE), FILE.format("trainer"))
    (node,) = [n for n in tree.body if getattr(n, "name", "") == "SSDTrainer"]
    (init,) = [n for n in node.body if getattr(n, "name", "") == "__init__"]
    assert [a.arg for a in init.args.args] == list(
        inspect.signature(core.SSDTrainer.__init__).parameters
    )
