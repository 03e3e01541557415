"""Packing of prompts and completions into one row of tokens, without padding, each prompt once."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from core.forward.batches import Batch
from core.rollout.wide_head import WideHead
from core.rollout.wrappings import autocast_type

WIDEST = 256  # largest head dimension of torch's flash attention
FIRST_GPU = (8, 0)  # smallest compute capability with it
flash_attention = torch.ops.aten._flash_attention_forward  # of CUDA and ROCm alone
PACKED = ("llama", "qwen2", "qwen3")  # rotary positions, and attention that can be handed in


@dataclass(frozen=True)
class Segments:
    """The tokens (1, N) of a row cut into segments.

    A segment attends to itself causally, and to the whole of its parent if it has one: the
    completions of a group to their prompt.
    """

    ids: Tensor
    positions: Tensor
    lengths: list[int]
    parents: list[int | None]

    @cached_property
    def key_ranges(self) -> "KeyRanges":
        """Key ranges of the segments, shared by all layers."""
        ends = list(accumulate(self.lengths))
        own = [range(end - length, end) for end, length in zip(ends, self.lengths, strict=True)]
        keys = [
            [*(own[parent] if parent is not None else ()), *places]
            for parent, places in zip(self.parents, own, strict=True)
        ]
        lengths = [len(places) for places in keys]
        tensor = self.ids.new_tensor
        return KeyRanges(
            places=None if lengths == self.lengths else tensor([k for part in keys for k in part]),
            queries_until=tensor([0, *ends], dtype=torch.int32),
            keys_until=tensor([0, *accumulate(lengths)], dtype=torch.int32),
            most_queries=max(self.lengths),
            most_keys=max(lengths),
        )

    @property
    def no_mask(self) -> Tensor:
        """An empty four-dimensional mask, which keeps transformers from making its own."""
        return self.ids.new_zeros(1, 1, 1, 0, dtype=torch.bool)

    @cached_property
    def masks(self) -> dict[tuple[int, int, torch.dtype], Tensor]:
        """Cache of the attention masks of segments with a parent, by lengths and dtype."""
        return {}

    def mask(self, segment: int, parent: int, dtype: torch.dtype) -> Tensor:
        """Return the attention mask (C, P + C) of a segment, 0 or -inf; all layers share it."""
        length, parent_length = self.lengths[segment], self.lengths[parent]
        key = length, parent_length, dtype
        if key not in self.masks:
            empty = torch.full(
                (length, parent_length + length), -torch.inf, dtype=dtype, device=self.ids.device
            )
            self.masks[key] = empty.triu(parent_length + 1)
        return self.masks[key]


@dataclass(frozen=True)
class KeyRanges:
    """Concatenated keys of S segments, as torch's flash attention takes them.

    Attributes:
        places: Columns of the row (K,), those of a parent before those of its child; None if they
            are all columns in order.
        queries_until: Cumulative numbers of queries (S + 1,), 32-bit integers.
        keys_until: Cumulative numbers of keys (S + 1,), 32-bit integers.
        most_queries: Number of queries of the longest segment.
        most_keys: Number of keys of the segment with most of them.
    """

    places: Tensor | None
    queries_until: Tensor
    keys_until: Tensor
    most_queries: int
    most_keys: int


@dataclass(frozen=True)
class Packed(Segments):
    """The segments of a batch, and the positions at which its completions are predicted.

    `read` are the positions whose hidden states predict the completion tokens `targets` (M,), row
    after row.
    """

    read: Tensor
    targets: Tensor


@dataclass
class Row:
    """Builder of one row of tokens, segment by segment."""

    ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    parents: list[int | None] = field(default_factory=list)

    def add(self, tokens: Sequence[int], position: int, parent: int | None = None) -> range:
        """Append a segment unless it is empty; return the positions of its tokens."""
        start = len(self.ids)
        self.ids.extend(tokens)
        if tokens:
            self.positions.extend(range(position, position + len(tokens)))
            self.lengths.append(len(tokens))
            self.parents.append(parent)
        return range(start, len(self.ids))


def pack(batch: Batch, *, from_zero: bool = False) -> Packed:
    """Pack the completions of a padded batch; completions of equal prompts share one copy of it.

    Positions count from the padded start, as TRL's do where it pads prompts on the left, or from
    the first token with `from_zero`: rotary positions depend on differences only. The last token of
    a completion is left out, since its prediction is not used, and so is a completion with an empty
    mask.
    """
    prompts = [tuple(row) for row in unpad(batch["prompt_ids"], batch["prompt_mask"])]
    completions = unpad(batch["completion_ids"], batch["completion_mask"])
    width = batch["prompt_ids"].size(1)
    row = Row()
    read: dict[int, list[int]] = {}
    for prompt, members in group_by_prompt(prompts, completions).items():
        start = 0 if from_zero else width - len(prompt)
        if len(members) == 1:
            places = row.add([*prompt, *completions[members[0]][:-1]], start)
            read[members[0]] = list(places[len(prompt) - 1 :])
            continue
        last, parent = row.add(prompt, start)[-1], len(row.lengths) - 1
        for index in members:
            places = row.add(completions[index][:-1], start + len(prompt), parent)
            read[index] = [last, *places]
    tensor = batch["completion_ids"].new_tensor
    return Packed(
        ids=tensor([row.ids]),
        positions=tensor([row.positions]),
        lengths=row.lengths,
        parents=row.parents,
        read=tensor([place for index in sorted(read) for place in read[index]]),
        targets=tensor([token for tokens in completions for token in tokens]),
    )


def group_by_prompt(
    prompts: Sequence[tuple[int, ...]], completions: Sequence[Sequence[int]]
) -> dict[tuple[int, ...], list[int]]:
    """Return for each prompt the indices of its completions that are not empty."""
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, prompt in enumerate(prompts):
        if completions[index]:
            groups[prompt].append(index)
    return groups


def unpad(ids: Tensor, mask: Tensor) -> list[list[int]]:
    """Return the tokens of each row that its mask keeps, as lists."""
    return [
        [token for token, keep in zip(row, keeps, strict=True) if keep]
        for row, keeps in zip(ids.tolist(), mask.tolist(), strict=True)
    ]


def takes_segments(model: PreTrainedModel) -> bool:
    """Return whether a model has full attention that can be replaced, so that it accepts segments.

    Its rotary angles must not depend on the longest row either.
    """
    config: Any = model.config  # Any: the fields depend on the architecture
    return (
        config.model_type in PACKED
        and config.rope_parameters["rope_type"] not in ("dynamic", "longrope")
        and config._attn_implementation == "sdpa"
        and set(getattr(config, "layer_types", None) or ["full_attention"]) == {"full_attention"}
    )


def has_plain_head(model: PreTrainedModel) -> bool:
    """Return whether the logits are hidden states times a weight, without bias."""
    head = cast(nn.Linear, model.get_output_embeddings())  # with FSDP2 of a subclass
    plain = getattr(head.forward, "__func__", None) in (nn.Linear.forward, WideHead.forward)
    return plain and head.bias is None


def can_pack(model: PreTrainedModel, batch: Batch) -> bool:
    """Return whether a model computes the same log-probabilities from packed rows."""
    return (
        takes_segments(model)
        and has_plain_head(model)
        and bool(batch["prompt_mask"].any(1).all())
        and bool(batch["completion_mask"].any())
    )


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    packed: Segments | None = None,
    **options: Any,  # Any: what the architecture hands on
) -> tuple[Tensor, Tensor | None]:
    """Compute attention of packed rows, or transformers' sdpa attention without packing."""
    if packed is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    attended = attend(
        query, key, value, packed, options.get("dropout", 0.0), options.get("scaling")
    )
    return attended.transpose(1, 2).contiguous(), None


