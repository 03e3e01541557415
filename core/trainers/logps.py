"""Log-probabilities of completion tokens under a model, at the sampling temperature."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from core.trainers.batches import TOKEN_KEYS, Batch
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
    """The same for some rows of a batch; both are as wide as the batch."""
    chunk = {key: batch[key][rows] for key in TOKEN_KEYS}
    mask = chunk["completion_mask"].bool()
    row = flush_left(chunk)
    raw = completion_logits(model, row)
    logits = raw if temperature == 1.0 else raw / temperature
    total = logits.logsumexp(-1)
    targets = row.ids[:, row.first :]
    logps = logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1) - total
    places = (row.begins - row.first) + torch.arange(mask.size(1), device=mask.device)

    def read(values: Tensor) -> Tensor:
        """Those of the completions' tokens, 0 on padding."""
        found = values.gather(1, places.clamp(max=values.size(1) - 1))
        return found.masked_fill(~mask, 0.0)

    if not with_entropy:
        return read(logps), None
    return read(logps), read(token_entropy(logits.detach(), total.detach()))


@dataclass(frozen=True)
class Rows:
    """Tokens (B, W) without padding before or within them, and their mask.

    Completions begin at the columns `begins` (B, 1), none before the column `first`.
    """

    ids: Tensor
    mask: Tensor
    begins: Tensor
    first: int


def flush_left(batch: Batch) -> Rows:
    """Prompts with their completions behind them, and padding behind both.

    What comes later changes nothing before it in any causal model, whatever its positions and its
    states are: learned, rotary, a slope, a recurrence. Padding on the left is not so.
    """
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    there, begins = mask.bool(), batch["prompt_mask"].sum(1, keepdim=True)
    there[:, batch["prompt_ids"].size(1)] = True  # at least one token, be it left out of the loss
    order = there.int().argsort(dim=1, descending=True, stable=True)
    order = order[:, : int(there.sum(1).max())]
    return Rows(ids.gather(1, order), mask.gather(1, order), begins, int(begins.min()))


def completion_logits(model: nn.Module, rows: Rows) -> Tensor:
    """Logits (B, W - first, V) that predict the tokens from `first` on, in 32 bits or more."""
    width = rows.ids.size(1) - rows.first + 1
    logits = model(
        input_ids=rows.ids, attention_mask=rows.mask, logits_to_keep=width, use_cache=False
    ).logits[:, -width:-1]  # not every model leaves the others out
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
