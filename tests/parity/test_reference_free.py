"""CPO, ORPO and TPO have TRL's loss, gradient and metrics, and whole runs end at its weights.

TRL's `logits/*` of CPO and ORPO are means over prompts and padding too, and are left out.
"""

import copy
from dataclasses import MISSING, fields
from inspect import signature
from types import SimpleNamespace

import pytest
import torch
from datasets import Dataset
from peers import QUIET, difference, double
from trl.experimental import cpo as trl_cpo
from trl.experimental import orpo as trl_orpo
from trl.experimental import tpo as trl_tpo

import core
from core.losses.reference_free import TPO_LOSSES

TOLERANCE = 1e-10
THEIRS = {"CPO": trl_cpo, "ORPO": trl_orpo, "TPO": trl_tpo}
SHORT = {name: value for name, value in QUIET.items() if "gen" not in name and "len" not in name}
TEXTS = [("1+2=", "3", "4"), ("12+34=", "46 is it", "45"), ("x", "y z", "w"), ("7*8-9=", "47", "5")]
SMOOTHINGS = (0.0, 0.1, 0.4)
CASES = [
    *(("ORPO", {"beta": beta}) for beta in (0.1, 1.5)),
    *(
        ("CPO", {"loss_type": name, "cpo_alpha": weight, "label_smoothing": smoothing})
        for name in ("sigmoid", "simpo")
        for weight in (0.0, 1.0, 0.3)
        for smoothing in SMOOTHINGS
    ),
    *(("CPO", {"loss_type": n, "cpo_alpha": w}) for n in ("hinge", "ipo") for w in (0.0, 1.0, 0.3)),
    *(
        ("CPO", {"loss_type": "alphapo", "alpha": alpha, "label_smoothing": smoothing})
        for alpha in (0.25, -0.5, 0.0)
        for smoothing in SMOOTHINGS
    ),
    *(("CPO", {"loss_type": name, "alpha": 0.7, "cpo_alpha": 0.2}) for name in ("ipo", "simpo")),
    ("CPO", {"loss_type": "simpo", "simpo_gamma": 1.375, "beta": 2.5}),
    *(
        ("TPO", {"loss_type": name, "tpo_alpha": weight, "beta": 0.2})
        for name in TPO_LOSSES
        for weight in (0.0, 1.0, 0.05)
    ),
    *(
        ("TPO", {"loss_type": name, "label_smoothing": smoothing, "beta": 0.2})
        for name in ("sigmoid", "tpo-l")
        for smoothing in SMOOTHINGS[1:]
    ),
    ("TPO", {"loss_type": "tpo-l", "tpo_l_gamma": 1.6, "beta": 2.0}),
    ("TPO", {"truncation_mode": "keep_end", "max_length": 26}),
]


