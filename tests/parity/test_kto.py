"""Our KTO trainer and TRL's have the same losses, gradients and logs, and take the same steps."""

import copy

import pytest
import torch
import trl
from answer_peers import SHORT, SINGLE, ExactHead, in_double, labelled_rows
from peers import difference, double
from peft import LoraConfig

import core

TOLERANCE = 1e-10
LOSSES = ("kto", "apo_zero_unpaired")
WEIGHTS = ({}, {"desirable_weight": 1.33, "undesirable_weight": 0.7})
LORA = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
STEPS = 20


def build(package, model, tokenizer, folder, reference=None, peft=None, data=None, **changes):
    """A trainer of `package` on copies of the models."""
    return package.KTOTrainer(
        model=copy.deepcopy(model),
        ref_model=copy.deepcopy(reference),
        args=package.KTOConfig(output_dir=str(folder), **SHORT | changes),
        train_dataset=labelled_rows() if data is None else data,
        eval_dataset=labelled_rows().select(range(5)),
        processing_class=tokenizer,
        peft_config=copy.deepcopy(peft),
    )


def first_loss(trainer, count=4):
    """The loss of the first rows, its gradients, and the metrics of it."""
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    inputs = trainer.data_collator([trainer.train_dataset[i] for i in range(count)])
    loss = trainer.compute_loss(trainer.model, inputs)
    loss.backward()
    named = trainer.model.named_parameters()
    gradients = {n: p.grad for n, p in named if p.grad is not None}
    return loss.detach(), gradients, dict(trainer._metrics["train"])


def compare(ours, theirs, measured):
    """Check that loss, gradients and metrics of the first rows are equal."""
    (loss, gradients, metrics), (their_loss, their_gradients, their_metrics) = map(
        first_loss, (ours, theirs)
    )
    assert measured("loss", difference(loss, their_loss)) < TOLERANCE
    assert gradients.keys() == their_gradients.keys()
    assert any(gradient.any() for gradient in gradients.values())
    for name, gradient in gradients.items():
        assert measured("gradient", difference(gradient, their_gradients[name])) < TOLERANCE
    assert their_metrics.keys() <= metrics.keys()
    for name, values in their_metrics.items():
        assert measured(f"metric {name}", difference(metrics[name], values)) < TOLERANCE, name
    return metrics


@pytest.fixture(autouse=True)
def exact_head(monkeypatch):
    monkeypatch.setattr(trl.trainer.utils, "_ChunkedLogProbFunction", ExactHead)


@pytest.mark.parametrize("beta", [0.1, 2.0])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("loss_type", LOSSES)
@pytest.mark.parametrize("seeds", [(1, 0), (0, 1)], ids=["at the bound", "above the bound"])
def test_losses(seeds, loss_type, weights, beta, build_llama, tiny_tokenizer, tmp_path, measured):
    """The baseline of the first models is 0, as the mismatched answers are less likely."""
    model, reference = (double(build_llama(seed=seed)) for seed in seeds)
    settings = {"loss_type": loss_type, "beta": beta, **weights}
    metrics = compare(
        *(
            build(package, model, tiny_tokenizer, tmp_path, reference, **settings)
            for package in (core, trl)
        ),
        measured,
    )
    assert (metrics["kl"][0] > 0) == (loss_type == "kto" and seeds == (0, 1))


@pytest.mark.parametrize("loss_type", LOSSES)
@pytest.mark.parametrize("kind", ["given", "beforehand", "adapters off", "its own adapters"])
def test_references(kind, loss_type, build_llama, saved_llama, tiny_tokenizer, tmp_path, measured):
    """TRL reads the reference from the model's folder, so that the model as given stands there."""
    options = {"loss_type": loss_type}
    if kind == "given":
        model = double(copy.deepcopy(saved_llama))
        options["model_init_kwargs"] = None
    else:
        model = double(build_llama(seed=1))
    with in_double():
        if kind == "beforehand":
            options |= {"reference": double(build_llama()), "precompute_ref_log_probs": True}
        elif kind == "adapters off":
            options["peft"] = LORA
        elif kind == "its own adapters":
            model = build(core, model, tiny_tokenizer, tmp_path, peft=LORA).model
        ours, theirs = (
            build(package, model, tiny_tokenizer, tmp_path, **options) for package in (core, trl)
        )
        if kind == "given":
            theirs.ref_model = double(theirs.ref_model)
        compare(ours, theirs, measured)


CASES = {
    "defaults": {},
    "apo": {"loss_type": "apo_zero_unpaired"},
    "accumulated": {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 3},
    "weighted": {"desirable_weight": 2.0, "beta": 0.5},
    "cut": {"max_length": 7},
    "moving reference": {
        "sync_ref_model": True, "ref_model_sync_steps": 1, "ref_model_mixup_alpha": 0.5,
    },
}  # fmt: skip


@pytest.mark.parametrize(("case", "kind"), [("defaults", "texts"), *((c, "chats") for c in CASES)])
def test_three_steps(case, kind, build_llama, tiny_tokenizer, tmp_path, measured):
    model, reference = double(build_llama(seed=1)), double(build_llama())
    settings = {"per_device_train_batch_size": 4, "max_steps": 3, "learning_rate": 1e-2}
    settings |= {"optim": "sgd", **CASES[case]}
    logs, ends = [], []
    for package in (core, trl):
        trainer = build(
            package,
            model,
            tiny_tokenizer,
            tmp_path,
            reference,
            data=labelled_rows(kind),
            **settings,
        )
        trainer.train()
        logs.append([row for row in trainer.state.log_history if "loss" in row])
        ends.append(trainer.model)
    for row, their_row in zip(*logs, strict=True):
        assert their_row.keys() - {"epoch", "step"} <= row.keys()
        for name, value in their_row.items():
            assert measured(name, difference(row[name], value)) < SINGLE, name
    for (name, weight), their_weight in zip(
        ends[0].named_parameters(), ends[1].parameters(), strict=True
    ):
        assert measured("weights", difference(weight, their_weight)) < TOLERANCE, name


@pytest.mark.parametrize("loss_type", LOSSES)
def test_twenty_steps_end_at_the_same_weights(
    loss_type, saved_llama, tiny_tokenizer, tmp_path, monkeypatch, measured
):
    """In single precision, with AdamW and a schedule, and TRL's own head and reference."""
    monkeypatch.undo()
    settings = {
        "max_steps": STEPS,
        "loss_type": loss_type,
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "learning_rate": 1e-3,
        "lr_scheduler_type": "linear",
        "warmup_steps": 3,
        "adam_epsilon": 1e-4,
        "data": labelled_rows("chats", 16),
    }
    ends, curves = [], []
    for package in (core, trl):
        trainer = build(package, saved_llama, tiny_tokenizer, tmp_path, **settings)
        trainer.train()
        ends.append(torch.cat([p.detach().flatten() for p in trainer.model.parameters()]))
        curves.append([row["loss"] for row in trainer.state.log_history if "loss" in row])
    start = torch.cat([p.detach().flatten() for p in saved_llama.parameters()])
    assert len(curves[0]) == STEPS
    assert (ends[0] - start).abs().max() > 5e-3
    assert measured("a replay: weights", (ends[0] - ends[1]).abs().max().item()) < 1e-5
    assert measured("a replay: losses", difference(*curves)) < 1e-5
