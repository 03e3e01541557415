"""Metrics of groups of completions, under TRL's names for self-distillation."""

from collections.abc import Sequence

from torch import Tensor

from core.collect.metrics import Metrics
from core.distillation.demonstrations import Hint
from core.distillation.sdpo_config import SDPOConfig
from core.losses.estimators import Scored

FLAT = 1e-8  # greatest spread of rewards that counts as none


def reward_statistics(rewards: Tensor, scored: Scored, names: Sequence[str]) -> Metrics:
    """Return statistics of the rewards.

    Args:
        rewards: Sum of the rewards of each completion (N,).
        scored: The rewards themselves.
        names: Their names.
    """
    spread = rewards.view(-1, scored.group).std(1) if scored.group > 1 else 0 * rewards
    means = scored.rewards.nanmean(0).tolist()
    statistics = {
        "reward_mean": rewards.mean().item(),
        "reward_std": rewards.std().item() if len(rewards) > 1 else 0.0,
        "reward_min": rewards.min().item(),
        "reward_max": rewards.max().item(),
        "group_reward_std_mean": spread.mean().item(),
        "flat_group_fraction": (spread <= FLAT).double().mean().item(),
        **{f"rewards/{name}": mean for name, mean in zip(names, means, strict=True)},
    }
    return {f"self_distillation/{name}": value for name, value in statistics.items()}


def shares_of(
    hints: Sequence[Hint],
    rewards: Sequence[float],
    group: int,
    feedback: Sequence[str | None],
    args: SDPOConfig,
) -> dict[str, float]:
    """Return the shares of groups and completions with hints."""
    succeeded = [reward >= args.success_reward_threshold for reward in rewards]
    groups = [any(succeeded[i : i + group]) for i in range(0, len(succeeded), group)]
    shares = {
        "success_group_fraction": groups,
        "success_sample_fraction": [hint.solution is not None for hint in hints],
        "feedback_available_fraction": [bool(text) for text in feedback],
        "feedback_used_fraction": [hint.feedback is not None for hint in hints],
        "reprompt_sample_fraction": [hint.is_given for hint in hints],
    }
    return {f"self_distillation/{name}": sum(x) / len(x) for name, x in shares.items()}
