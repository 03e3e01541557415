"""Log-probabilities of completion tokens under a model, at the sampling temperature."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from core.forward.batches import Batch
from core.forward.head import HeadLogps
from core.forward.micro_pieces import take
from core.forward.packing import Packed, pack, packs
from core.forward.router import router_loss
from core.rollout.support import within
from core.rollout.wide_head import WideHead, upcast

CPU_ROWS = 16  # completions whose activations stay in a processor's cache


class TokenLogps(NamedTuple):
    """Log-probability and, if asked for, entropy of each completion token (B, T).

    Both are 0 on padding; the entropy has a gradient only where it is learned. `router_loss` is
    that of all tokens of these rows, if asked for.
    """

    logps: Tensor
    entropy: Tensor | None
    router_loss: Tensor | None = None


class Entropy(NamedTuple):
    """Whether the entropy of each token is asked for, and has a gradient."""

    asked: bool
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
    """log softmax(logits / temperature) at the token that came next.

    Of a batch with a `support` (B, T, bytes) the softmax is over the tokens in it, in which those
    that came next are. arXiv 2512.02556, section 3.1 (keep sampling mask).

    What the model's attention allows is packed. Otherwise, on a CPU, completions of like length go
    through the model together, which skips padding and changes nothing else; but all rows at once
    where their router is judged.
    """
    # what distributes, compiles or adapts a model holds it as a module
    policy = next((m for m in model.modules() if isinstance(m, PreTrainedModel)), None)
    entropy = Entropy(asked=with_entropy, learned=learns_entropy)
    if policy is not None and packs(policy, batch):
        return packed_logps(model, policy, batch, temperature, entropy)
    if with_router:
        return padded_logps(model, batch, temperature, entropy, with_router=True)
    on_cpu = batch["completion_ids"].device.type == "cpu"
    order = batch["completion_mask"].sum(-1).argsort(stable=True)
    parts = [
        padded_logps(model, take(batch, rows), temperature, entropy)
        for rows in order.split(CPU_ROWS if on_cpu else len(order))
    ]
    back = order.argsort()
    entropies = [part.entropy for part in parts if part.entropy is not None]
    return TokenLogps(
        logps=torch.cat([part.logps for part in parts])[back],
        entropy=torch.cat(entropies)[back] if entropies else None,
    )


def packed_logps(
    model: nn.Module,
    policy: PreTrainedModel,
    batch: Batch,
    temperature: float,
    entropies: Entropy,
) -> TokenLogps:
    """The same from packed rows; `policy` is the model inside what distributes or adapts it."""
    packed = pack(batch)
    head: Any = policy.get_output_embeddings()  # Any: an nn.Linear, see `packs`
    mask = batch["completion_mask"].bool()
    support = batch["support"][mask] if "support" in batch else None

    def read(hidden: Tensor) -> tuple[Tensor, ...]:
        asked, learned = entropies.asked, entropies.learned
        how = (packed.targets, temperature, asked, False, learned, support)
        if not isinstance(head, WideHead):
            return HeadLogps.apply(hidden[0], head.weight, *how)
        with torch.autocast(hidden.device.type, enabled=False):
            return HeadLogps.apply(upcast(hidden[0]), upcast(head.weight), *how)

    logps, entropy, _ = read_packed(model, policy, batch, packed, read)
    if not entropies.learned:
        entropy = entropy.detach()
    return TokenLogps(logps, entropy if entropies.asked else None)


def read_packed(
    model: nn.Module,
    policy: PreTrainedModel,
    batch: Batch,
    packed: Packed,
    read: Callable[[Tensor], tuple[Tensor, ...]],
) -> list[Tensor]:
    """What `read` makes of the hidden states of packed rows, each at the completions' tokens."""
    with reading_head(policy, read):
        found = model(
            input_ids=packed.ids,
            position_ids=packed.positions,
            attention_mask=packed.no_mask,
            packed=packed,
            logits_to_keep=packed.read,
            use_cache=False,
        ).logits
    mask = batch["completion_mask"].bool()
    return [part.new_zeros(mask.shape).masked_scatter(mask, part) for part in found[0].unbind(-1)]


