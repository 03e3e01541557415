"""Weights to sample from that are not those that are trained: of steps ago, or rounded."""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from transformers import (
    PreTrainedModel,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from core.shards.sharding import gathered

Weights = dict[str, Tensor]


def rounded(weight: Tensor, bits: int) -> Tensor:
    """s round(w / s) with s = max |w| / (2^(bits - 1) - 1) of each row, which is an output.

    The rows are the last dimension: of a linear layer (out, in) the weights of an output. One of
    zeros stays, and so does what has no rows: norms and biases.
    """
    if weight.dim() < 2:
        return weight
    step = weight.abs().amax(-1, keepdim=True) / (2 ** (bits - 1) - 1)
    return (weight / step).round().nan_to_num(0.0) * step


def tables(model: PreTrainedModel) -> Iterator[nn.Parameter]:
    """The weights of embeddings and of the head."""
    head = model.get_output_embeddings()
    for module in model.modules():
        if isinstance(module, nn.Embedding) or module is head:
            yield from module.parameters(recurse=False)


class PastWeights:
    """The trained weights before each of the last optimizer steps, `lag` of them and the next."""

    def __init__(self, lag: int):
        self.kept: deque[Weights] = deque(maxlen=lag + 1)

    def keep(self, model: nn.Module, trained: Sequence[str]) -> None:
        """Add copies of weights, by their names."""
        weights = dict(model.named_parameters())
        self.kept.append({name: weights[name].detach().clone() for name in trained})

    @contextmanager
    def within(self, model: PreTrainedModel, bits: int | None) -> Iterator[None]:
        """Let a model have the oldest weights that are kept, rounded if `bits` say how.

        Embeddings and the head are not rounded, as engines of few bits leave them.
        """
        oldest: Weights = self.kept[0] if self.kept else {}
        whole = {id(weight) for weight in tables(model)}
        own = [(weight, weight.data) for weight in model.parameters()]
        for name, weight in model.named_parameters():
            old = oldest.get(name, weight.data)
            weight.data = old if bits is None or id(weight) in whole else rounded(old, bits)
        try:
            yield
        finally:
            for weight, data in own:
                weight.data = data

    def state(self) -> list[Weights]:
        """What a resumed run needs."""
        return list(self.kept)

    def take_state(self, state: Sequence[Weights]) -> None:
        """Go on from what `state` gave."""
        self.kept.clear()
        self.kept.extend(state)


class PastWeightsCallback(TrainerCallback):
    """Keeps the weights before each optimizer step; see `gathered` for `frame`."""

    def __init__(self, past: PastWeights, frame: nn.Module | None):
        self.past = past
        self.frame = frame

    def on_step_begin(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,  # noqa: ARG002
        control: TrainerControl,  # noqa: ARG002
        **kwargs: Any,  # the caller's: model, tokenizer, optimizer
    ) -> None:
        """Keep them before the rollouts of this step are sampled."""
        trained = [name for name, p in kwargs["model"].named_parameters() if p.requires_grad]
        with gathered(kwargs["model"], self.frame) as policy:
            self.past.keep(policy, trained)
