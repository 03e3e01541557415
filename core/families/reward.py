"""Reward models: a number for a text, learnt from pairs of a chosen and a rejected text."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from core.families.family import ALONE, ENSEMBLE, Training, Work, training_figures
from core.families.offline import Offline
from core.families.profiles import CPU_TRAINING, GPU_TRAINING, PAPER_TRAINING

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.configs.reward import RewardConfig
    from core.scoring.reward import RewardTrainer

SAMPLED = ("at_k_samples", "at_k_temperature", "eval_max_tokens")  # of the start's solutions
SIZES = (1, 4, 16, 64)  # numbers of solutions that the best scored one is chosen among
# Settings of other answers, which a model that scores does not give.
OF_ANSWERS = (
    *("benchmarks", "eval_limit", "eval_modes", "eval_temperature"),
    *("eval_engine", "eval_tensor_parallel", "eval_server", "at_k_benchmarks", "at_k_limit"),
    *("heldout_benchmarks", "heldout_limit", "heldout_mode", "heldout_temperature"),
    *("heldout_kl", "heldout_nll"),
)


class RewardModels(Offline):
    """Family of `RewardTrainer`, on chosen and rejected texts, with margins if there are some."""

    name = "reward"
    columns = ("chosen", "rejected")  # beside a prompt, which both texts may have instead
    trained_by = "comparisons"
    gives_rewards = True
    unused = (*(name for name in Offline.unused if name != "scorers"), *OF_ANSWERS)
    pair_quantities = (
        "pairs/accuracy",
        "pairs_clear/accuracy",
        "pairs_close/accuracy",
        "pairs/margin",
        "pairs_clear/margin",
        "rewards/mean",
        "rewards/bimodality",
        "rewards/one_completion",
    )
    solution_quantities = tuple(
        f"{name}{ending}"
        for ending in ("", ENSEMBLE, ALONE)
        for name in (
            *(f"solutions/best_of_{n}" for n in SIZES),
            *(f"solutions/overrated_of_{n}" for n in SIZES),
            *(f"solutions/overrated_by_chance_of_{n}" for n in SIZES),
            "solutions/ordered_pairs",
        )
    )
    profiles: Mapping[str, Mapping[str, object]] = {
        "cpu": {
            **{
                n: value
                for n, value in CPU_TRAINING.items()
                if n not in ("twins", *OF_ANSWERS, *SAMPLED)
            },
            "learning_rate": 1e-4,
            "lr_scheduler_type": "constant",
            "per_device_train_batch_size": 32,
            "gradient_accumulation_steps": 1,
            "max_steps": 72,
            "max_length": 256,
            "save_steps": 24,
        },
        "gpu": {
            **GPU_TRAINING,
            "learning_rate": 1e-5,
            "per_device_train_batch_size": 8,
            "gradient_accumulation_steps": 8,
            "max_steps": 200,
            "save_steps": 50,
        },
        "paper": PAPER_TRAINING,
    }
    progress = (
        ("loss", "loss", "{:.4f}"),
        ("accuracy", "right pairs", "{:.3f}"),
        ("margin", "gap", "{:.3f}"),
        ("held_out/accuracy", "held-out", "{:.1f} %"),
    )
    figures = training_figures(
        {
            "loss": "loss (nats/pair)",
            "accuracy": "share of pairs in order",
            "margin": "gap of rewards",
            "mean_reward": "mean reward",
            "grad_norm": "norm of the gradient",
        }
    )

    def config_class(self) -> "type[RewardConfig]":
        """Import the config class."""
        from core.configs.reward import RewardConfig

        return RewardConfig

    def trainer_class(self) -> "type[RewardTrainer]":
        """Import the trainer class."""
        from core.scoring.reward import RewardTrainer

        return RewardTrainer

    def model_of(self, training: Training) -> str:
        """Return the name of the model, to which the trainer adds a head if it has none."""
        return training.model

    def work(self, config: "BaseConfig", processes: int, share: Mapping[str, int]) -> Work:
        """Return what one process computes at a time: both texts of pairs of maximum length."""
        of_rows = super().work(config, processes, share)
        return replace(of_rows, micro_batch=2 * of_rows.micro_batch, prompts=2 * of_rows.prompts)
