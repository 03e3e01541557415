"""What a GPU can do at most by its vendor's figures, and what a model's tokens need of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from core.models.shapes import Shape


@dataclass(frozen=True, kw_only=True)
class Card:
    """Bytes that its memory reads in a second, and dense bfloat16 operations in a second."""

    bandwidth: float
    flops: float


# By torch.cuda.get_device_name. NVIDIA's datasheets; where they give operations with sparsity,
# half of those.
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
    """Bytes that have to be read to sample all completions at once, each of `length` tokens.

    Every pass reads each weight once. The first one reads no keys and values; each later one those
    of the tokens before the one that it is given, those of a prompt once for its group.
    """
    later, kept = length - 1, 2 * shape.layers * shape.kv_heads * shape.head
    own = prompts * group * later * (later - 1) // 2
    numbers = length * shape.multiplying_parameters + kept * (prompts * prompt * later + own)
    return itemsize * numbers


def sampling_flops(shape: Shape) -> int:
    """2 N of a token sampled: a multiplication and an addition for each parameter that it meets.

    Attention and the prompts are left out, here and in training: the shares are lower bounds.
    """
    return 2 * shape.multiplying_parameters


def training_flops(shape: Shape) -> int:
    """6 N of a token trained on: forward, and twice that backward."""
    return 3 * sampling_flops(shape)
