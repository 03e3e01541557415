"""Completions without rewards, and the settings of rollouts that have no effect then."""

from collections.abc import Mapping, Sequence

from core.configs.grpo import GRPOConfig
from core.losses.estimators import ESTIMATORS
from eval.errors import BadValue

NO_REWARD = "completions have no rewards"
UNREWARDED: Mapping[str, str] = {
    **dict.fromkeys(("reward_weights", "rollout_selection", "selection_reward"), NO_REWARD),
    **dict.fromkeys(("selection_draws", "selection_fills_up", "selection_kept"), NO_REWARD),
    "prompt_retirement": NO_REWARD,
    "log_multimodal": "images are not supported",
    "router_aux_loss_coef": "the loss has no load-balancing term",
    "keep_sampling_mask": "log-probabilities are over all tokens",
}


def no_reward(completions: Sequence[object], **_: object) -> list[float]:
    """Return a reward of 0 for each completion."""
    return [0.0] * len(completions)


def check_unrewarded(args: GRPOConfig, *, is_rewarded: bool) -> None:
    """Refuse settings of rewards without rewards, and rewards in a group of one completion.

    Raises:
        BadValue: there are such settings.
    """
    estimator = args.advantage_estimator
    if is_rewarded and args.num_generations < ESTIMATORS[estimator].least_group:
        raise BadValue(
            f"reward_funcs with num_generations={args.num_generations}: advantage_estimator="
            f"{estimator!r} compares completions of a prompt; leave reward_funcs out, or set "
            "num_generations=2 or more"
        )
    names = [name for name, why in UNREWARDED.items() if why == NO_REWARD]
    for name in (*names, "advantage_estimator", "kl_coef"):
        if not is_rewarded and args.is_set(name):
            raise BadValue(f"{name}={getattr(args, name)!r} without reward_funcs: {NO_REWARD}")
