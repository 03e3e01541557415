"""Weights of undesirable answers that match their prompts to those of desirable ones."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from datasets import Dataset  # pyright: ignore[reportMissingTypeStubs] - it ships none
from torch import Tensor

from core.configs.bco import BCOConfig
from core.data.best_fit import Data
from core.data.conversations import Tokenizer
from core.data.unpaired import PROMPT_TEXT
from core.preference.density_ratio import DensityRatio, PromptEmbedding, fit_density_ratio
from core.preference.unpaired_collate import LABEL, WEIGHT
from eval.errors import BadValue


@dataclass
class PromptMatching:
    """Underlying distribution matching; arXiv 2404.04656.

    Attributes:
        embed: Function that embeds prompts, see `PromptEmbedding`; None if none are matched.
        tokenizer: Its tokenizer.
        ratio: Density ratio of the prompts of both labels; None before the first rows are weighed.

    Raises:
        BadValue: one of function and tokenizer is missing.
    """

    embed: Callable[..., Tensor] | None
    tokenizer: Tokenizer | None
    ratio: DensityRatio | None = None

    def __post_init__(self):
        if (self.embed is None) != (self.tokenizer is None):
            raise BadValue(
                "embedding_func and embedding_tokenizer: found one of them, expected both or none"
            )

    def weigh(self, rows: Data, config: BCOConfig) -> Data:
        """Return rows with their weights, unchanged if no prompts are matched.

        The first rows, which are trained on, fit the classifier of prompts.

        Raises:
            BadValue: the rows have no length or one label only.
        """
        if self.embed is None or self.tokenizer is None:
            return rows
        if not isinstance(rows, Dataset):
            raise BadValue(
                "embedding_func with an IterableDataset, whose prompts cannot be read beforehand: "
                "leave it out"
            )
        size, device = config.per_device_train_batch_size, config.device
        embed = PromptEmbedding(
            embed=self.embed, tokenizer=self.tokenizer, device=device, size=size
        )
        if self.ratio is None:
            self.ratio = fit_prompts(rows, embed, config)
        return weigh_answers(rows, embed, self.ratio, config)


def weigh_answers(
    rows: Dataset, embed: PromptEmbedding, ratio: DensityRatio, config: BCOConfig
) -> Dataset:
    """Return rows with their weights: of undesirable answers the density ratio at their prompt."""
    places = places_of(rows, label=False)
    weights = torch.ones(len(rows), dtype=torch.double)
    if places:
        embeddings = embed(rows.select(places)[PROMPT_TEXT])
        weights[places] = ratio(embeddings, config.min_density_ratio, config.max_density_ratio)
    return rows.add_column(WEIGHT, weights.tolist())


def fit_prompts(rows: Dataset, embed: PromptEmbedding, config: BCOConfig) -> DensityRatio:
    """Fit the classifier on prompts of both labels that the seed of the training draws.

    Raises:
        BadValue: there is one label only.
    """
    draw = torch.Generator().manual_seed(config.seed)
    embeddings = list[Tensor]()
    for label in (True, False):
        places = places_of(rows, label=label)
        if not places:
            raise BadValue(f"embedding_func: expected prompts of both labels, none is {label}")
        chosen = torch.randperm(len(places), generator=draw)[: config.prompt_sample_size]
        embeddings.append(embed(rows.select([places[i] for i in chosen])[PROMPT_TEXT]))
    return fit_density_ratio(*embeddings)


def places_of(rows: Dataset, *, label: bool) -> list[int]:
    """Return the places of the answers with a label."""
    return [place for place, value in enumerate(rows[LABEL]) if value == label]
