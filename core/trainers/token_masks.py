"""Functions of TRL's GRPO trainer that scripts call, on top of the losses of this project."""

from typing import cast

from accelerate import Accelerator
from torch import Tensor

from core.losses.token_weights import is_near


class TokenMasks:
    """Masks of tokens under TRL's names; training does not call them."""

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
