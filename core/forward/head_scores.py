"""Numbers that a transformers classifier gives to texts or to their tokens."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel

from core.data.pairs import common_length
from core.forward.documents import goes_by_segments, outputs_of
from core.forward.packing import Row, Segments, unpad
from core.forward.values import to_full_precision
from eval.errors import BadValue

HEAD = "score"  # module of transformers' decoders that maps hidden states of tokens to logits


def end_scores(
    model: nn.Module, ids: Tensor, mask: Tensor, *, groups: Sequence[Sequence[int]] | None = None
) -> Tensor:
    """Return the logits (B, L) of a sequence classifier at the last token of each row.

    The last token is the last one that the mask keeps, also if it is the token of padding, which
    transformers looks for instead. Logits depend neither on the side nor on the amount of padding.
    A model whose head reads no single token, such as BERT's, returns its own logits.

    Args:
        model: The classifier, perhaps wrapped by DDP, torch.compile or peft.
        ids: Token ids (B, T), padded on either side.
        mask: 1 on tokens, 0 on padding (B, T); each row has a token.
        groups: Indices of rows that may begin alike; each row is in one group. If the model's
            attention allows it, the rows are packed, and what a group begins with is computed once.
            None computes padded rows.
    """
    head = next((getattr(m, HEAD) for m in transformers_models(model) if hasattr(m, HEAD)), None)
    if head is None:
        return to_full_precision(model(input_ids=ids, attention_mask=mask).logits)
    if groups is not None and goes_by_segments(model):
        segments, ends = packed_rows(unpad(ids, mask), groups, ids)
        inputs = {
            "input_ids": segments.ids,
            "position_ids": segments.positions,
            "attention_mask": segments.no_mask,
            "packed": segments,
        }
        places = torch.zeros_like(ends), ends
    else:
        rows, kept = to_left(ids, mask)
        inputs = {"input_ids": rows, "attention_mask": kept}
        places = torch.arange(len(rows), device=ids.device), kept.sum(1) - 1
    with head_at(head, places):
        logits = model(**inputs, use_cache=False).logits
    return to_full_precision(logits).reshape(len(ids), -1)


def transformers_models(model: nn.Module) -> Iterator[PreTrainedModel]:
    """Yield the transformers models inside wrappers, the outermost first."""
    return (module for module in model.modules() if isinstance(module, PreTrainedModel))


@contextmanager
def head_at(head: Any, places: tuple[Tensor, Tensor]) -> Iterator[None]:  # Any: a module
    """Let a head of R rows read B hidden states, R or, if R is 1, any number.

    Every token of a row of the head's output has the logits of the states of that row, so that any
    token may be read from the output. The call remains one of the whole model, so that wrappers
    that distribute or shard it see it.

    Args:
        head: Maps hidden states (..., D) to logits (..., L).
        places: Row and column (B,) of each state that is read.
    """
    whole: Callable[[Tensor], Tensor] = head.forward

    @torch.compiler.disable(reason="it would be compiled again for all places")
    def forward(hidden: Tensor) -> Tensor:
        count, width = hidden.shape[:2]
        return whole(hidden[places]).reshape(count, 1, -1).expand(-1, width, -1)

    head.forward = forward
    try:
        yield
    finally:
        del head.forward


def packed_rows(
    rows: Sequence[Sequence[int]], groups: Sequence[Sequence[int]], like: Tensor
) -> tuple[Segments, Tensor]:
    """Return rows of tokens as segments, and the column of the last token of each row (B,).

    The common beginning of a group, less the last token of its shortest row, is the parent of what
    follows it.
    """
    builder, ends = Row(), dict[int, int]()
    for group in groups:
        members = [rows[place] for place in group]
        alike = [common_length(members[0], member) for member in members[1:]]
        shared = min([*alike, *(len(member) - 1 for member in members)]) if alike else 0
        builder.add(members[0][:shared], 0)
        parent = len(builder.lengths) - 1 if shared else None
        for place, member in zip(group, members, strict=True):
            ends[place] = builder.add(member[shared:], shared, parent)[-1]
    segments = Segments(
        ids=like.new_tensor([builder.ids]),
        positions=like.new_tensor([builder.positions]),
        lengths=builder.lengths,
        parents=builder.parents,
    )
    return segments, like.new_tensor([ends[place] for place in range(len(rows))])


def to_left(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Move the tokens of each row to the left, with all padding on the right; return ids, mask."""
    order = mask.bool().int().argsort(dim=1, descending=True, stable=True)
    order = order[:, : int(mask.sum(1).max())]
    return ids.gather(1, order), mask.gather(1, order)


@contextmanager
def head_with_states(model: nn.Module) -> Iterator[None]:
    """Let the head of a token classifier return logits and hidden states, (..., L + D).

    The call remains one of the whole model, as in `head_at`.

    Raises:
        BadValue: the model has no such head.
    """
    heads = [getattr(m, HEAD) for m in transformers_models(model) if hasattr(m, HEAD)]
    if not heads:
        raise BadValue(f"the model has no module {HEAD!r}, at which its hidden states are read")
    head: Any = heads[0]  # Any: a module
    whole: Callable[[Tensor], Tensor] = head.forward

    def forward(hidden: Tensor) -> Tensor:
        return torch.cat([whole(hidden), hidden], -1)

    head.forward = forward
    try:
        yield
    finally:
        del head.forward


def unembedding(model: nn.Module) -> Tensor:
    """Return the weight (V, D) of a language model's head that is also its embeddings.

    Raises:
        BadValue: the two are not tied, or the embeddings are spread over processes.
    """
    scorer = next(transformers_models(model))
    weight: Any = scorer.get_input_embeddings().weight  # Any: perhaps of DeepSpeed
    if not scorer.config.get_text_config().tie_word_embeddings:
        raise BadValue(
            "lm_coef: the model's embeddings are not its head of tokens (tie_word_embeddings="
            "false), and a classifier has no other: set lm_coef=0"
        )
    if isinstance(weight, DTensor) or hasattr(weight, "ds_numel"):
        raise BadValue(
            "lm_coef: the embeddings are spread over processes: launch with ddp, or set lm_coef=0"
        )
    return weight


def token_scores(
    model: nn.Module, ids: Tensor, mask: Tensor, *, with_states: bool = False
) -> Tensor:
    """Return the logits (M, L) of a token classifier at the M tokens of all rows, row by row.

    Logits depend on neither padding nor other rows, see `outputs_of`.

    Args:
        model: The classifier, perhaps wrapped by DDP, torch.compile or peft.
        ids: Token ids (B, T), padded on either side.
        mask: 1 on tokens, 0 on padding (B, T).
        with_states: Whether the hidden states (M, D) below the head follow the logits, (M, L + D).
    """
    lengths = mask.sum(1).tolist()
    inputs = {"input_ids": ids}  # rows of one length, between which no attention has to be masked
    if min(lengths) < ids.shape[1]:
        places = torch.cat([torch.arange(n, device=ids.device) for n in lengths])
        inputs = {"input_ids": ids[mask.bool()].unsqueeze(0), "position_ids": places.unsqueeze(0)}
    with head_with_states(model) if with_states else nullcontext():
        logits = outputs_of(model, inputs).logits
    return to_full_precision(logits).flatten(0, 1)


def label_values(logits: Tensor) -> Tensor:
    """Return the probability of the label 1 (M,), or the value of a head of one number.

    Args:
        logits: Those of a token classifier (M, L).
    """
    return logits.softmax(-1)[:, 1] if logits.shape[1] > 1 else logits[:, 0]
