"""Decoding in buffers that stay where they are, so that a GPU replays a step as one CUDA graph."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from core.rollout.cached import CachedDecoder
from core.rollout.native.prefix_attention import padded
from core.rollout.wrappings import has_unsharded_weights, is_hooked

Step = Callable[[], Tensor]
COLUMNS = 256  # the buffers' widths are multiples of it; each new width is recorded anew
WARM_UP = 3  # steps before a capture, in which kernels are chosen and workspaces made


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


def static_lacks(model: PreTrainedModel) -> str | None:
    """What a decoding step needs so that it can be recorded and replayed; None if it has all."""
    return next((need for need, holds in NEEDS.items() if not holds(model)), None)


class StaticDecoder(CachedDecoder):
    """Next-token logits by the model's own forward pass, one recorded step after the other.

    Every row has columns of its own in buffers of fixed shapes, into which a group's prompt is
    copied after it was read once. What a step reads and writes stays where it is until the buffers
    are widened, so `record` may replace it by something that does the same work again: a CUDA graph
    on a GPU, nothing elsewhere. Rows that are finished stay, as fewer would be another step.

    The numbers are those of the model's modules in whatever type they compute, bfloat16 included.
    NOT RUN SO FAR: `cuda_graph`, for want of a GPU; all else is, on a CPU, with a recorder that
    replays the operations of a step as a graph does.
    """

    drops = False

    def __init__(self, model: PreTrainedModel, record: Callable[[Step], Step] | None = None):
        super().__init__(model)
        self.record = record or (cuda_graph if model.device.type == "cuda" else unrecorded)
        self.replay: Step | None = None
        self.columns = torch.arange(0, device=model.device)
        self.begun = self.tokens = self.columns  # (R,) first column, new token
        self.alive = self.columns.bool()
        self.kept = RowCache(self.columns)
        self.certain = 0  # steps for which the columns suffice

    @property
    def refills(self) -> bool:
        """Rows may enter later."""
        return True

    def enter(self, cache: DynamicCache, mask: Tensor, rows: list[int]) -> None:
        """Put these prompts, one for each row, at the beginning of their rows."""
        layers: Any = cache.layers  # Any: typed for every kind of layer at once
        if not len(self.begun):
            self.begun, self.tokens, used = self.begun.new_zeros(3, len(rows))
            self.alive = used.bool()
            self.kept = RowCache(used)
            self.kept.rooms = [(new.keys[:, :, :0], new.values[:, :, :0]) for new in layers]
        width = mask.size(1)
        self.widen(width)
        at = torch.tensor(rows, device=mask.device)
        for (keys, values), new in zip(self.kept.rooms, layers, strict=True):
            keys[at, :, :width], values[at, :, :width] = new.keys, new.values
        self.begun[at] = width - mask.sum(-1)
        self.kept.used[at] = width
        self.certain = 0

    def step(self, tokens: Tensor, alive: Tensor) -> Tensor:
        """Logits (R, V) after one more token (R,) of every row that is alive.

        They are overwritten by the next step.
        """
        if not self.certain:  # only now a GPU is asked, and waited for
            most = int(self.kept.used.max())
            self.widen(most + 1)
            self.certain = len(self.columns) - most
        self.certain -= 1
        with torch.cuda.device_of(self.tokens):  # it need not be the current one
            if self.replay is None:
                self.alive.zero_()  # a step of nobody may be run any number of times
                self.replay = self.record(self.decode)
            self.tokens.copy_(tokens)
            self.alive.copy_(alive)
            return self.replay()

    def select(self, rows: Tensor) -> None:
        """Rows are not dropped."""
        raise NotImplementedError

    def decode(self) -> Tensor:
        """Logits (R, V) after `tokens` of the rows that are `alive`, without a look at a value."""
        first, last = self.begun.unsqueeze(1), self.kept.used.unsqueeze(1)
        seen = (self.columns >= first) & (self.columns <= last)
        ids = self.tokens.unsqueeze(1)
        logits = self.forward(self.kept, ids, seen[:, None, None], last - first)
        self.kept.used += self.alive
        return logits

    def widen(self, width: int) -> None:
        """Buffers of at least so many columns, and of a quarter more than before if they grow."""
        have = len(self.columns)
        if width <= have:
            return
        wide = -(-max(width, have + have // 4) // COLUMNS) * COLUMNS
        self.replay = None  # it knows the old ones
        self.columns = torch.arange(wide, device=self.columns.device)
        self.kept.rooms = [padded(room, (0, 0, 0, wide - have)) for room in self.kept.rooms]


class RowCache(DynamicCache):
    """Keys and values of rows, layer by layer; a row takes a new token at its next column.

    `used` (R,) are those columns: a step writes there, and whoever asked for it moves them on.
    """

    def __init__(self, used: Tensor):
        super().__init__()
        self.used = used
        self.rows = torch.arange(len(used), device=used.device)
        self.rooms: list[tuple[Tensor, Tensor]] = []  # keys and values (R, K, W, D)

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: object, **__: object
    ) -> tuple[Tensor, Tensor]:
        """All of a layer, after one more token (R, K, 1, D) of each row."""
        keys, values = self.rooms[layer_idx]
        keys[self.rows, :, self.used] = key_states.squeeze(2).to(keys)
        values[self.rows, :, self.used] = value_states.squeeze(2).to(values)  # autocast mixes types
        return keys, values


def unrecorded(step: Step) -> Step:
    """The step itself."""
    return step


def cuda_graph(step: Step) -> Step:
    """The kernels of a step as one graph; what it returns is overwritten by each replay."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    # other threads may go on with what a capture forbids, as a data loader that pins memory does
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        found = step()

    def replay() -> Tensor:
        graph.replay()
        return found

    return replay
