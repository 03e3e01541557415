"""Base of the families that train on preference pairs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from core.families.family import Work, training_figures
from core.families.offline import Offline
from core.families.profiles import CPU_TRAINING, GPU_TRAINING, PAPER_TRAINING

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig

PREFERENCE = "preference"  # the group of all families of preference losses


class PreferencePairs(Offline, Protocol):
    """Base of a family whose trainer reads prompts with a chosen and a rejected answer."""

    columns = ("chosen", "rejected")  # a prompt may stand in both
    trained_by = "preferences"
    own_answers = ("kl_to_start", "answer_tokens")
    has_regimes = True
    group = PREFERENCE
    pair_quantities = (
        "pair_accuracy",
        "likelihood_accuracy",
        "pair_margin",
        "log_ratio/chosen",
        "log_ratio/rejected",
        "chosen_fell",
        "other_answers",
        "start_log_weight",
        "start_log_weight_spread",
        "flipped_resisted",
        "excess_loss",
        "excess_loss/shifted",
        "quantile_gap",
    )
    profiles: Mapping[str, Mapping[str, object]] = {
        "cpu": {
            **CPU_TRAINING,
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
            "learning_rate": 1e-6,
            "per_device_train_batch_size": 8,
            "gradient_accumulation_steps": 8,
            "max_steps": 200,
            "save_steps": 50,
        },
        "paper": PAPER_TRAINING,
    }
    progress = (
        ("loss", "loss", "{:.4f}"),
        ("rewards/accuracies", "right pairs", "{:.3f}"),
        ("rewards/margins", "margin", "{:.3f}"),
        ("held_out/accuracy", "held-out", "{:.1f} %"),
    )
    figures = training_figures(
        {
            "loss": "loss (nats/pair)",
            "rewards/accuracies": "share of pairs in order",
            "rewards/margins": "margin of rewards (nats)",
            "logps/chosen": "log-probability of chosen answers (nats)",
            "grad_norm": "norm of the gradient",
        }
    )

    def work(self, config: "BaseConfig", processes: int, share: Mapping[str, int]) -> Work:
        """Return what one process computes at a time: all answers of rows of maximum length."""
        of_rows = super().work(config, processes, share)
        answers = len(self.columns)
        return Work(
            micro_batch=answers * of_rows.micro_batch,
            prompts=answers * of_rows.prompts,
            rows=0,
            prompt=0,
            completion=of_rows.completion,
            checkpointing=of_rows.checkpointing,
            reference=self.keeps_reference(config),
        )

    def keeps_reference(self, config: "BaseConfig") -> bool:
        """Return whether a reference is in memory beside the policy while it trains."""
        del config
        return False
