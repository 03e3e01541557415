"""Every loss of pairs with every divergence, smoothing, tail weight and weighting is as in TRL."""

from collections import defaultdict
from types import SimpleNamespace

import pytest
import torch
from peers import difference
from trl import DPOConfig as TheirConfig
from trl import DPOTrainer as Theirs

from core.losses.divergence_scores import DIVERGENCES
from core.losses.paired_answers import Answers, Pairs
from core.losses.preference import PREFERENCES, preference_losses

TOLERANCE = 1e-12
OURS = ("cdpo", "ipo_sum", "sppo", "sft_mean", "sft_sum")
TRLS = tuple(name for name in PREFERENCES if name not in OURS)
SORTED = ("aot", "aot_unpaired")
LENGTHS = (4, 1, 3, 2), (2, 3, 5, 1)  # of the chosen and the rejected answers


def settings(loss_type="sigmoid", **changes):
    fields = {
        "loss_type": [loss_type] if isinstance(loss_type, str) else loss_type,
        "loss_weights": None,
        "beta": 0.3,
        "label_smoothing": 0.1,
        "f_divergence_type": "reverse_kl",
        "f_alpha_divergence_coef": 0.5,
        "ld_alpha": None,
        "use_weighting": False,
        "weighting_side": "both",
        "weighting_clamp": None,
        "discopop_tau": 0.05,
    }
    return SimpleNamespace(**{**fields, **changes})


def batch():
    """Log-probabilities (8, 6) of four chosen and four rejected answers after a prompt of one."""
    draw = torch.Generator().manual_seed(7)
    lengths = torch.tensor([*LENGTHS[0], *LENGTHS[1]])
    mask = (torch.arange(6) < lengths[:, None]).long()
    logps, ref_logps = (
        (-2 + torch.randn(8, 6, generator=draw, dtype=torch.float64)) * mask for _ in range(2)
    )
    squares = -1 + 0.3 * torch.randn(8, 6, generator=draw, dtype=torch.float64)
    return {"logps": logps, "ref_logps": ref_logps, "mask": mask, "alignment": squares}


def ours(c):
    """Our loss and its gradient by the log-probabilities."""
    rows = batch()
    rows["logps"].requires_grad_()
    halves = {name: x.chunk(2) for name, x in rows.items()}
    pairs = Pairs(
        **{
            side: Answers(**{name: half[number] for name, half in halves.items()})
            for number, side in enumerate(("chosen", "rejected"))
        }
    )
    loss = preference_losses(pairs, c).losses.mean()
    loss.backward()
    return loss.detach(), rows["logps"].grad


def theirs(c, monkeypatch):
    """TRL's loss and its gradient, of models that return the log-probabilities of the batch."""
    rows = batch()
    rows["logps"].requires_grad_()
    nothing = torch.zeros_like(rows["mask"], dtype=torch.float64)

    def outputs(name):
        labelled = rows[name] * rows["mask"]  # the model has 0 where there is no label
        fields = {"log_sum_sq_probs": rows["alignment"], "log_probs": labelled}
        unused = {"entropy": nothing, "mean_logits": nothing, "is_top1": nothing.bool()}
        return SimpleNamespace(**fields, **unused)

    class Model:
        training = True

        def __call__(self, **_):
            return outputs("logps")

    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)  # of the alpha divergence
    same = SimpleNamespace(
        device="cpu",
        gather=lambda x: x,
        gather_for_metrics=lambda x: x,
    )
    trainer = SimpleNamespace(
        **{name: getattr(c, name) for name in ("beta", "label_smoothing", "ld_alpha")},
        **{name: getattr(c, name) for name in ("f_divergence_type", "use_weighting")},
        f_alpha_divergence_coef=c.f_alpha_divergence_coef,
        loss_types=c.loss_type,
        loss_weights=c.loss_weights or [1.0] * len(c.loss_type),
        args=SimpleNamespace(discopop_tau=c.discopop_tau, gradient_checkpointing_kwargs=None),
        model=Model(),
        ref_model=lambda **_: outputs("ref_logps"),
        accelerator=same,
        aux_loss_enabled=False,
        precompute_ref_logps=False,
        _metrics={"train": defaultdict(list)},
        _total_train_tokens=0,
        _tp_size=1,
    )
    monkeypatch.setattr("trl.trainer.dpo_trainer.is_peft_model", lambda _: False)
    monkeypatch.setattr("trl.trainer.dpo_trainer.disable_gradient_checkpointing", as_is)
    whole = torch.cat([torch.zeros(8, 1, dtype=torch.long), rows["mask"]], dim=1)
    inputs = {"input_ids": whole, "attention_mask": whole, "completion_mask": whole}
    torch.set_default_dtype(torch.float64)  # of EXO's smoothing
    try:
        loss = Theirs._compute_loss(trainer, trainer.model, inputs, return_outputs=False)
    finally:
        torch.set_default_dtype(torch.float32)
    loss.backward()
    return loss.detach(), rows["logps"].grad


class as_is:
    """A context that changes nothing."""

    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def check(c, monkeypatch, measured, group):
    (loss, gradient), (their_loss, their_gradient) = ours(c), theirs(c, monkeypatch)
    assert measured(f"preference loss: {group}", difference(loss, their_loss)) < TOLERANCE
    assert measured(f"its gradient: {group}", difference(gradient, their_gradient)) < TOLERANCE


def test_the_table_has_the_losses_of_trl():
    theirs = TheirConfig.__dataclass_fields__["loss_type"].metadata["help"]
    assert all(f"`'{name}'`" in theirs for name in TRLS)
    assert len(TRLS) == 15


@pytest.mark.parametrize("ld_alpha", [None, 0.0, 0.5, 1.0])
@pytest.mark.parametrize("smoothing", [0.001, 0.1, 0.4])
@pytest.mark.parametrize("loss_type", TRLS)
def test_losses(loss_type, smoothing, ld_alpha, monkeypatch, measured):
    c = settings(loss_type, label_smoothing=smoothing, ld_alpha=ld_alpha)
    check(c, monkeypatch, measured, loss_type)


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("loss_type", [n for n in TRLS if PREFERENCES[n].takes_divergences])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_divergences(loss_type, divergence, alpha, monkeypatch, measured):
    c = settings(loss_type, f_divergence_type=divergence, f_alpha_divergence_coef=alpha)
    monkeypatch.setitem(
        Theirs._compute_loss.__globals__, "torch", WithDoubles()
    ) if divergence == "alpha_divergence" else None
    check(c, monkeypatch, measured, divergence)


# TRL refuses to weigh sorted losses, and weighs those of hinges and of SFT in place, which fails.
@pytest.mark.parametrize("loss_type", [n for n in TRLS if n not in (*SORTED, "sft", "hinge")])
def test_weighting(loss_type, monkeypatch, measured):
    check(settings(loss_type, use_weighting=True), monkeypatch, measured, "weighting")


def test_mixed_losses(monkeypatch, measured):
    c = settings(["sigmoid", "bco_pair", "sft"], loss_weights=[0.8, 0.2, 1.0])
    check(c, monkeypatch, measured, "a mix")


class WithDoubles:
    """The module torch, with a `float16` that TRL's table of dtypes takes for 64 bits."""

    def __getattr__(self, name):
        return torch.float64 if name == "float16" else getattr(torch, name)
