"""Decoding by transformers' own forward pass and cache, for any decoder that has one."""

from collections.abc import Sequence
from inspect import signature
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, LinearAttentionCacheLayerMixin

from eval.errors import BadValue


def check_rows(model: PreTrainedModel) -> None:
    """Refuse a model of which transformers 5.23 decodes single rows only.

    Raises:
        BadValue: it is an RWKV, whose steps mix the rows of a batch.
    """
    if model.config.model_type == "rwkv":
        raise BadValue("RWKV is not supported: transformers mixes its rows when it decodes several")


def has_key_value_cache(model: PreTrainedModel) -> bool:
    """Whether all that a model keeps of the tokens before are their keys and values."""
    layers = DynamicCache(config=model.config).layers
    return (
        "past_key_values" in signature(type(model).forward).parameters
        and not model._is_stateful
        and not any(isinstance(layer, LinearAttentionCacheLayerMixin) for layer in layers)
    )


class CachedDecoder:
    """Next-token logits of rows whose keys and values stand flush right in one cache.

    A prompt is read once and its keys and values copied to its rows. `refills` says whether new
    rows may enter while others go on: not where a layer keeps less than all tokens. `drops`: it
    gains by going on without finished rows.

    Raises:
        BadValue: the model has no cache of keys and values.
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
        """Whether rows may enter later."""
        return all(type(layer) is DynamicLayer for layer in self.cache.layers)

    def admit(self, prompts: Sequence[Sequence[int]], rows: Sequence[Sequence[int]]) -> Tensor:
        """Read new prompts; logits (N, V) after each.

        `rows` are the places that go on from each; the first call's are 0, 1, ... in order.
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
        """Logits (R, V) after one more token (R,) of every row."""
        self.mask = torch.cat([self.mask, self.mask.new_ones(len(self.mask), 1)], dim=1)
        # A finished row adds tokens that nobody reads, maybe past the last position of the model.
        positions = torch.where(alive, self.mask.sum(-1) - 1, 0).unsqueeze(1)
        return self.forward(self.cache, tokens.unsqueeze(1), self.mask, positions)

    def select(self, rows: Tensor) -> None:
        """Go on with these rows only."""
        self.cache.batch_select_indices(rows)
        self.mask = self.mask[rows]

    def new_cache(self) -> DynamicCache:
        """An empty cache for this model."""
        return DynamicCache(config=self.model.config)

    def forward(self, cache: DynamicCache, ids: Tensor, mask: Tensor, positions: Tensor) -> Tensor:
        """Logits (B, V) after the last of the new tokens (B, N); `mask` (B, T) is 0 on padding."""
        model: Any = self.model  # Any: its calls are half typed
        return model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits[:, -1]

    def enter(self, cache: DynamicCache, mask: Tensor, rows: list[int]) -> None:
        """Put another cache's rows at these places; columns that nobody needs any more go."""
        if not len(self.mask):
            self.cache, self.mask = cache, mask
            return
        self.mask[rows] = 0
        needed = int(self.mask.sum(0).ne(0).int().argmax()) if self.mask.any() else -1
        width = max(self.mask.size(1) - needed if needed >= 0 else 0, mask.size(1))
        self.mask = right(self.mask.unsqueeze(-1), width).squeeze(-1)
        self.mask[rows] = right(mask.unsqueeze(-1), width).squeeze(-1)
        for old, new in zip(self.cache.layers, cache.layers, strict=True):
            for name in ("keys", "values"):
                room = right(getattr(old, name), width)
                room[rows] = right(getattr(new, name), width)
                setattr(old, name, room)


def right(x: Tensor, width: int) -> Tensor:
    """The last `width` entries along the last dimension but one, with zeros before them."""
    return pad(x, (0, 0, max(0, width - x.size(-2)), 0))[..., -width:, :].clone()


def left_pad(
    prompts: Sequence[Sequence[int]], device: torch.device, filler: int = 0
) -> tuple[Tensor, Tensor]:
    """Ids and attention mask, both (B, P), with the prompts flush right."""
    width = max(len(row) for row in prompts)
    ids = [[filler] * (width - len(row)) + list(row) for row in prompts]
    mask = [[0] * (width - len(row)) + [1] * len(row) for row in prompts]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)
