"""Log-probabilities and entropies of tokens from hidden states, without all logits in memory."""

from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from core.rollout.support import within
from core.rollout.wrappings import autocast_type

CHUNK = 2**23  # logits in memory at a time on a CPU
GPU_CHUNK = 2**28  # logits in memory at a time on a GPU
KEPT = 2**26  # logits whose probabilities are kept for the gradient rather than computed again


class HeadLogps(torch.autograd.Function):
    """Autograd function for log softmax(h W' / temperature) at target tokens, and two more outputs.

    The outputs are of shape (N,): the log-probability, the entropy H, and whether the target is the
    most likely token. The last two are 0 unless requested. The third has no gradient, and the
    entropy has one only with `learns_entropy`. With a `support` the softmax is over the tokens in
    it, see `core.rollout.support`. The logits (N, V) exist for some tokens at a time, in 32 bits or
    more. The gradients by the logits z of a token are g (1[v = target] - p_v) / temperature and -g
    p_v (log p_v + H) / temperature.
    """

    @staticmethod
    def forward(
        ctx: Any,  # Any: torch types it so
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        temperature: float,
        with_entropy: bool,
        with_right: bool,
        learns_entropy: bool,
        support: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the three outputs from hidden states (N, D), weight (V, D) and targets (N,).

        `support` has shape (N, bytes).
        """
        hidden, weight = in_autocast(hidden), in_autocast(weight)
        rows = max(1, chunk_size(hidden.device) // len(weight))
        keep = len(hidden) * len(weight) <= KEPT and any(ctx.needs_input_grad)
        logps, entropies, rights, saved = [], [], [], []
        for i, (h, target) in enumerate(zip(hidden.split(rows), targets.split(rows), strict=True)):
            log_probs = log_probabilities(h, weight, temperature, part_of(support, i, rows))
            logps.append(log_probs.gather(1, target[:, None])[:, 0])
            probabilities = log_probs.exp() if with_entropy or keep else log_probs  # or unused
            if with_entropy:
                entropies.append(-torch.linalg.vecdot(probabilities, log_probs))
            if with_right:
                rights.append((log_probs.argmax(1) == target).to(log_probs.dtype))
            if keep:
                saved.append(probabilities)
        target_logps = torch.cat(logps)
        entropy, right = (cat_or_zeros(x, target_logps) for x in (entropies, rights))
        ctx.save_for_backward(hidden, weight, targets, entropy, *saved)
        ctx.rows, ctx.temperature, ctx.learns_entropy = rows, temperature, learns_entropy
        ctx.support = support
        ctx.mark_non_differentiable(*([right] if learns_entropy else [entropy, right]))
        return target_logps, entropy, right

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - torch's own has no names
        ctx: Any, gradient: Tensor, by_entropy: Tensor, _: Tensor
    ) -> tuple[Tensor | None, ...]:
        """Return the gradients of hidden states and weight."""
        hidden, weight, targets, entropy, *saved = ctx.saved_tensors
        by_hidden = torch.empty_like(hidden)
        by_weight = torch.zeros_like(weight, dtype=torch.promote_types(weight.dtype, torch.float32))
        for i, start in enumerate(range(0, len(hidden), ctx.rows)):
            part = slice(start, start + ctx.rows)
            h, g = hidden[part], gradient[part, None] / ctx.temperature
            if saved:
                p = saved[i]
            else:
                chunk_support = part_of(ctx.support, i, ctx.rows)
                p = log_probabilities(h, weight, ctx.temperature, chunk_support).exp_()
            wide = (p * -g).scatter_add_(1, targets[part, None], g)
            if ctx.learns_entropy:
                shift = by_entropy[part, None] / ctx.temperature
                wide += shift * (torch.special.entr(p) - p * entropy[part, None])
            by_logits = wide.to(h.dtype)
            torch.mm(by_logits, weight, out=by_hidden[part])
            add_product(by_weight, by_logits.T, h)
        return by_hidden, by_weight, None, None, None, None, None, None


class KernelHeadLogps(torch.autograd.Function):
    """Autograd function with the outputs of `HeadLogps`, computed by Triton kernels on a GPU.

    It takes no `support`. The logits (N, V) exist for some tokens at a time, in the dtype of the
    matrix product, and the backward pass overwrites them with their gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        temperature: float,
        learns_entropy: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the three outputs from hidden states (N, D), weight (V, D) and targets (N,)."""
        from core.forward.head_kernels import read_logits

        hidden, weight = in_autocast(hidden), in_autocast(weight)
        rows, scale = max(1, chunk_size(hidden.device) // len(weight)), 1 / temperature
        logps, read = list[Tensor](), list[tuple[Tensor, Tensor, Tensor]]()
        for h, target in zip(hidden.split(rows), targets.split(rows), strict=True):
            logits = h @ weight.T
            read.append(read_logits(logits, scale))
            chosen = logits.gather(1, target[:, None])[:, 0].float()
            logps.append(chosen * scale - read[-1][0])
        total, entropy, most_likely = (torch.cat(parts) for parts in zip(*read, strict=True))
        right = (most_likely == targets).to(total.dtype)
        ctx.save_for_backward(hidden, weight, targets, total, entropy)
        ctx.rows, ctx.scale, ctx.learns_entropy = rows, scale, learns_entropy
        ctx.mark_non_differentiable(*([right] if learns_entropy else [entropy, right]))
        return torch.cat(logps), entropy, right

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - torch's own has no names
        ctx: Any, gradient: Tensor, by_entropy: Tensor, _: Tensor
    ) -> tuple[Tensor | None, ...]:
        """Return the gradients of hidden states and weight."""
        from core.forward.head_kernels import gradient_in_place

        hidden, weight, targets, total, entropy = ctx.saved_tensors
        shift = by_entropy if ctx.learns_entropy else torch.zeros_like(gradient)
        of_tokens = (hidden, targets, total, entropy, gradient.contiguous(), shift.contiguous())
        by_hidden = torch.empty_like(hidden)
        by_weight = torch.zeros_like(weight, dtype=torch.float32)
        parts = zip(by_hidden.split(ctx.rows), *(x.split(ctx.rows) for x in of_tokens), strict=True)
        for by_h, h, *of_chunk in parts:
            by_logits = gradient_in_place(h @ weight.T, *of_chunk, scale=ctx.scale)
            torch.mm(by_logits, weight, out=by_h)
            add_product(by_weight, by_logits.T, h)
        return by_hidden, by_weight, None, None, None


def head_logps(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    temperature: float,
    *,
    with_entropy: bool = False,
    with_right: bool = False,
    learns_entropy: bool = False,
    support: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return log-probabilities, entropies and whether the target is the most likely token, (N,).

    See `HeadLogps` for the arguments. `KernelHeadLogps` computes them on a GPU with Triton unless
    there is a `support`; it always computes the entropies.
    """
    if support is None and has_kernels(hidden):
        return KernelHeadLogps.apply(hidden, weight, targets, temperature, learns_entropy)
    return HeadLogps.apply(
        hidden, weight, targets, temperature, with_entropy, with_right, learns_entropy, support
    )


def has_kernels(hidden: Tensor) -> bool:
    """Return whether Triton's kernels can be used: on a GPU, in 32 bits or fewer."""
    return hidden.is_cuda and hidden.dtype != torch.float64 and find_spec("triton") is not None


def chunk_size(device: torch.device) -> int:
    """Return the number of logits that are in memory at a time on a device."""
    return CHUNK if device.type == "cpu" else GPU_CHUNK


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add the matrix product of `left` and `right` to `total`, summed in the dtype of `total`."""
    if total.is_cuda and total.dtype != left.dtype:  # narrow operands keep to tensor cores
        torch.addmm(total, left, right, out_dtype=total.dtype, out=total)
    else:
        total.addmm_(left.to(total.dtype), right.to(total.dtype))


def cat_or_zeros(chunks: list[Tensor], like: Tensor) -> Tensor:
    """Concatenate the chunks; without any, return zeros of the shape of `like`."""
    return torch.cat(chunks) if chunks else torch.zeros_like(like)


def log_probabilities(
    hidden: Tensor, weight: Tensor, temperature: float, support: Tensor | None = None
) -> Tensor:
    """Return log softmax of the logits (N, V) over the tokens in `support`, in 32 bits or more."""
    logits = hidden @ weight.T
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    heated = wide if temperature == 1.0 else wide.div_(temperature)
    return within(heated, support).log_softmax(-1)


def part_of(support: Tensor | None, part: int, rows: int) -> Tensor | None:
    """Return the rows of `support` of one chunk of `rows` tokens; None without a support."""
    return None if support is None else support[part * rows : (part + 1) * rows]


def in_autocast(x: Tensor) -> Tensor:
    """Cast to the dtype that autocast gives a matrix product."""
    return x.to(autocast_type(x.device) or x.dtype)
