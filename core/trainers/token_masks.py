"""Functions of TRL's GRPO trainer that scripts call, by the losses that training uses."""

from typing import Any, cast

from torch import Tensor

from core.losses.token_weights import is_near


class TokenMasks:
    """Masks of tokens under TRL's names. Training does not call them."""

    accelerator: Any  # Any: a trainer's

    def get_high_entropy_mask(self, entropies: Tensor, mask: Tensor, threshold: float) -> Tensor:
        """Return which tokens (B, T) have an entropy of at least its quantile `threshold`.

        The quantile is over the tokens of all processes where `mask` is 1; others are False.
        """
        kept = mask.bool()
        lowest = -1.0  # below every entropy: marks what fills the shorter processes
        padded = self.accelerator.pad_across_processes(entropies[kept].float(), pad_index=lowest)
        every = cast(Tensor, self.accelerator.gather(padded))
        every = every[every != lowest]
        return kept & (entropies >= every.quantile(threshold)) if len(every) else kept

    @staticmethod
    def get_off_policy_mask(
        advantages: Tensor,
        per_token_logps: Tensor,
        sampling_per_token_logps: Tensor,
        mask: Tensor,
        off_policy_threshold: float,
    ) -> Tensor:
        """Return 1 for the completions (B, 1) that `near_policy` keeps, else 0."""
        kept = is_near(
            advantages, per_token_logps, sampling_per_token_logps, mask, off_policy_threshold
        )
        return kept.to(mask.dtype)
