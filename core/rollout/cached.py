"""Decoding by transformers' own forward pass and cache, for any decoder that has one."""

from collections.abc import Sequence
from inspect import signature
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, LinearAttentionCacheLayerMixin

from eval.errors import BadValue


def check_rows(model: PreTrainedModel) -> None:
    """Raise if transformers 5.23 can decode this model one row at a time only.

    Raises:
        BadValue: the model is an RWKV, whose decoding steps mix the rows of a batch.
    """
    if model.config.model_type == "rwkv":
        raise BadValue("RWKV is not supported: transformers mixes the rows of its batches")


def has_key_value_cache(model: PreTrainedModel) -> bool:
    """Return whether keys and values are the only state this model caches between tokens."""
    layers = DynamicCache(config=model.config).layers
    return (
        "past_key_values" in signature(type(model).forward).parameters
        and not model._is_stateful
        and not any(isinstance(layer, LinearAttentionCacheLayerMixin) for layer in layers)
    )


class Decoder(Protocol):
    """Next-token logits of a batch of rows."""

    @property
    def refills(self) -> bool:
        """True if new rows can be admitted while other rows are being decoded."""
        ...

    @property
    def drops(self) -> bool:
        """True if decoding gets faster without the finished rows."""
        ...

    def admit(self, prompts: Sequence[Sequence[int]], rows: Sequence[Sequence[int]]) -> Tensor:
        """Read new prompts; return the next-token logits of each, see `CachedDecoder.admit`."""
        ...

    def step(self, tokens: Tensor, alive: Tensor) -> Tensor:
        """Append one token to every row; return the next-token logits."""
        ...

    def select(self, rows: Tensor) -> None:
        """Keep only these rows, in this order."""
        ...


class CachedDecoder:
    """Decoder whose rows are right-aligned in one `DynamicCache`.

    A prompt is read once; its keys and values are copied to each of its rows. `refills` tells
    whether new rows can be admitted while other rows are being decoded, which requires that every
    layer caches all tokens. `drops` tells whether decoding gets faster without the finished rows.

    Raises:
        BadValue: the model is no decoder with a key-value cache.
    """

    drops = True

    def __init__(self, model: PreTrainedModel):
        if not has_key_value_cache(model) or model.config.is_encoder_decoder:
            raise BadValue(f"{type(model).__name__}: expected a decoder with a key-value cache")
        self.model = model
        self.cache = self.new_cache()
        self.mask = torch.empty(0, 0)

    @property
    def refills(self) -> bool:
        """True if new rows can be admitted while other rows are being decoded."""
        return all(type(layer) is DynamicLayer for layer in self.cache.layers)

    def admit(self, prompts: Sequence[Sequence[int]], rows: Sequence[Sequence[int]]) -> Tensor:
        """Read new prompts; return the next-token logits of each prompt, shape (N, V).

        Args:
            prompts: token ids of N prompts.
            rows: for each prompt, the row indices that continue it; the first call's are 0, 1,
                ... in order.
        """
        ids, mask = left_pad(prompts, self.model.device)
        cache = self.new_cache()
        logits = self.forward(cache, ids, mask, (mask.cumsum(-1) - 1).clamp(min=0))
        owners = torch.tensor(
            [owner for owner, members in enumerate(rows) for _ in members], device=ids.device
        )
        cache.batch_select_indices(owners)
        self.enter(cache, mask[owners], [row for members in rows for row in members])
        return logits

    def step(self, tokens: Tensor, alive: Tensor) -> Tensor:
        """Append one token to every row; return the next-token logits, shape (R, V).

        Args:
            tokens: the tokens to append, shape (R,).
            alive: mask of the rows that are not finished, shape (R,).
        """
        self.mask = torch.cat([self.mask, self.mask.new_ones(len(self.mask), 1)], dim=1)
        # The tokens of a finished row are unused and may exceed the model's maximum position.
        positions = torch.where(alive, self.mask.sum(-1) - 1, 0).unsqueeze(1)
        return self.forward(self.cache, tokens.unsqueeze(1), self.mask, positions)

    def select(self, rows: Tensor) -> None:
        """Keep only these rows, in this order."""
        self.cache.batch_select_indices(rows)
        self.mask = self.mask[rows]

    def new_cache(self) -> DynamicCache:
        """Return an empty cache for this model."""
        return DynamicCache(config=self.model.config)

    def forward(self, cache: DynamicCache, ids: Tensor, mask: Tensor, positions: Tensor) -> Tensor:
        """Run the model on new tokens; return the logits after the last of them, shape (B, V).

        Args:
            cache: keys and values of the earlier tokens; extended in place.
            ids: the new tokens, shape (B, N).
            mask: attention mask over earlier and new tokens, shape (B, T); 0 on padding.
            positions: positions of the new tokens, shape (B, N).
        """
        return self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits[:, -1]

    def enter(self, cache: DynamicCache, mask: Tensor, rows: list[int]) -> None:
        """Copy another cache's rows to these row indices; drop columns no row uses any more."""
        if not len(self.mask):
            self.cache, self.mask = cache, mask
            return
        self.mask[rows] = 0
        first_used = int(self.mask.sum(0).ne(0).int().argmax()) if self.mask.any() else -1
        width = max(self.mask.size(1) - first_used if first_used >= 0 else 0, mask.size(1))
        self.mask = right_align(self.mask.unsqueeze(-1), width).squeeze(-1)
        self.mask[rows] = right_align(mask.unsqueeze(-1), width).squeeze(-1)
        for old, new in zip(self.cache.layers, cache.layers, strict=True):
            for name in ("keys", "values"):
                widened_layer = right_align(getattr(old, name), width)
                widened_layer[rows] = right_align(getattr(new, name), width)
                setattr(old, name, widened_layer)


def right_align(x: Tensor, width: int) -> Tensor:
    """Return the last `width` positions of dimension -2 as a copy, zero-padded on the left."""
    return pad(x, (0, 0, max(0, width - x.size(-2)), 0))[..., -width:, :].clone()


def left_pad(
    prompts: Sequence[Sequence[int]], device: torch.device, filler: int = 0
) -> tuple[Tensor, Tensor]:
    """Return token ids and mask (B, P) of left-padded prompts; there must be at least one."""
    width = max(len(row) for row in prompts)
    ids = [[filler] * (width - len(row)) + list(row) for row in prompts]
    mask = [[0] * (width - len(row)) + [1] * len(row) for row in prompts]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)
