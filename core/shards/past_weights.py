"""Weights to sample from other than the trained ones: of earlier steps, or rounded."""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor, nn
from transformers import (
    PreTrainedModel,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from core.shards.sharding import gather_weights

Weights = dict[str, Tensor]


def round_weight(weight: Tensor, bits: int) -> Tensor:
    """Return s round(w / s) with s = max |w| / (2^(bits - 1) - 1) of each row of a weight.

    Rows are the last dimension: of a linear layer (out, in), the weights of one output. Rows of
    zeros and weights with fewer than two dimensions (norms, biases) are unchanged.
    """
    if weight.dim() < 2:
        return weight
    step = weight.abs().amax(-1, keepdim=True) / (2 ** (bits - 1) - 1)
    return (weight / step).round().nan_to_num(0.0) * step


def embedding_weights(model: PreTrainedModel) -> Iterator[nn.Parameter]:
    """Yield the weights of embeddings and of the head."""
    head = model.get_output_embeddings()
    for module in model.modules():
        if isinstance(module, nn.Embedding) or module is head:
            yield from module.parameters(recurse=False)


class PastWeights:
    """Copies of the trained weights before each of the last `lag` + 1 optimizer steps."""

    def __init__(self, lag: int):
        self.kept: deque[Weights] = deque(maxlen=lag + 1)

    def keep(self, model: nn.Module, trained: Sequence[str]) -> None:
        """Add copies of the named weights of a model."""
        weights = dict(model.named_parameters())
        self.kept.append({name: weights[name].detach().clone() for name in trained})

    @contextmanager
    def within(self, model: PreTrainedModel, bits: int | None) -> Iterator[None]:
        """Give the model the oldest copy within the block, rounded to `bits` unless that is None.

        Embeddings and the head are not rounded, as in quantised engines.
        """
        oldest: Weights = self.kept[0] if self.kept else {}
        unrounded = {id(weight) for weight in embedding_weights(model)}
        trained = [(weight, weight.data) for weight in model.parameters()]
        for name, weight in model.named_parameters():
            old = oldest.get(name, weight.data)
            weight.data = (
                old if bits is None or id(weight) in unrounded else round_weight(old, bits)
            )
        try:
            yield
        finally:
            for weight, data in trained:
                weight.data = data

    def state(self) -> list[Weights]:
        """Return the copies, for a checkpoint."""
        return list(self.kept)

    def take_state(self, state: Sequence[Weights]) -> None:
        """Restore what `state` returned."""
        self.kept.clear()
        self.kept.extend(state)


class PastWeightsCallback(TrainerCallback):
    """Callback that copies the weights before each optimizer step.

    `frame` is that of `gather_weights`.
    """

    def __init__(self, past: PastWeights, frame: nn.Module | None):
        self.past = past
        self.frame = frame

    def on_step_begin(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,  # noqa: ARG002
        control: TrainerControl,  # noqa: ARG002
        *,
        model: nn.Module,
        **_: object,  # the caller's: tokenizer, optimizer
    ) -> None:
        """Copy the weights before the rollouts of this step are sampled."""
        trained = [name for name, p in model.named_parameters() if p.requires_grad]
        with gather_weights(model, self.frame) as policy:
            self.past.keep(policy, trained)
