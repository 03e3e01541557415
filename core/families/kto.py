"""Kahneman-Tversky and binary classifier optimisation: labelled answers are told apart."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from core.families.dpo import DPO
from core.families.family import Work, training_figures
from core.families.offline import Offline
from core.families.profiles import CPU_TRAINING, GPU_TRAINING, PAPER_TRAINING

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.configs.bco import BCOConfig
    from core.configs.kto import KTOConfig
    from core.configs.unpaired_config import UnpairedConfig
    from core.preference.bco import BCOTrainer
    from core.preference.kto import KTOTrainer


class KTO(Offline):
    """Family of `KTOTrainer`, on answers with a label, or on pairs as two labelled answers."""

    name = "kto"
    columns = ("prompt", "completion", "label")
    other_columns = DPO.columns
    trained_by = "labelled answers"
    own_answers = DPO.own_answers
    has_regimes = True
    group = DPO.group
    pair_quantities = DPO.pair_quantities
    profiles: Mapping[str, Mapping[str, object]] = {
        "cpu": {
            **CPU_TRAINING,
            "learning_rate": 1e-4,
            "lr_scheduler_type": "constant",
            "per_device_train_batch_size": 64,  # as many answers as DPO's pairs have
            "gradient_accumulation_steps": 1,
            "train_sampling_strategy": "random",
            "max_steps": 72,
            "max_length": 256,
            "save_steps": 24,
        },
        "gpu": {
            **GPU_TRAINING,
            "learning_rate": 1e-6,
            "per_device_train_batch_size": 16,
            "gradient_accumulation_steps": 8,
            "train_sampling_strategy": "random",
            "max_steps": 200,
            "save_steps": 50,
        },
        "paper": PAPER_TRAINING,
    }
    progress = (
        ("loss", "loss", "{:.4f}"),
        ("kl", "baseline", "{:.3f}"),
        ("rewards/margins", "margin", "{:.3f}"),
        ("held_out/accuracy", "held-out", "{:.1f} %"),
    )
    figures = training_figures(
        {
            "loss": "loss of an answer",
            "kl": "baseline (nats)",
            "rewards/margins": "margin of rewards (nats)",
            "logps/chosen": "log-probability of desirable answers (nats)",
            "grad_norm": "norm of the gradient",
        }
    )

    def config_class(self) -> "type[KTOConfig] | type[BCOConfig]":
        """Import the config class."""
        from core.configs.kto import KTOConfig

        return KTOConfig

    def trainer_class(self) -> "type[KTOTrainer] | type[BCOTrainer]":
        """Import the trainer class."""
        from core.preference.kto import KTOTrainer

        return KTOTrainer

    def work(self, config: "BaseConfig", processes: int, share: Mapping[str, int]) -> Work:
        """Return what one process computes at a time: answers of maximum length."""
        c = cast("UnpairedConfig", config)
        is_kept = not c.precompute_ref_log_probs
        return replace(super().work(config, processes, share), prompt=0, reference=is_kept)


class BCO(KTO):
    """Family of `BCOTrainer`, on the data of `KTO`; undesirable prompts are not weighed."""

    name = "bco"
    progress = tuple(
        ("delta", "mean reward", "{:.3f}") if row[0] == "kl" else row for row in KTO.progress
    )
    figures = training_figures(
        {
            "loss": "loss of an answer (nats)",
            "delta": "mean of the rewards seen (nats)",
            "rewards/margins": "margin of rewards (nats)",
            "logps/chosen": "log-probability of desirable answers (nats)",
            "grad_norm": "norm of the gradient",
        }
    )

    def config_class(self) -> "type[KTOConfig] | type[BCOConfig]":
        """Import the config class."""
        from core.configs.bco import BCOConfig

        return BCOConfig

    def trainer_class(self) -> "type[KTOTrainer] | type[BCOTrainer]":
        """Import the trainer class."""
        from core.preference.bco import BCOTrainer

        return BCOTrainer
