"""Decoding in buffers at fixed addresses, so that a GPU replays a step as one CUDA graph."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from core.rollout.cached import CachedDecoder
from core.rollout.native.prefix_attention import pad_layer
from core.rollout.wrappings import has_unsharded_weights, is_hooked

Step = Callable[[], Tensor]
COLUMNS = 256  # buffer widths are multiples of it; each new width needs a new recording
WARM_UP = 3  # steps before a capture, in which kernels are chosen and workspaces allocated


NEEDS: Mapping[str, Callable[[Any], bool]] = {  # Any: modules and configs are half typed
    "a forward pass that decides nothing by the values of tensors": lambda model: (
        model._can_compile_fullgraph
    ),
    "attn_implementation='sdpa'": lambda model: model.config._attn_implementation == "sdpa",
    "a decoder whose layers keep all tokens": lambda model: (
        not model.config.is_encoder_decoder
        and all(type(layer) is DynamicLayer for layer in DynamicCache(config=model.config).layers)
    ),
    "angles of positions that do not depend on the longest row": lambda model: (
        not any("dynamic" in str(getattr(module, "rope_type", "")) for module in model.modules())
    ),
    "no hooks": lambda model: not is_hooked(model),  # a replay runs no Python
    "weights that are not sharded": lambda model: has_unsharded_weights(model),
}


def static_needs(model: PreTrainedModel) -> str | None:
    """Return what this model misses for a recorded decoding step; None if nothing."""
    return next((requirement for requirement, is_met in NEEDS.items() if not is_met(model)), None)


class StaticDecoder(CachedDecoder):
    """Decoder that runs the model's own forward pass and replays it as a recorded step.

    Every row has its own columns in buffers of fixed shape, to which the prompt of its group is
    copied after it was read once. The buffers keep their addresses until they are widened, so
    `record` may replace a step by a function that repeats the same work: a CUDA graph on a GPU, the
    step itself elsewhere. Finished rows stay, since fewer rows would need another recording.

    The logits are those of the model's modules in their dtype, bfloat16 included.
    """

    drops = False

    def __init__(self, model: PreTrainedModel, record: Callable[[Step], Step] | None = None):
        super().__init__(model)
        self.record = record or (cuda_graph if model.device.type == "cuda" else run_eagerly)
        self.replay: Step | None = None
        self.columns = torch.arange(0, device=model.device)
        self.first_column = self.tokens = self.columns  # both (R,)
        self.alive = self.columns.bool()
        self.row_cache = RowCache(self.columns)
        self.steps_left = 0  # steps for which the buffers are wide enough

    @property
    def refills(self) -> bool:
        """True: new rows can be admitted while other rows are being decoded."""
        return True

    def enter(self, cache: DynamicCache, mask: Tensor, rows: list[int]) -> None:
        """Copy prompts, one per row, to the first columns of these rows."""
        layers: Any = cache.layers  # Any: typed for every kind of layer at once
        if not len(self.first_column):
            self.first_column, self.tokens, columns_used = self.first_column.new_zeros(3, len(rows))
            self.alive = columns_used.bool()
            self.row_cache = RowCache(columns_used)
            self.row_cache.buffers = [(new.keys[:, :, :0], new.values[:, :, :0]) for new in layers]
        width = mask.size(1)
        self.widen(width)
        row_indices = torch.tensor(rows, device=mask.device)
        for (keys, values), new in zip(self.row_cache.buffers, layers, strict=True):
            keys[row_indices, :, :width], values[row_indices, :, :width] = new.keys, new.values
        self.first_column[row_indices] = width - mask.sum(-1)
        self.row_cache.used[row_indices] = width
        self.steps_left = 0

    def step(self, tokens: Tensor, alive: Tensor) -> Tensor:
        """Append one token to every alive row; return the logits (R, V).

        The next step overwrites the logits.
        """
        if not self.steps_left:  # reading the columns synchronises with a GPU
            most_used = int(self.row_cache.used.max())
            self.widen(most_used + 1)
            self.steps_left = len(self.columns) - most_used
        self.steps_left -= 1
        with torch.cuda.device_of(self.tokens):  # which need not be the current device
            if self.replay is None:
                self.alive.zero_()  # a recording repeats the step, which then changes nothing
                self.replay = self.record(self.decode)
            self.tokens.copy_(tokens)
            self.alive.copy_(alive)
            return self.replay()

    def select(self, rows: Tensor) -> None:
        """Raise `NotImplementedError`: rows are not dropped."""
        raise NotImplementedError

    def decode(self) -> Tensor:
        """Return the logits (R, V) after `tokens`, without synchronising with the device."""
        first, last = self.first_column.unsqueeze(1), self.row_cache.used.unsqueeze(1)
        is_visible = (self.columns >= first) & (self.columns <= last)
        ids = self.tokens.unsqueeze(1)
        logits = self.forward(self.row_cache, ids, is_visible[:, None, None], last - first)
        self.row_cache.used += self.alive
        return logits

    def widen(self, width: int) -> None:
        """Widen the buffers to at least `width` columns, and by at least a quarter if they grow."""
        old_width = len(self.columns)
        if width <= old_width:
            return
        new_width = -(-max(width, old_width + old_width // 4) // COLUMNS) * COLUMNS
        self.replay = None  # it refers to the old buffers
        self.columns = torch.arange(new_width, device=self.columns.device)
        self.row_cache.buffers = [
            pad_layer(buffer, (0, 0, 0, new_width - old_width)) for buffer in self.row_cache.buffers
        ]


class RowCache(DynamicCache):
    """Keys and values of rows, layer by layer; each row writes a new token at its own column.

    `used` (R,) are those columns. A step writes there; its caller then increments them.
    """

    def __init__(self, columns_used: Tensor):
        super().__init__()
        self.used = columns_used
        self.rows = torch.arange(len(columns_used), device=columns_used.device)
        self.buffers: list[tuple[Tensor, Tensor]] = []  # keys and values (R, K, W, D)

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: object, **__: object
    ) -> tuple[Tensor, Tensor]:
        """Write one token (R, K, 1, D) per row to a layer; return the layer's keys and values."""
        keys, values = self.buffers[layer_idx]
        keys[self.rows, :, self.used] = key_states.squeeze(2).to(keys)
        values[self.rows, :, self.used] = value_states.squeeze(2).to(values)  # autocast mixes types
        return keys, values


def run_eagerly(step: Step) -> Step:
    """Return the step unchanged, to be run eagerly."""
    return step


def cuda_graph(step: Step) -> Step:
    """Capture a step as a CUDA graph; return its replay, which overwrites the previous result."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    # Other threads may use what a capture forbids, such as a data loader that pins memory.
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        logits = step()

    def replay() -> Tensor:
        graph.replay()
        return logits

    return replay
