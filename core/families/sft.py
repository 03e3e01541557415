"""Supervised fine-tuning: answers that are given are made more likely."""

from collections.abc import Mapping
from math import ceil
from typing import TYPE_CHECKING, cast

from core.families.family import Cost, Family, Figure, Training, Work
from core.families.grpo import HELD_OUT
from core.families.profiles import CPU_TRAINING, GPU_TRAINING, PAPER_TRAINING

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.configs.sft import SFTConfig
    from core.trainers.sft import SFTTrainer


class SFT(Family):
    """Papers that `SFTTrainer` trains on prompts with completions."""

    name = "sft"
    columns = ("prompt", "completion")
    trained_by = "fine-tuning"
    unused = ("rewards",)
    probabilities = ("nll", "extreme_share")
    profiles: Mapping[str, Mapping[str, object]] = {
        "cpu": {
            **CPU_TRAINING,
            "data": "pocket-worked",
            "learning_rate": 1e-4,
            "lr_scheduler_type": "constant",
            "per_device_train_batch_size": 32,
            "gradient_accumulation_steps": 1,
            "max_steps": 36,
            "max_length": 256,
            "save_steps": 12,
        },
        "gpu": {
            **GPU_TRAINING,
            "learning_rate": 2e-5,
            "per_device_train_batch_size": 16,
            "gradient_accumulation_steps": 4,
            "max_steps": 200,
            "save_steps": 50,
        },
        "paper": PAPER_TRAINING,
    }
    progress = (
        ("loss", "loss", "{:.4f}"),
        ("mean_token_accuracy", "right tokens", "{:.3f}"),
        ("entropy", "entropy", "{:.3f}"),
        ("held_out/accuracy", "held-out", "{:.1f} %"),
    )
    figures = (
        Figure(
            name="training",
            caption="Training",
            alt="Logged metrics by step.",
            metrics={
                "loss": "loss (nats/token)",
                "mean_token_accuracy": "share of right tokens",
                "entropy": "entropy (nats/token)",
                "grad_norm": "norm of the gradient",
            },
        ),
        HELD_OUT,
    )

    def config_class(self) -> "type[SFTConfig]":
        """Import the class of its settings."""
        from core.configs.sft import SFTConfig

        return SFTConfig

    def trainer(self, training: Training) -> "SFTTrainer":
        """Import and build its trainer."""
        from core.models.load import load_policy, load_tokenizer
        from core.trainers.sft import SFTTrainer

        return SFTTrainer(
            model=load_policy(training.model),
            args=cast("SFTConfig", training.config),
            train_dataset=training.rows,
            processing_class=load_tokenizer(training.model),
            callbacks=list(training.callbacks),
            peft_config=training.adapters,
        )

    def batches(
        self, config: "BaseConfig", rows: int, processes: int, share: Mapping[str, int]
    ) -> str:
        """Say how rows become updates."""
        c = cast("SFTConfig", config)
        each = share.get("per_device_train_batch_size", c.per_device_train_batch_size)
        parts = share.get("gradient_accumulation_steps", c.gradient_accumulation_steps)
        update = each * parts * processes
        epoch, run = updates_of(c, rows, update)
        packed = ", several of them in one of its rows" if c.packing else ""
        return "\n".join(
            [
                "Batch plan",
                f"  one update     {parts} x {each} rows on {processes} processes = {update}",
                f"  one epoch      {rows:,} rows{packed}: at most {epoch:,} updates",
                f"  the run        {run:,} updates, at most {run * update:,} rows",
            ]
        )

    def cost(self, config: "BaseConfig", rows: int | None = None) -> Cost:
        """Work out the rows of all updates."""
        c = cast("SFTConfig", config)
        each = c.per_device_train_batch_size * c.gradient_accumulation_steps * c.world_size
        updates = c.max_steps if c.max_steps > 0 else None
        if rows is not None:
            updates = updates_of(c, rows, each)[1]
        return Cost(updates=updates, samples=updates and each * updates, unit="rows")

    def work(self, config: "BaseConfig", processes: int, share: Mapping[str, int]) -> Work:
        """Work out what one of the processes computes at a time: rows of the longest length."""
        del processes
        c = cast("SFTConfig", config)
        batch = share.get("per_device_train_batch_size") or c.per_device_train_batch_size
        return Work(
            micro_batch=batch,
            prompts=batch,
            rows=0,
            prompt=0,
            completion=c.max_length or 0,
            checkpointing=bool(c.activation_checkpointing),
            reference=False,
        )


def updates_of(config: "SFTConfig", rows: int, update: int) -> tuple[int, int]:
    """The updates of an epoch and of the run, each of so many rows."""
    epoch = -(-rows // update)
    run = config.max_steps if config.max_steps > 0 else ceil(config.num_train_epochs * epoch)
    return epoch, run
