"""Quantities of the tokens that truncated sampling keeps, from whole rows of logits."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers import PreTrainedModel

from core.data.collate import DataCollatorForLanguageModeling
from core.data.conversations import Row
from core.data.sft import IGNORED
from core.forward.documents import outputs_of
from core.forward.head import chunk_size
from core.forward.labelled import head_reads_tokens
from core.forward.logps import reading_head
from core.forward.quantities import BATCH, Quantity, token_mean
from core.rollout.draw import logits_warpers
from core.rollout.engine import Sampling
from core.rollout.support import OUTSIDE


class KeptStatistics(NamedTuple):
    """Statistics of a policy at each token of an answer, given a set of kept tokens, each (T,).

    Attributes:
        outside: Probability of all tokens that are not kept.
        entropy: Entropy in nats of the distribution over the kept tokens.
        tempered: The same at the temperature of sampling.
    """

    outside: Tensor
    entropy: Tensor
    tempered: Tensor


@torch.inference_mode()
def kept_statistics(
    policy: PreTrainedModel,
    start: PreTrainedModel,
    rows: Sequence[Row],
    sampling: Sampling,
    pad: int,
) -> list[KeptStatistics]:
    """Return statistics of a policy at the labelled tokens of each row.

    The kept tokens of a position are those that `sampling` leaves of the starting model's logits.

    Args:
        policy: The policy, in evaluation mode.
        start: The starting model, in evaluation mode, with the policy's vocabulary.
        rows: Rows of token ids with labels.
        sampling: Temperature and truncation.
        pad: Token that pads rows.
    """
    parts = [
        statistics_of(logits, kept_tokens(start_logits, sampling), sampling.temperature)
        for logits, start_logits in zip(
            labelled_logits(policy, rows, pad), labelled_logits(start, rows, pad), strict=True
        )
    ]
    counts = [sum(label != IGNORED for label in row["labels"]) for row in rows]
    columns = (torch.cat(column).split(counts) for column in zip(*parts, strict=True))
    return [KeptStatistics(*row) for row in zip(*columns, strict=True)]


def kept_tokens(logits: Tensor, sampling: Sampling) -> Tensor:
    """Return a mask of the tokens that truncation leaves of logits (M, V)."""
    no_tokens = torch.LongTensor(len(logits), 0)  # which only a penalty of repetition would read
    return logits_warpers(sampling)(no_tokens, logits) > -torch.inf


def statistics_of(logits: Tensor, kept: Tensor, temperature: float) -> KeptStatistics:
    """Return the statistics (M,) of logits (M, V), given a mask of kept tokens (M, V)."""
    wide = logits.double()
    outside = wide.softmax(-1).masked_fill(kept, 0.0).sum(-1)
    head = wide.masked_fill(~kept, OUTSIDE)
    entropies = (torch.special.entr((head / t).softmax(-1)).sum(-1) for t in (1.0, temperature))
    return KeptStatistics(*(x.cpu() for x in (outside, *entropies)))


def labelled_logits(model: PreTrainedModel, rows: Sequence[Row], pad: int) -> Iterator[Tensor]:
    """Yield logits (M, V) of the labelled tokens of all rows, row by row.

    At most `chunk_size` logits are in memory, or those of a single row if the head of the model
    does not work in chunks. Models of one vocabulary yield chunks of equal sizes.
    """
    head = cast(nn.Linear, model.get_output_embeddings())
    most = chunk_size(model.device)
    widest = max(len(row["input_ids"]) for row in rows)
    count = min(BATCH, max(1, most // (widest * head.out_features)))
    collate = DataCollatorForLanguageModeling(pad)
    for first in range(0, len(rows), count):
        batch = collate(rows[first : first + count])
        inputs = {name: value.to(model.device) for name, value in batch.items()}
        mask = inputs.pop("labels")[:, 1:] != IGNORED
        yield from logit_chunks(model, inputs, mask, max(1, most // head.out_features))


def logit_chunks(
    model: PreTrainedModel, inputs: Mapping[str, Tensor], mask: Tensor, size: int
) -> Iterator[Tensor]:
    """Yield logits (M, V) that predict the tokens of a mask (B, T - 1), `size` tokens at a time."""
    if not head_reads_tokens(model, model, inputs):
        logits: Tensor = outputs_of(model, inputs).logits[:, -mask.size(1) - 1 : -1]
        yield from logits[mask].split(size)
        return
    with reading_head(model, lambda hidden: hidden[:, :-1][mask].unbind(-1)):
        states: Tensor = outputs_of(model, inputs).logits[0]
    head: Any = model.get_output_embeddings()
    for part in states.split(size):
        yield linear(part, head.weight)


Measured = Callable[[KeptStatistics], Tensor]
# Each is averaged over all tokens of the answers.
KEPT_TOKENS: Mapping[str, Measured] = {
    "kept/outside": lambda statistics: statistics.outside,
    "kept/entropy": lambda statistics: statistics.entropy,
    "kept/tempered_entropy": lambda statistics: statistics.tempered,
}


def kept_quantity(name: str, rows: Sequence[KeptStatistics]) -> Quantity:
    """Return the mean of a quantity over the tokens of all answers."""
    return token_mean([KEPT_TOKENS[name](row) for row in rows])
