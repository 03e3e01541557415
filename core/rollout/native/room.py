"""How many completions the free memory of a GPU holds, so that batches are as large as they may."""

from math import ceil
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

from core.rollout.native.static import COLUMNS

ROWS = 128  # completions that are decoded at a time where nobody says how many
MOST = 1024  # beyond these a GPU gains little, and the last to finish are waited for
USABLE = 0.8  # of the free memory; what kernels and fragments take is in the rest
SPARE = 1.25  # buffers that are too short grow by a quarter, and old and new lie side by side
LOGITS = 28  # bytes for each word of the vocabulary: logits, their float32, sorted, and sums


def rows_in_memory(model: PreTrainedModel, prompt: int, completion: int) -> int:
    """How many completions of at most so many tokens fit now, behind prompts of at most so many.

    On a CPU they are `ROWS`.
    """
    free = free_bytes(model.device)
    if free is None:
        return ROWS
    return max(1, min(MOST, int(USABLE * free / row_bytes(model, prompt, completion))))


def row_bytes(model: PreTrainedModel, prompt: int, completion: int) -> int:
    """An upper bound of the memory that one completion takes while it is decoded.

    It has keys and values of all tokens, the states of a layer while its prompt is read, with what
    each token sees, the logits of one token, and four numbers for each token that is drawn.
    """
    config: Any = model.config.get_text_config()  # Any: not every one has each of the sizes
    hidden, width = config.hidden_size, model.dtype.itemsize
    inner = getattr(config, "intermediate_size", None) or 4 * hidden
    columns = ceil(SPARE * (prompt + completion) / COLUMNS) * COLUMNS
    keys_values = 2 * columns * token_bytes(model)
    reading = width * prompt * (8 * hidden + 3 * inner + prompt)
    return keys_values + reading + LOGITS * config.vocab_size + 4 * 8 * completion


@torch.no_grad()
def token_bytes(model: PreTrainedModel) -> int:
    """The bytes of one token's keys and values, as the model's own pass gives them."""
    cache = DynamicCache(config=model.config)
    ids = torch.zeros(1, 1, dtype=torch.long, device=model.device)
    model(input_ids=ids, past_key_values=cache, use_cache=True)
    layers: Any = cache.layers
    return sum(layer.keys.nbytes + layer.values.nbytes for layer in layers)


def free_bytes(device: torch.device) -> int | None:
    """The memory of a GPU that nobody uses, what PyTorch holds in reserve included."""
    if device.type != "cuda":
        return None
    reserve = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + reserve
