"""Laws of LoRA and DoRA: a model with adapters at its start, after some steps, and merged."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from core.configs.script import ModelConfig
from core.configs.sft import SFTConfig
from core.forward.labelled import labelled_logps
from core.laws.packed_rows import small_model
from core.losses.supervised import SUPERVISED
from core.shards.adapters import add_adapters, get_peft_config

KINDS: Mapping[str, Mapping[str, Any]] = {  # Any: of several fields of `ModelConfig`
    "lora": {},
    "rslora": {"use_rslora": True},
    "dora": {"use_dora": True},
}
RANKS = (1, 4, 16)
STEPS, RATE = 5, 1e-2  # of AdamW
TOKENS = torch.arange(1, 25).reshape(2, 12)  # a batch, all of whose tokens are labels
Model = Any  # of peft, whose methods are half typed


def adapted_model(kind: str, rank: int) -> Model:
    """Return the small model in 64 bits with new adapters on all linear layers, alpha 2 r."""
    settings = ModelConfig(
        use_peft=True,
        lora_r=rank,
        lora_alpha=2 * rank,
        lora_dropout=0.0,
        lora_target_modules=["all-linear"],
        **KINDS[kind],
    )
    args = SFTConfig(output_dir="unused", use_cpu=True, bf16=False, gradient_checkpointing=False)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return add_adapters(small_model(), get_peft_config(settings), args).double()


def training_loss(model: Model) -> Tensor:
    """Return the mean negative log-likelihood of the batch, as `SFTTrainer` computes it."""
    found = labelled_logps(model, {"input_ids": TOKENS}, TOKENS, with_logits=False)
    return SUPERVISED["nll"].loss(found.logps).mean()


def trained_model(kind: str, rank: int, steps: int = STEPS) -> tuple[Model, torch.optim.Optimizer]:
    """Return the model after some steps of AdamW on one batch, and the optimizer."""
    model = adapted_model(kind, rank)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RATE, weight_decay=0.0)
    for _ in range(steps):
        optimizer.zero_grad()
        training_loss(model).backward()  # pyright: ignore[reportUnknownMemberType]
        optimizer.step()  # pyright: ignore[reportUnknownMemberType]
    return model, optimizer


@torch.no_grad()
def logits_of(model: Model) -> Tensor:
    """Return the logits of the batch."""
    return model(TOKENS).logits


def adapted_layers(model: Model) -> Iterator[Any]:  # Any: a layer of peft
    """Yield the layers with adapters."""
    return (layer for layer in model.modules() if hasattr(layer, "lora_A"))


def start_changes(kind: str) -> list[float]:
    """Return max |logits with new adapters - logits of the base model|, for each of `RANKS`."""
    base = logits_of(small_model())
    return [float((logits_of(adapted_model(kind, rank)) - base).abs().max()) for rank in RANKS]


def merge_changes(kind: str) -> list[float]:
    """Return max |logits after merging - before| of trained adapters, for each of `RANKS`."""
    changes: list[float] = []
    for rank in RANKS:
        model, _ = trained_model(kind, rank)
        before = logits_of(model)
        changes.append(float((logits_of(model.merge_and_unload()) - before).abs().max()))
    return changes


def first_gradients(factor: str) -> list[float]:
    """Return the norm of the first gradient of a factor of LoRA, "A" or "B", in each layer."""
    model = adapted_model("lora", 4)
    training_loss(model).backward()  # pyright: ignore[reportUnknownMemberType]
    return [
        float(getattr(layer, f"lora_{factor}")["default"].weight.grad.norm())
        for layer in adapted_layers(model)
    ]


def trained_numbers(kind: str, rank: int) -> list[int]:
    """Return how many numbers are trained, in each layer and outside of these."""
    model = adapted_model(kind, rank)
    by_layer = [_trained(layer) for layer in adapted_layers(model)]
    return [*by_layer, _trained(model) - sum(by_layer)]


def moments(rank: int) -> list[int]:
    """Return how many numbers AdamW keeps of LoRA's factors, in each layer and outside of these."""
    model, optimizer = trained_model("lora", rank, steps=1)
    kept = {
        weight: s["exp_avg"].numel() + s["exp_avg_sq"].numel() for weight, s in _states(optimizer)
    }
    by_layer = [
        sum(kept[weight] for weight in layer.parameters() if weight in kept)
        for layer in adapted_layers(model)
    ]
    return [*by_layer, sum(kept.values()) - sum(by_layer)]


def stated_numbers(rank: int, each: int = 1) -> list[int]:
    """Return `each` r (d_in + d_out) of each layer, and 0 for what is outside of these."""
    layers = adapted_layers(adapted_model("lora", rank))
    return [*(each * rank * (layer.in_features + layer.out_features) for layer in layers), 0]


def outputs(rank: int) -> list[int]:
    """Return the number of outputs of each layer, and 0 for what is outside of these."""
    layers = adapted_layers(adapted_model("dora", rank))
    return [*(layer.out_features for layer in layers), 0]


def magnitude_errors(steps: int) -> list[float]:
    """Return max | ||row of DoRA's weight|| - its magnitude | after some steps, in each layer."""
    model, _ = trained_model("dora", 4, steps)
    magnitudes = [
        layer.lora_magnitude_vector["default"].weight.detach().clone()
        for layer in adapted_layers(model)
    ]
    names = [
        name for name, layer in model.get_base_model().named_modules() if hasattr(layer, "lora_A")
    ]
    merged = model.merge_and_unload()
    norms = [merged.get_submodule(name).weight.norm(dim=1) for name in names]
    return [float((m - norm).abs().max()) for m, norm in zip(magnitudes, norms, strict=True)]


def dora_start_errors() -> list[float]:
    """Return `start_changes` of DoRA, and then its `magnitude_errors` before any step."""
    return [*start_changes("dora"), *magnitude_errors(0)]


def _trained(module: Any) -> int:  # Any: as above
    return sum(weight.numel() for weight in module.parameters() if weight.requires_grad)


def _states(optimizer: torch.optim.Optimizer) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
    yield from optimizer.state.items()