def triples(count):
    """Conversations with a chosen, a rejected and a gold answer of other lengths."""
    texts = [(TEXTS[i % 4][0] + "=" * (i // 4), *TEXTS[i % 4][1:]) for i in range(count)]
    said = [(p, c, r, f"{c} ok" * (1 + i % 2)) for i, (p, c, r) in enumerate(texts)]
    names = ("chosen", "rejected", "reference")
    return Dataset.from_list(
        [
            {
                "prompt": [{"role": "user", "content": prompt}],
                **{
                    name: [{"role": "assistant", "content": text}]
                    for name, text in zip(names, answers, strict=True)
                },
            }
            for prompt, *answers in said
        ]
    )


def built(package, method, model, tokenizer, folder, rows, **changes):
    """A trainer of `package` on a copy of the model."""
    args = getattr(package, f"{method}Config")(output_dir=str(folder), **SHORT | changes)
    return getattr(package, f"{method}Trainer")(
        model=copy.deepcopy(model), args=args, train_dataset=rows, processing_class=tokenizer
    )


def outcome(trainer):
    """Loss, gradient and metrics of the first batch of a trainer."""
    trainer.model.train()
    (batch,) = [trainer._prepare_inputs(rows) for rows in trainer.get_train_dataloader()]
    if hasattr(trainer, "get_batch_loss_metrics"):
        loss, metrics = trainer.get_batch_loss_metrics(trainer.model, batch)
    else:
        loss = trainer.compute_loss(trainer.model, batch)
        metrics = {name: values[-1] for name, values in trainer._metrics["train"].items()}
    loss.backward()
    gradient = torch.cat([p.grad.flatten() for p in trainer.model.parameters()])
    return SimpleNamespace(loss=loss.detach(), gradient=gradient, metrics=metrics)


def compared(method, metrics, changes):
    """Names of TRL's metrics that have the same meaning here."""
    dropped = set() if method == "TPO" else {"logits/chosen", "logits/rejected"}
    # TRL has 0 for a likelihood that does not weigh, here it is logged.
    weight = 0.0 if changes.get("loss_type") == "alphapo" else changes.get("cpo_alpha", 1.0)
    return metrics.keys() - dropped - ({"nll_loss"} if method == "CPO" and not weight else set())


@pytest.mark.parametrize(("method", "changes"), CASES, ids=str)
def test_loss_gradient_and_metrics(
    method, changes, build_llama, tiny_tokenizer, tmp_path, monkeypatch, measured
):
    model, rows = double(build_llama()), triples(8)
    pair = [
        built(package, method, model, tiny_tokenizer, tmp_path, rows, **changes)
        for package in (core, THEIRS[method])
    ]
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)  # of ORPO's log odds
    ours, theirs = map(outcome, pair)
    assert measured(f"{method}: loss", difference(ours.loss, theirs.loss)) < TOLERANCE
    assert measured(f"{method}: gradient", difference(ours.gradient, theirs.gradient)) < TOLERANCE
    names = compared(method, theirs.metrics, changes)
    assert names >= {"rewards/margins", "rewards/accuracies", "logps/chosen", "logps/rejected"}
    for name in names:
        error = difference(ours.metrics[name], theirs.metrics[name])
        assert measured(f"{method}: {name}", error) < TOLERANCE, name


RUNS = {
    "SimPO": ("CPO", {"loss_type": "simpo", "cpo_alpha": 0.0, "beta": 2.5, "simpo_gamma": 1.375}),
    "ORPO": ("ORPO", {"beta": 0.5}),
    "TPO-L": ("TPO", {"loss_type": "tpo-l", "beta": 2.0, "tpo_l_gamma": 1.6, "tpo_alpha": 0.3}),
}


@pytest.mark.parametrize("run", RUNS)
def test_replay(run, build_llama, tiny_tokenizer, tmp_path, measured):
    """Twenty steps of Adam in 32 bits, over two epochs of shuffled rows."""
    method, changes = RUNS[run]
    settings = {
        "max_steps": 20,
        "per_device_train_batch_size": 4,
        "learning_rate": 1e-3,
        "lr_scheduler_type": "linear",
        "warmup_steps": 3,
        **changes,
    }
    model = build_llama()
    ours, theirs = (
        built(package, method, model, tiny_tokenizer, tmp_path, triples(40), **settings)
        for package in (core, THEIRS[method])
    )
    curves = []
    for trainer in (ours, theirs):
        trainer.train()
        curves.append([row for row in trainer.state.log_history if "loss" in row])
    assert len(curves[0]) == len(curves[1]) == 20
    for row, other in zip(*curves, strict=True):
        for name in {"loss", *compared(method, other, changes)} - {"grad_norm"}:
            error = abs(row[name] - other[name]) / max(1.0, abs(other[name]))
            assert measured(f"run, {run}: logs", error) < 1e-4, name
    start, end, peer = (
        torch.cat([p.detach().flatten() for p in m.parameters()])
        for m in (model, ours.model, theirs.model)
    )
    assert (end - start).abs().max() > 5e-3  # it did train
    assert measured(f"run, {run}: weights", (end - peer).abs().max().item()) < 1e-5


def defaults(config):
    return {
        f.name: f.default if f.default_factory is MISSING else f.default_factory()
        for f in fields(config)
    }


@pytest.mark.parametrize("method", THEIRS)
def test_settings_and_arguments(method, tmp_path):
    ours, theirs = (getattr(package, f"{method}Config") for package in (core, THEIRS[method]))
    assert defaults(ours) == defaults(theirs)
    kinds = [{}] if method == "ORPO" else [{"loss_type": "ipo"}, {"label_smoothing": 0.1}]
    kinds += [{"loss_type": "alphapo", "alpha": 0.5}] if method == "CPO" else []
    for changes in kinds:
        given = {"output_dir": str(tmp_path), "use_cpu": True, **changes}
        given["activation_checkpointing"] = True
        one, other = ours(**given), theirs(**given)
        for name in defaults(theirs):
            assert getattr(one, name) == getattr(other, name), name
    arguments = [
        [
            (p.name, p.default)
            for p in signature(getattr(package, f"{method}Trainer")).parameters.values()
        ]
        for package in (core, THEIRS[method])
    ]
    assert arguments[0] == arguments[1]
