"""Functions of TRL's GRPO trainer that scripts call, on top of the losses of this project."""

from typing import cast

import torch
from accelerate import Accelerator
from torch import Tensor

from core.losses.batch import PolicyConfig, Rollout
from core.losses.surrogate import gamma_weight
from core.losses.token_weights import is_near


class TokenMasks:
    """Masks and weights under TRL's names; training does not call them."""

    accelerator: Accelerator

    def get_high_entropy_mask(self, entropies: Tensor, mask: Tensor, threshold: float) -> Tensor:
        """Return a mask (B, T) of the tokens with an entropy of at least the quantile `threshold`.

        The quantile is over the tokens of all processes where `mask` is 1; other tokens are False.
        """
        valid = mask.bool()
        lowest = -1  # below every entropy: marks what fills the shorter processes
        padded = self.accelerator.pad_across_processes(
            entropies[valid].float(), dim=0, pad_index=lowest
        )
        all_entropies = cast(Tensor, self.accelerator.gather(padded))
        all_entropies = all_entropies[all_entropies != lowest]
        return (
            valid & (entropies >= all_entropies.quantile(threshold))
            if len(all_entropies)
            else valid
        )

    @staticmethod
    def get_off_policy_mask(
        advantages: Tensor,
        per_token_logps: Tensor,
        sampling_per_token_logps: Tensor,
        mask: Tensor,
        off_policy_threshold: float,
    ) -> Tensor:
        """Return 1 for the completions (B, 1) that `near_policy` keeps, else 0."""
        is_kept = is_near(
            advantages, per_token_logps, sampling_per_token_logps, mask, off_policy_threshold
        )
        return is_kept.to(mask.dtype)

    @staticmethod
    def get_gamma_weights(
        advantages: Tensor,
        log_ratio_per_token: Tensor,
        mask: Tensor,
        importance_sampling_ratio: Tensor | None,
        k_pos: float = 2.0,
        lambda_pos: float = 3.0,
        k_neg: float = 3.0,
        lambda_neg: float = 2.0,
    ) -> Tensor:
        """Return the weight that VESPO gives each completion (B, 1), see `gamma_weight`."""
        rollout = Rollout(
            logps=log_ratio_per_token,
            old_logps=torch.zeros_like(log_ratio_per_token),
            advantages=advantages,
            mask=mask,
            sampling_ratio=importance_sampling_ratio,
        )
        settings = PolicyConfig(
            vespo_k_pos=k_pos,
            vespo_lambda_pos=lambda_pos,
            vespo_k_neg=k_neg,
            vespo_lambda_neg=lambda_neg,
        )
        return gamma_weight(rollout, log_ratio_per_token, settings)