@torch.compiler.disable(reason="it would be compiled again for all lengths of segments")
def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    packed: Segments,
    dropout: float = 0.0,
    scaling: float | None = None,
) -> Tensor:
    """Compute attention (1, H, N, D) of segments; keys and values may have fewer heads."""
    kind = autocast_type(query.device) or query.dtype
    if has_flash_kernel(query, kind):
        query, key, value = (part.to(kind) for part in (query, key, value))
        return attend_at_once(query, key, value, packed.key_ranges, dropout, scaling)
    shared = query.size(1) // key.size(1)
    if shared > 1:
        key, value = (x.repeat_interleave(shared, dim=1) for x in (key, value))
    queries, keys, values = (x.split(packed.lengths, dim=2) for x in (query, key, value))
    attended: list[Tensor] = []
    for segment, parent in enumerate(packed.parents):
        k, v, mask = keys[segment], values[segment], None
        if parent is not None:
            k, v = (torch.cat([x[parent], x[segment]], dim=2) for x in (keys, values))
            mask = packed.mask(segment, parent, query.dtype)
        causal = mask is None
        attended.append(
            scaled_dot_product_attention(
                queries[segment], k, v, mask, dropout, is_causal=causal, scale=scaling
            )
        )
    return torch.cat(attended, dim=2)


def has_flash_kernel(query: Tensor, kind: torch.dtype) -> bool:
    """Return whether torch's flash attention supports these queries, converted to `kind`."""
    return (
        query.is_cuda
        and kind in (torch.bfloat16, torch.float16)
        and query.size(-1) % 8 == 0
        and query.size(-1) <= WIDEST
        and torch.backends.cuda.flash_sdp_enabled()
        and torch.cuda.get_device_capability(query.device) >= FIRST_GPU
    )


def attend_at_once(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    ranges: KeyRanges,
    dropout: float,
    scaling: float | None,
) -> Tensor:
    """Compute attention (1, H, N, D) of all segments by one call of torch's flash attention.

    The kernel aligns the last query of a segment with its last key, so that a completion attends to
    its whole prompt.
    """
    q, k, v = (part[0].transpose(0, 1) for part in (query, key, value))  # (N, heads, D)
    if ranges.places is not None:
        k, v = (part.index_select(0, ranges.places) for part in (k, v))
    attended = flash_attention(
        q,
        k,
        v,
        ranges.queries_until,
        ranges.keys_until,
        ranges.most_queries,
        ranges.most_keys,
        dropout,
        True,  # causal
        False,  # without the mask of the dropout
        scale=scaling,
    )[0]
    return attended.transpose(0, 1).unsqueeze(0)


# In the place of "sdpa", since a checkpointed layer looks its attention up again going backward.
AttentionInterface.register("sdpa", attention)
