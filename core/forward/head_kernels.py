"""Triton kernels for GPUs that read each logit of the output head once.

One kernel computes the logarithm of the sum of exponentials, the entropy and the most likely token
of each row of logits, the other the gradient with respect to the logits.
"""
# pyright: basic, reportMissingImports=false, reportIndexIssue=false
# (triton has no types, and the body of a kernel is compiled, not run as Python)

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 4096  # logits that a program reads at a time
WARPS = 8


@triton.jit
def read_kernel(logits, total, entropy, most_likely, vocabulary, scale, BLOCK: tl.constexpr):
    """Read a row block by block; a new maximum rescales the sums of the blocks before it.

    `exponentials` sums e^(z - maximum), and `weighted` sums (z - maximum) e^(z - maximum).
    """
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    largest = tl.full((), -3.0e38, tl.float32)  # finite: -inf - -inf is not a number
    place = tl.full((), 0, tl.int32)
    exponentials = tl.full((), 0.0, tl.float32)
    weighted = tl.full((), 0.0, tl.float32)
    for start in range(0, vocabulary, BLOCK):
        inside = start + columns < vocabulary
        at = logits + row * vocabulary + start + columns
        z = tl.load(at, mask=inside, other=-float("inf")).to(tl.float32) * scale
        top, where = tl.max(z, 0, return_indices=True)
        place = tl.where(top > largest, start + where, place)
        higher = tl.maximum(largest, top)
        shrink = tl.exp(largest - higher)
        e = tl.exp(z - higher)
        weighted = shrink * (weighted + exponentials * (largest - higher))
        weighted += tl.sum(e * tl.where(e > 0, z - higher, 0.0), 0)
        exponentials = exponentials * shrink + tl.sum(e, 0)
        largest = higher
    tl.store(total + row, largest + tl.log(exponentials))
    tl.store(entropy + row, tl.log(exponentials) - weighted / exponentials)
    tl.store(most_likely + row, place)


@triton.jit
def gradient_kernel(
    logits, targets, total, entropy, gradient, by_entropy, vocabulary, scale, BLOCK: tl.constexpr
):
    """Replace a block of a row of logits by the gradient with respect to them."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < vocabulary
    at = logits + row * vocabulary + columns
    z = tl.load(at, mask=inside, other=-float("inf")).to(tl.float32) * scale
    logp = z - tl.load(total + row)
    p = tl.exp(logp)
    g, shift = tl.load(gradient + row), tl.load(by_entropy + row)
    spread = p * tl.where(p > 0, logp + tl.load(entropy + row), 0.0)
    found = g * (tl.where(columns == tl.load(targets + row), 1.0, 0.0) - p) - shift * spread
    tl.store(at, found * scale, mask=inside)


def read_logits(logits: Tensor, scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """Read rows of logits (N, V) multiplied by `scale`.

    Returns:
        For each row the logarithm of the sum of exponentials, the entropy, both in 32 bits, and the
        index of the largest logit, each (N,).
    """
    count, vocabulary = logits.shape
    total, entropy = logits.new_empty(2, count, dtype=torch.float32)
    most_likely = logits.new_empty(count, dtype=torch.long)
    with torch.cuda.device_of(logits):  # which need not be the current device
        read_kernel[(count,)](
            logits, total, entropy, most_likely, vocabulary, scale, BLOCK, num_warps=WARPS
        )
    return total, entropy, most_likely


def gradient_in_place(
    logits: Tensor,
    targets: Tensor,
    total: Tensor,
    entropy: Tensor,
    gradient: Tensor,
    by_entropy: Tensor,
    scale: float,
) -> Tensor:
    """Replace logits (N, V) by the gradient with respect to them and return them.

    Args:
        logits: The logits before they are multiplied by `scale`.
        targets: The target tokens (N,).
        total: The logarithms (N,) that `read_logits` returned.
        entropy: The entropies (N,) that it returned.
        gradient: The gradient (N,) with respect to the log-probability of the target.
        by_entropy: The gradient (N,) with respect to the entropy.
        scale: The inverse temperature.
    """
    count, vocabulary = logits.shape
    grid, numbers = (count, triton.cdiv(vocabulary, BLOCK)), (vocabulary, scale, BLOCK)
    of_rows = (targets, total, entropy, gradient, by_entropy)
    with torch.cuda.device_of(logits):
        gradient_kernel[grid](logits, *of_rows, *numbers, num_warps=WARPS)
    return logits
