"""Log-probabilities of completion tokens under a model, at the sampling temperature."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from core.trainers.batches import TOKEN_KEYS, Batch, columns_used, cut_columns
from core.trainers.head import HeadLogps
from core.trainers.packing import pack, packs
from core.trainers.pieces import take

CPU_ROWS = 16  # completions whose activations stay in a processor's cache


def token_logps(
    model: nn.Module, batch: Batch, temperature: float, *, with_entropy: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Log-probability and, without gradient, entropy of each completion token (B, T).

    log softmax(logits / temperature) at the token that came next; both are 0 on padding. What the
    model's attention allows is packed. Otherwise, on a CPU, completions of like length go through
    the model together, which skips padding and changes nothing else.
    """
    # what distributes, compiles or adapts a model holds it as a module
    policy = next((m for m in model.modules() if isinstance(m, PreTrainedModel)), None)
    if policy is not None and packs(policy, batch):
        return packed_logps(model, policy, batch, temperature, with_entropy=with_entropy)
    on_cpu = batch["completion_ids"].device.type == "cpu"
    order = batch["completion_mask"].sum(-1).argsort(stable=True)
    parts = [
        chunk_logps(model, batch, rows, temperature, with_entropy)
        for rows in order.split(CPU_ROWS if on_cpu else len(order))
    ]
    back = order.argsort()
    logps = torch.cat([part for part, _ in parts])[back]
    entropies = [entropy for _, entropy in parts if entropy is not None]
    return logps, torch.cat(entropies)[back] if entropies else None


def packed_logps(
    model: nn.Module,
    policy: PreTrainedModel,
    batch: Batch,
    temperature: float,
    *,
    with_entropy: bool,
) -> tuple[Tensor, Tensor | None]:
    """The same from packed rows; `policy` is the model inside what distributes or adapts it."""
    packed = pack(batch)
    with reading_head(policy, packed.targets, temperature, with_entropy):
        found = model(
            input_ids=packed.ids,
            position_ids=packed.positions,
            attention_mask=packed.no_mask,
            packed=packed,
            logits_to_keep=packed.read,
            use_cache=False,
        ).logits
    mask = batch["completion_mask"].bool()
    logps, entropy = (
        part.new_zeros(mask.shape).masked_scatter(mask, part) for part in found[0].unbind(-1)
    )
    return logps, entropy.detach() if with_entropy else None


@contextmanager
def reading_head(
    policy: PreTrainedModel, targets: Tensor, temperature: float, with_entropy: bool
) -> Iterator[None]:
    """Let the head give log-probability and entropy (1, M, 2) of the targets, not logits.

    The call stays one of the whole model, so that what distributes or shards it sees it.
    """
    head: Any = policy.get_output_embeddings()  # Any: an nn.Linear, see `packs`

    @torch.compiler.disable(reason="it would be compiled again for all targets")
    def read(hidden: Tensor) -> Tensor:
        both = HeadLogps.apply(hidden[0], head.weight, targets, temperature, with_entropy)
        return torch.stack([part.unsqueeze(0) for part in both], dim=-1)  # FSDP2 warns of views

    head.forward = read
    try:
        yield
    finally:
        del head.forward


def chunk_logps(
    model: nn.Module, batch: Batch, rows: Tensor, temperature: float, with_entropy: bool
) -> tuple[Tensor, Tensor | None]:
    """The same for some rows of a batch, padded to the width of the batch again."""
    chunk = {key: batch[key][rows] for key in TOKEN_KEYS}
    left, width = columns_used(chunk)
    short = {key: cut_columns(key, tensor, left, width) for key, tensor in chunk.items()}
    targets, mask = short["completion_ids"], short["completion_mask"].bool()
    raw = completion_logits(model, short, first_position=left)
    logits = raw if temperature == 1.0 else raw / temperature
    total = logits.logsumexp(-1)
    logps = logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1) - total
    filler = (0, chunk["completion_ids"].size(1) - width)
    padded = nn.functional.pad(logps.masked_fill(~mask, 0.0), filler)
    if not with_entropy:
        return padded, None
    entropy = token_entropy(logits.detach(), total.detach()) * mask
    return padded, nn.functional.pad(entropy, filler)


def completion_logits(model: nn.Module, batch: Batch, *, first_position: int) -> Tensor:
    """Logits (B, T, V) that predict the completion tokens, in 32 bits or more.

    Positions count from the padded start, as in TRL; `first_position` columns were cut off there.
    """
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    positions = torch.arange(ids.size(1), device=ids.device) + first_position
    logits = model(
        input_ids=ids,
        attention_mask=torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1),
        position_ids=positions.expand_as(ids),
        logits_to_keep=batch["completion_ids"].size(1) + 1,
        use_cache=False,
    ).logits[:, :-1]
    return logits if logits.dtype == torch.float64 else logits.float()


def token_entropy(logits: Tensor, total: Tensor) -> Tensor:
    """H = log Z - sum_v p_v z_v of each position, from logits z (B, T, V) and log Z (B, T)."""
    probabilities = (logits - total.unsqueeze(-1)).exp()
    return total - (probabilities * logits).sum(-1)


@torch.no_grad()
def frozen_logps(
    model: nn.Module, batch: Batch, temperature: float, pieces: Sequence[Sequence[int]]
) -> Tensor:
    """Log-probabilities (B, T) without gradient or dropout, some rows at a time."""
    with evaluating(model):
        parts = [token_logps(model, take(batch, rows), temperature)[0] for rows in pieces]
    order = torch.tensor([row for rows in pieces for row in rows])
    return torch.cat(parts)[order.argsort().to(parts[0].device)]


@contextmanager
def evaluating(model: nn.Module) -> Iterator[nn.Module]:
    """Put the model into evaluation mode for a while: no dropout, no checkpointing."""
    training = model.training
    model.eval()
    try:
        yield model
    finally:
        model.train(training)
