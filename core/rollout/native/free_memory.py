"""Number of completions that fit in the free memory of a GPU."""

from math import ceil
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

from core.rollout.engine import ROWS
from core.rollout.native.static import COLUMNS

MOST = 1024  # beyond it a GPU gains little, and the batch waits for its longest completions
USABLE = 0.8  # share of the free memory; the rest is for kernels and fragmentation
SPARE = 1.25  # buffers grow by a quarter, and the old and the new one exist at the same time
LOGITS = 28  # bytes per vocabulary entry: logits, their float32 copy, sorted, cumulative sums


def rows_in_memory(model: PreTrainedModel, prompt: int, completion: int) -> int:
    """Return how many completions fit in free GPU memory now; `ROWS` on a CPU.

    Args:
        model: the model that is decoded.
        prompt: largest prompt length in tokens.
        completion: largest completion length in tokens.
    """
    free = free_bytes(model.device)
    if free is None:
        return ROWS
    return max(1, min(MOST, int(USABLE * free / row_bytes(model, prompt, completion))))


def row_bytes(model: PreTrainedModel, prompt: int, completion: int) -> int:
    """Return an upper bound of the bytes that one completion needs while it is decoded.

    The bound adds the keys and values of all tokens, the activations and attention scores of one
    layer while the prompt is read, the logits of one token, and four numbers per drawn token.
    """
    config: Any = model.config.get_text_config()  # Any: its sizes are attributes of subclasses
    hidden, width = config.hidden_size, model.dtype.itemsize
    intermediate = getattr(config, "intermediate_size", None) or 4 * hidden
    columns = ceil(SPARE * (prompt + completion) / COLUMNS) * COLUMNS
    keys_values = 2 * columns * token_bytes(model)
    reading = width * prompt * (8 * hidden + 3 * intermediate + prompt)
    return keys_values + reading + LOGITS * config.vocab_size + 4 * 8 * completion


@torch.no_grad()
def token_bytes(model: PreTrainedModel) -> int:
    """Return the bytes of the keys and values of one token, measured by a forward pass."""
    cache = DynamicCache(config=model.config)
    ids = torch.zeros(1, 1, dtype=torch.long, device=model.device)
    model(input_ids=ids, past_key_values=cache, use_cache=True)
    layers: Any = cache.layers
    return sum(layer.keys.nbytes + layer.values.nbytes for layer in layers)


def free_bytes(device: torch.device) -> int | None:
    """Return the unused bytes of a GPU, PyTorch's own reserve included; None without a GPU."""
    if device.type != "cuda":
        return None
    reserve = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + reserve
