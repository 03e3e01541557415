"""Log-probabilities of completion tokens under a model, at the sampling temperature."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from core.forward.batches import Batch
from core.forward.head import head_logps
from core.forward.micro_pieces import take
from core.forward.packing import Packed, can_pack, pack
from core.forward.router import router_loss
from core.rollout.support import within
from core.rollout.wide_head import WideHead, upcast

CPU_ROWS = 16  # completions whose activations stay in a processor's cache


class TokenLogps(NamedTuple):
    """Log-probability and optional entropy of each completion token (B, T).

    Both are 0 on padding. The entropy has a gradient only if it is learned. `router_loss` is the
    load-balancing loss over all tokens of these rows, if requested.
    """

    logps: Tensor
    entropy: Tensor | None
    router_loss: Tensor | None = None


class Entropy(NamedTuple):
    """Options of the entropy of tokens: whether it is computed, and whether it has a gradient."""

    computed: bool
    learned: bool = False


def token_logps(
    model: nn.Module,
    batch: Batch,
    temperature: float,
    *,
    with_entropy: bool = False,
    learns_entropy: bool = False,
    with_router: bool = False,
) -> TokenLogps:
    """Return log softmax(logits / temperature) at each completion token (B, T).

    If the batch has a `support` (B, T, bytes), the softmax is over the tokens in it, which include
    the sampled ones; arXiv 2512.02556 s3.1 (keep sampling mask).

    The batch is packed if the model's attention allows it. Otherwise completions of similar length
    go through the model together on a CPU, which skips padding. With `with_router` all rows go
    through the model at once, since its loss is over all of them.
    """
    # what distributes, compiles or adapts a model holds it as a module
    policy = next((m for m in model.modules() if isinstance(m, PreTrainedModel)), None)
    entropy = Entropy(computed=with_entropy, learned=learns_entropy)
    if policy is not None and can_pack(policy, batch):
        return packed_logps(model, policy, batch, temperature, entropy)
    if with_router:
        return padded_logps(model, batch, temperature, entropy, with_router=True)
    on_cpu = batch["completion_ids"].device.type == "cpu"
    order = batch["completion_mask"].sum(-1).argsort(stable=True)
    parts = [
        padded_logps(model, take(batch, rows), temperature, entropy)
        for rows in order.split(CPU_ROWS if on_cpu else len(order))
    ]
    return join_parts(parts, order)


def join_parts(parts: Sequence[TokenLogps], order: Tensor) -> TokenLogps:
    """Concatenate parts of a batch whose rows have the indices `order`, and restore its order.

    There must be at least one part.
    """
    restore = order.argsort().to(parts[0].logps.device)
    entropies = [part.entropy for part in parts if part.entropy is not None]
    return TokenLogps(
        logps=torch.cat([part.logps for part in parts])[restore],
        entropy=torch.cat(entropies)[restore] if entropies else None,
    )


def packed_logps(
    model: nn.Module,
    policy: PreTrainedModel,
    batch: Batch,
    temperature: float,
    entropies: Entropy,
) -> TokenLogps:
    """Compute `token_logps` from packed rows.

    `policy` is the transformers model inside wrappers such as DDP or peft.
    """
    packed = pack(batch)
    head = cast(nn.Linear, policy.get_output_embeddings())  # see `can_pack`
    mask = batch["completion_mask"].bool()
    support = batch["support"][mask] if "support" in batch else None

    def head_outputs(hidden: Tensor) -> tuple[Tensor, ...]:
        outputs = partial(
            head_logps,
            targets=packed.targets,
            temperature=temperature,
            with_entropy=entropies.computed,
            learns_entropy=entropies.learned,
            support=support,
        )
        if not isinstance(head, WideHead):
            return outputs(hidden[0], head.weight)
        with torch.autocast(hidden.device.type, enabled=False):
            return outputs(upcast(hidden[0]), upcast(head.weight))

    logps, entropy, _ = read_packed(model, policy, batch, packed, head_outputs)
    if not entropies.learned:
        entropy = entropy.detach()
    return TokenLogps(logps, entropy if entropies.computed else None)


def read_packed(
    model: nn.Module,
    policy: PreTrainedModel,
    batch: Batch,
    packed: Packed,
    head_outputs: Callable[[Tensor], tuple[Tensor, ...]],
) -> list[Tensor]:
    """Return what `head_outputs` computes from hidden states of packed rows, each (B, T)."""
    with reading_head(policy, head_outputs):
        outputs = model(
            input_ids=packed.ids,
            position_ids=packed.positions,
            attention_mask=packed.no_mask,
            packed=packed,
            logits_to_keep=packed.read,
            use_cache=False,
        ).logits
    mask = batch["completion_mask"].bool()
    return [part.new_zeros(mask.shape).masked_scatter(mask, part) for part in outputs[0].unbind(-1)]


@contextmanager
def reading_head(
    policy: PreTrainedModel, head_outputs: Callable[[Tensor], tuple[Tensor, ...]]
) -> Iterator[None]:
    """Replace the head's forward by `head_outputs`, a map from hidden states to numbers per token.

    Hidden states have the shape (1, M, ...). The call remains one of the whole model, so that
    wrappers that distribute or shard it see it.
    """
    head: Any = policy.get_output_embeddings()  # Any: an nn.Linear

    @torch.compiler.disable(reason="it would be compiled again for all targets")
    def forward(hidden: Tensor) -> Tensor:
        # FSDP2 warns of views
        return torch.stack([part.unsqueeze(0) for part in head_outputs(hidden)], dim=-1)

    head.forward = forward
    try:
        yield
    finally:
        del head.forward


def padded_logps(
    model: nn.Module,
    batch: Batch,
    temperature: float,
    entropies: Entropy,
    *,
    with_router: bool = False,
) -> TokenLogps:
    """Compute `token_logps` from rows that are padded on the right."""
    mask, rows = batch["completion_mask"].bool(), flush_left(batch)
    outputs = completion_outputs(model, rows, with_router=with_router)
    raw = outputs.logits if outputs.logits.dtype == torch.float64 else outputs.logits.float()
    heated = raw if temperature == 1.0 else raw / temperature
    logits = within(heated, support_of(batch, rows))
    total = logits.logsumexp(-1)
    targets = rows.ids[:, rows.first :]
    logps = logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1) - total
    learned = (logits, total) if entropies.learned else (logits.detach(), total.detach())
    entropy = token_entropy(*learned) if entropies.computed else None
    return TokenLogps(
        logps=rows.at_tokens(logps, mask),
        entropy=None if entropy is None else rows.at_tokens(entropy, mask),
        router_loss=router_loss(outputs) if with_router else None,
    )


def support_of(batch: Batch, rows: "Rows") -> Tensor | None:
    """Return the support (B, W - first, bytes) of the tokens from `first` on.

    Tokens that are not of the completion get the support of some other token, which is not used.
    """
    if "support" not in batch:
        return None
    support, width = batch["support"], rows.ids.size(1) - rows.first
    columns = torch.arange(width, device=support.device) - (rows.begins - rows.first)
    places = columns.clamp(0, support.size(1) - 1).unsqueeze(-1)
    return support.gather(1, places.expand(-1, -1, support.size(-1)))


@dataclass(frozen=True)
class Rows:
    """Right-padded tokens (B, W) with their mask.

    Attributes:
        ids: Token ids (B, W).
        mask: 1 on tokens, 0 on padding (B, W).
        begins: Column (B, 1) in which each completion begins.
        first: Smallest of `begins`.
    """

    ids: Tensor
    mask: Tensor
    begins: Tensor
    first: int

    def at_tokens(self, values: Tensor, mask: Tensor) -> Tensor:
        """Gather values (B, W - first) at the completion tokens (B, T), 0 on padding."""
        places = (self.begins - self.first) + torch.arange(mask.size(1), device=mask.device)
        gathered = values.gather(1, places.clamp(max=values.size(1) - 1))
        return gathered.masked_fill(~mask, 0.0)


def flush_left(batch: Batch) -> Rows:
    """Move prompts and completions to the left, with all padding on the right.

    In a causal model later tokens change nothing before them, for any kind of positions and states:
    learned, rotary, a slope, a recurrence. This does not hold of padding on the left.
    """
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    present, begins = mask.bool(), batch["prompt_mask"].sum(1, keepdim=True)
    present[:, batch["prompt_ids"].size(1)] = True  # at least one token, be it left out of the loss
    order = present.int().argsort(dim=1, descending=True, stable=True)
    order = order[:, : int(present.sum(1).max())]
    return Rows(ids.gather(1, order), mask.gather(1, order), begins, int(begins.min()))


def completion_outputs(model: nn.Module, rows: Rows, *, with_router: bool) -> Any:
    """Return a model's outputs, with logits (B, W - first, V) of the tokens from `first` on."""
    width = rows.ids.size(1) - rows.first + 1
    outputs = model(
        input_ids=rows.ids,
        attention_mask=rows.mask,
        logits_to_keep=width,
        use_cache=False,
        **({"output_router_logits": True} if with_router else {}),
    )
    outputs.logits = outputs.logits[:, -width:-1]  # not every model leaves the others out
    return outputs


def token_entropy(logits: Tensor, total: Tensor) -> Tensor:
    """Return H = log Z - sum_v p_v z_v of each position from logits z (B, T, V) and log Z (B, T).

    The shape is (B, T).
    """
    probabilities = (logits - total.unsqueeze(-1)).exp()
    return total - (probabilities * logits).sum(-1)


@torch.no_grad()
def frozen_logps(
    model: nn.Module,
    batch: Batch,
    temperature: float,
    pieces: Sequence[Sequence[int]],
    *,
    with_entropy: bool = False,
    with_router: bool = False,
) -> TokenLogps:
    """Return log-probabilities and entropies without gradient or dropout, computed piece by piece.

    `pieces` has the row indices of each piece.
    """
    options = {"with_entropy": with_entropy, "with_router": with_router}
    with evaluating(model):
        parts = [token_logps(model, take(batch, rows), temperature, **options) for rows in pieces]
    return join_parts(parts, torch.tensor([row for rows in pieces for row in rows]))


@contextmanager
def evaluating(model: nn.Module) -> Iterator[nn.Module]:
    """Put the model into evaluation mode within the block: no dropout, no checkpointing."""
    training = model.training
    model.eval()
    try:
        yield model
    finally:
        model.train(training)
