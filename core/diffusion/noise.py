"""Uniform noise of the tokens of texts, drawn for each row and optimizer step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from core.data.collate import DataCollatorForLanguageModeling
from core.data.conversations import Row
from core.data.sft import IGNORED

INDEX = "noise_index"  # the column of the place of a row in its dataset
EDGE = 1e-3  # the time is drawn from EDGE to 1 - EDGE, so that no loss or shift is infinite


class Noise(NamedTuple):
    """Noise of the M labelled tokens of a batch, row by row.

    Attributes:
        tokens: The noisy tokens (M,).
        kept: The probability that noise kept the token (M,), equal for all tokens of a row.
    """

    tokens: Tensor
    kept: Tensor


def symbol_count(model: PreTrainedModel) -> int:
    """Return the number K of symbols that noise draws from: all of the model's vocabulary."""
    return model.config.get_text_config().vocab_size


def uniform_noise(
    labels: Tensor, rows: Sequence[int], symbols: int, *, seed: int, step: int
) -> Noise:
    """Return noise of the labelled tokens of a batch.

    The time t of a row is uniform. Each token is kept with probability 1 - t, and is a uniform draw
    from all symbols otherwise. The draws depend on seed, step and row alone, not on the batch that
    the row stands in, nor on its padding.

    Args:
        labels: The clean tokens (B, T), `IGNORED` at prompts and padding.
        rows: The place of each row in its dataset.
        symbols: Number of symbols.
        seed: Seed of the training.
        step: Optimizer step, at least 0.
    """
    tokens, kept = list[Tensor](), list[Tensor]()
    for row, of_row in zip(rows, labels.cpu(), strict=True):
        clean = of_row[of_row != IGNORED]
        draw = np.random.default_rng((seed, step, row))
        alpha = 1 - EDGE - (1 - 2 * EDGE) * draw.random()
        is_kept = torch.from_numpy(draw.random(len(clean)) < alpha)
        drawn = torch.from_numpy(draw.integers(symbols, size=len(clean)))
        tokens.append(torch.where(is_kept, clean, drawn))
        kept.append(torch.full(clean.shape, alpha, dtype=torch.float64))
    return Noise(torch.cat(tokens).to(labels.device), torch.cat(kept).to(labels.device))


@dataclass(frozen=True)
class CanvasCollator:
    """Collator of rows of `input_ids` and `labels` with their places in the dataset.

    Attributes:
        pad_token_id: Token of padding.
    """

    pad_token_id: int

    def __call__(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """Return the tensors of a batch: those of fine-tuning, and the places (B,)."""
        batch = DataCollatorForLanguageModeling(self.pad_token_id)(rows)
        return {**batch, INDEX: torch.tensor([row[INDEX] for row in rows])}
