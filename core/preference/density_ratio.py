"""Density ratio of prompts of two kinds, from a logistic regression on their embeddings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from core.data.conversations import Tokenizer
from eval.errors import BadValue

STEPS, FLATTEST = 1000, 1e-9  # of the optimiser: its most iterations, the gradient it stops at
EPSILON = 1e-8  # keeps the ratio finite where the classifier is certain


@dataclass(frozen=True, kw_only=True)
class PromptEmbedding:
    """Function that embeds texts of prompts.

    Attributes:
        embed: Returns embeddings (N, D) of `input_ids` and `attention_mask`, both (N, T).
        tokenizer: Its tokenizer.
        device: Where it computes.
        size: Number of texts of a batch.
    """

    embed: Callable[..., Tensor]
    tokenizer: Tokenizer
    device: torch.device
    size: int

    @torch.no_grad()
    def __call__(self, texts: Sequence[str]) -> Tensor:
        """Return the embeddings (N, D) of N texts, at least one, on the processor.

        Raises:
            BadValue: `embed` returns another shape, or numbers that are not finite.
        """
        parts = list[Tensor]()
        for start in range(0, len(texts), self.size):
            batch = list(texts[start : start + self.size])
            tokens = self.tokenizer(
                batch, add_special_tokens=False, padding=True, return_tensors="pt"
            ).to(self.device)
            rows = self.embed(
                input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"]
            )
            if rows.dim() != 2 or len(rows) != len(batch) or not rows.isfinite().all():
                raise BadValue(
                    f"embedding_func returned shape {tuple(rows.shape)} for {len(batch)} prompts: "
                    f"expected finite numbers of shape ({len(batch)}, D)"
                )
            parts.append(rows.double().cpu())
        return torch.cat(parts)


@dataclass(frozen=True)
class DensityRatio:
    """Classifier of prompts: the log-odds of the first kind are x w + b.

    Attributes:
        weight: w of shape (D,).
        bias: b, a scalar.
    """

    weight: Tensor
    bias: Tensor

    def __call__(self, embeddings: Tensor, lowest: float, highest: float) -> Tensor:
        """Return p(first | x) / p(second | x) of embeddings (N, D), within bounds; (N,)."""
        chance = torch.sigmoid(embeddings.double() @ self.weight + self.bias)
        return (chance / (1 - chance + EPSILON)).clamp(lowest, highest)


def fit_density_ratio(first: Tensor, second: Tensor) -> DensityRatio:
    """Fit a classifier on embeddings (N, D) and (M, D) of prompts of two kinds.

    The minimum of |w|^2 / 2 + sum_i c_i log(1 + exp(-y_i (x_i w + b))), in which both kinds have
    the same sum of weights c.
    """
    rows = torch.cat([first, second]).double()
    signs = torch.cat([torch.ones(len(first)), -torch.ones(len(second))]).to(rows)
    counts = torch.where(signs > 0, len(first), len(second))
    factors = len(rows) / (2 * counts)
    parameters = torch.zeros(rows.size(1) + 1, dtype=rows.dtype, device=rows.device)
    parameters.requires_grad_()
    optimizer = torch.optim.LBFGS(
        [parameters],
        max_iter=STEPS,
        tolerance_grad=FLATTEST,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )

    def objective() -> Tensor:
        optimizer.zero_grad()
        margins = signs * (rows @ parameters[:-1] + parameters[-1])
        losses = factors * torch.nn.functional.softplus(-margins)
        loss = losses.sum() + parameters[:-1].square().sum() / 2
        loss.backward()
        return loss

    with torch.enable_grad():
        optimizer.step(objective)
    weight, bias = parameters.detach().split([rows.size(1), 1])
    return DensityRatio(weight, bias.squeeze())
