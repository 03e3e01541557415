"""Peak figures of GPUs by their vendor, and the bytes and operations that tokens need."""

from collections.abc import Mapping
from dataclasses import dataclass

from core.models.shapes import Shape


@dataclass(frozen=True, kw_only=True)
class Card:
    """The peak rates of a GPU: bytes of memory bandwidth and dense bfloat16 operations a second."""

    bandwidth: float
    flops: float


# By torch.cuda.get_device_name, from NVIDIA's datasheets; half of the operations where a datasheet
# states them with sparsity.
CARDS: Mapping[str, Card] = {
    "NVIDIA A100-SXM4-40GB": Card(bandwidth=1.555e12, flops=312e12),
    "NVIDIA A100-PCIE-40GB": Card(bandwidth=1.555e12, flops=312e12),
    "NVIDIA A100-SXM4-80GB": Card(bandwidth=2.039e12, flops=312e12),
    "NVIDIA A100 80GB PCIe": Card(bandwidth=1.935e12, flops=312e12),
    "NVIDIA H100 80GB HBM3": Card(bandwidth=3.35e12, flops=989.5e12),
    "NVIDIA H100 PCIe": Card(bandwidth=2.0e12, flops=756.5e12),
    "NVIDIA H100 NVL": Card(bandwidth=3.9e12, flops=835.5e12),
    "NVIDIA H200": Card(bandwidth=4.8e12, flops=989.5e12),
    "NVIDIA H200 NVL": Card(bandwidth=4.8e12, flops=835.5e12),
}


def sampling_bytes(
    shape: Shape, *, prompts: int, group: int, prompt: int, length: int, itemsize: int
) -> int:
    """Return the bytes that must be read to sample all completions of `length` tokens at once.

    Every pass reads each weight once. Each pass after the first also reads the keys and values of
    the tokens before its own, those of a prompt once for its group.
    """
    passes, cache_width = length - 1, 2 * shape.layers * shape.kv_heads * shape.head
    completion_tokens = prompts * group * passes * (passes - 1) // 2
    cached = cache_width * (prompts * prompt * passes + completion_tokens)
    numbers = length * shape.multiplying_parameters + cached
    return itemsize * numbers


def sampling_flops(shape: Shape) -> int:
    """Return 2 N, the operations for a sampled token: a multiply-add for each active parameter.

    Attention and the prompts are left out, here and in training, so the shares are lower bounds.
    """
    return 2 * shape.multiplying_parameters


def training_flops(shape: Shape) -> int:
    """Return 6 N, the operations for a trained token: forward, and backward at twice its cost."""
    return 3 * sampling_flops(shape)