@contextmanager
def reading_head(
    policy: PreTrainedModel, read: Callable[[Tensor], tuple[Tensor, ...]]
) -> Iterator[None]:
    """Let the head give what `read` makes of hidden states (1, M, ...), not logits.

    The call stays one of the whole model, so that what distributes or shards it sees it.
    """
    head: Any = policy.get_output_embeddings()  # Any: an nn.Linear

    @torch.compiler.disable(reason="it would be compiled again for all targets")
    def forward(hidden: Tensor) -> Tensor:
        # FSDP2 warns of views
        return torch.stack([part.unsqueeze(0) for part in read(hidden)], dim=-1)

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
    """The same from rows that begin together and are padded behind."""
    mask, rows = batch["completion_mask"].bool(), flush_left(batch)
    outputs = completion_outputs(model, rows, with_router=with_router)
    raw = outputs.logits if outputs.logits.dtype == torch.float64 else outputs.logits.float()
    heated = raw if temperature == 1.0 else raw / temperature
    logits = within(heated, support_of(batch, rows))
    total = logits.logsumexp(-1)
    targets = rows.ids[:, rows.first :]
    logps = logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1) - total
    learned = (logits, total) if entropies.learned else (logits.detach(), total.detach())
    entropy = token_entropy(*learned) if entropies.asked else None
    return TokenLogps(
        logps=rows.at_tokens(logps, mask),
        entropy=None if entropy is None else rows.at_tokens(entropy, mask),
        router_loss=router_loss(outputs) if with_router else None,
    )


def support_of(batch: Batch, rows: "Rows") -> Tensor | None:
    """The support (B, W - first, bytes) of the tokens from `first` on.

    Of others than the completions' it is that of any token, and is not read.
    """
    if "support" not in batch:
        return None
    kept, width = batch["support"], rows.ids.size(1) - rows.first
    columns = torch.arange(width, device=kept.device) - (rows.begins - rows.first)
    places = columns.clamp(0, kept.size(1) - 1).unsqueeze(-1)
    return kept.gather(1, places.expand(-1, -1, kept.size(-1)))


@dataclass(frozen=True)
class Rows:
    """Tokens (B, W) without padding before or within them, and their mask.

    Completions begin at the columns `begins` (B, 1), none before the column `first`.
    """

    ids: Tensor
    mask: Tensor
    begins: Tensor
    first: int

    def at_tokens(self, values: Tensor, mask: Tensor) -> Tensor:
        """Values (B, W - first) at the tokens of the completions (B, T), 0 on their padding."""
        places = (self.begins - self.first) + torch.arange(mask.size(1), device=mask.device)
        found = values.gather(1, places.clamp(max=values.size(1) - 1))
        return found.masked_fill(~mask, 0.0)


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


def completion_outputs(model: nn.Module, rows: Rows, *, with_router: bool) -> Any:
    """What a model returns, its logits (B, W - first, V) those of the tokens from `first` on."""
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
    """H = log Z - sum_v p_v z_v of each position, from logits z (B, T, V) and log Z (B, T)."""
    probabilities = (logits - total.unsqueeze(-1)).exp()
    return total - (probabilities * logits).sum(-1)


@torch.no_grad()
def frozen(
    model: nn.Module,
    batch: Batch,
    temperature: float,
    pieces: Sequence[Sequence[int]],
    *,
    with_entropy: bool = False,
    with_router: bool = False,
) -> TokenLogps:
    """Log-probabilities and entropies without gradient or dropout, some rows at a time."""
    asked = {"with_entropy": with_entropy, "with_router": with_router}
    with evaluating(model):
        parts = [token_logps(model, take(batch, rows), temperature, **asked) for rows in pieces]
    order = torch.tensor([row for rows in pieces for row in rows])
    back = order.argsort().to(parts[0].logps.device)
    entropies = [part.entropy for part in parts if part.entropy is not None]
    return TokenLogps(
        logps=torch.cat([part.logps for part in parts])[back],
        entropy=torch.cat(entropies)[back] if entropies else None,
    )


@contextmanager
def evaluating(model: nn.Module) -> Iterator[nn.Module]:
    """Put the model into evaluation mode for a while: no dropout, no checkpointing."""
    training = model.training
    model.eval()
    try:
        yield model
    finally:
        model.train(training)
