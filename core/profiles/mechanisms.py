"""Plain GRPO and single mechanisms on top of it, with which the probes are tested."""

from collections.abc import Mapping

from core.paper import Reward
from core.profiles.algorithms import Algorithm
from core.profiles.trainings import LIMIT, Settings
from core.rewards import Accuracy, Shuffled, SoftOverlong

NO_CLIP = 1e6
GRPO: Settings = {"loss_type": "grpo"}  # on the bases of a world: clips of 0.2 and no KL
WEIGHTS: Settings = {
    "vllm_importance_sampling_correction": True,
    "vllm_importance_sampling_mode": "token_truncate",
    "vllm_importance_sampling_clip_max": 2.0,
}


def shuffled(rewards: tuple[Reward, ...]) -> tuple[Reward, ...]:
    """Return rewards whose values are dealt anew over the completions."""
    return tuple(Shuffled(reward) for reward in rewards)


def punished(rewards: tuple[Reward, ...]) -> tuple[Reward, ...]:
    """Return rewards with the soft punishment of answers near the limit of length added."""
    return (*rewards, SoftOverlong(LIMIT, LIMIT // 3))


def clean(rewards: tuple[Reward, ...]) -> tuple[Reward, ...]:
    """Return the accuracy alone."""
    del rewards
    return (Accuracy(),)


ROWS = (
    Algorithm(name="grpo", settings=GRPO),
    Algorithm(name="shuffled-rewards", settings=GRPO, rewarding=shuffled),
    Algorithm(
        name="few-tokens",
        settings={**GRPO, "top_entropy_quantile": 0.2, "top_entropy_normalizer": "kept"},
    ),
    Algorithm(name="no-clip", settings={**GRPO, "epsilon": NO_CLIP}),
    Algorithm(name="truncated-weights", settings={**GRPO, **WEIGHTS}),
    Algorithm(name="no-length-divisor", settings={"loss_type": "dr_grpo"}),
    Algorithm(name="soft-punishment", settings=GRPO, rewarding=punished),
    Algorithm(
        name="dynamic-sampling",
        settings={**GRPO, "rollout_selection": "filled", "selection_fills_up": True},
    ),
    Algorithm(name="groups-of-64", settings={**GRPO, "num_generations": 64}),
    Algorithm(name="groups-of-2", settings={**GRPO, "num_generations": 2}),
    Algorithm(name="clean-rewards", settings=GRPO, rewarding=clean),
    Algorithm(
        name="rewards-apart",
        settings={**GRPO, "multi_objective_aggregation": "normalize_then_sum"},
    ),
    Algorithm(name="kl-penalty", settings={**GRPO, "beta": 0.1}),
)
MECHANISMS: Mapping[str, Algorithm] = {row.name: row for row in ROWS}
PLAIN = MECHANISMS["grpo"]
CHANCE = MECHANISMS["shuffled-rewards"]
