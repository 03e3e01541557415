"""Sampling from the geometric mixture of two models, token by token."""

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from core.rollout.cached import Decoder
from core.rollout.native.native import NativeEngine
from eval.errors import BadValue


def geometric_mixture(logits: Tensor, other: Tensor, share: float) -> Tensor:
    """Return logits of p^(1 - share) q^share / Z from those of p and q; arXiv 2312.00886 s7."""
    return (1 - share) * logits + share * other


class MixedDecoder:
    """Decoder of two models that read the same tokens; its logits are those of their mixture.

    Args:
        first: The decoder of the first model.
        second: The decoder of the second model.
        share: Weight of the second model, 0 to 1.
    """

    def __init__(self, first: Decoder, second: Decoder, share: float):
        self.parts, self.share = (first, second), share

    @property
    def refills(self) -> bool:
        """True if both models can admit new rows while others are being decoded."""
        return all(part.refills for part in self.parts)

    @property
    def drops(self) -> bool:
        """True if both models get faster without the finished rows."""
        return all(part.drops for part in self.parts)

    def admit(self, prompts: Sequence[Sequence[int]], rows: Sequence[Sequence[int]]) -> Tensor:
        """Read new prompts; return the next-token logits of each prompt (N, V)."""
        return self.mixed([part.admit(prompts, rows) for part in self.parts])

    def step(self, tokens: Tensor, alive: Tensor) -> Tensor:
        """Append one token to every row; return the next-token logits (R, V)."""
        return self.mixed([part.step(tokens, alive) for part in self.parts])

    def select(self, rows: Tensor) -> None:
        """Keep only these rows, in this order."""
        for part in self.parts:
            part.select(rows)

    def mixed(self, logits: Sequence[Tensor]) -> Tensor:
        """Return the logits of the mixture, in at least 32 bits."""
        wide = [x.to(torch.promote_types(x.dtype, torch.float32)) for x in logits]
        return geometric_mixture(wide[0], wide[1], self.share)


class MixtureEngine(NativeEngine):
    """Native engine that samples from the geometric mixture of a model and another one.

    Args:
        model: The first model.
        other: The second model, with the same vocabulary.
        share: Weight of the second model, 0 to 1.

    Raises:
        BadValue: a model keeps other states than keys and values.
    """

    def __init__(self, model: PreTrainedModel, other: PreTrainedModel, share: float):
        super().__init__(model)
        self.other, self.share = NativeEngine(other), share
        if not (self.cached and self.other.cached):
            name = type(model if not self.cached else other).__name__
            raise BadValue(
                f"{name} keeps other states than keys and values: expected a model with a "
                "key-value cache to sample from a mixture of two"
            )

    def make_decoder(self, *, shared: bool) -> MixedDecoder:
        """Return a new decoder of both models."""
        first = super().make_decoder(shared=shared)
        return MixedDecoder(first, self.other.make_decoder(shared=shared), self.share)
