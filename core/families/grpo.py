"""Group relative policy optimisation: answers are sampled in groups and paid for by rewards."""

from collections.abc import Mapping
from math import ceil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from core.families.family import Cost, Family, Figure, Training, Work
from core.families.profiles import CPU_TRAINING, GPU_TRAINING, PAPER_TRAINING

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.configs.grpo import GRPOConfig
    from core.explain.batch_plan import BatchPlan
    from core.trainers.grpo import GRPOTrainer

HELD_OUT = Figure(
    name="held-out",
    caption="Held-out accuracy while training",
    alt="Accuracy by step for every arm.",
    metrics={"held_out/accuracy": "held-out accuracy (%)"},
)


class GRPO(Family):
    """Papers that `GRPOTrainer` trains."""

    name = "grpo"
    columns = ("prompt", "answer")
    trained_by = "RL"
    micro_batches = ("steps_per_generation",)
    profiles: Mapping[str, Mapping[str, object]] = {
        "cpu": {
            **CPU_TRAINING,
            "data": "pocket",
            "learning_rate": 2e-4,
            "lr_scheduler_type": "constant",
            "num_generations": 16,
            "per_device_train_batch_size": 128,
            "gradient_accumulation_steps": 1,
            "steps_per_generation": 1,
            "max_steps": 36,
            "max_completion_length": 64,
            "save_steps": 12,
        },
        "gpu": {
            **GPU_TRAINING,
            "learning_rate": 1e-6,
            "num_generations": 16,
            "per_device_train_batch_size": 32,
            "gradient_accumulation_steps": 8,
            "steps_per_generation": 8,
            "max_steps": 200,
            "save_steps": 50,
        },
        "paper": PAPER_TRAINING,
    }
    progress = (
        ("reward", "reward", "{:.3f}"),
        ("entropy", "entropy", "{:.3f}"),
        ("kl", "KL", "{:.4f}"),
        ("held_out/accuracy", "held-out", "{:.1f} %"),
    )
    figures = (
        Figure(
            name="training",
            caption="Training",
            alt="Logged metrics by step.",
            metrics={
                "reward": "mean reward",
                "completions/mean_length": "completion length (tokens)",
                "entropy": "entropy (nats/token)",
                "kl": "KL to reference (nats/token)",
            },
        ),
        HELD_OUT,
    )

    def config_class(self) -> "type[GRPOConfig]":
        """Import the class of its settings."""
        from core.configs.grpo import GRPOConfig

        return GRPOConfig

    def trainer(self, training: Training) -> "GRPOTrainer":
        """Import and build its trainer."""
        from core.models.load import load_policy, load_tokenizer
        from core.trainers.grpo import GRPOTrainer

        return GRPOTrainer(
            model=load_policy(training.model),
            reward_funcs=list(training.rewards),
            args=cast("GRPOConfig", training.config),
            train_dataset=training.rows,
            processing_class=load_tokenizer(training.model),
            callbacks=list(training.callbacks),
            peft_config=training.adapters,
        )

    def batches(
        self, config: "BaseConfig", rows: int, processes: int, share: Mapping[str, int]
    ) -> str:
        """Say how prompts become rollouts, and rollouts updates."""
        return str(self.plan(config, rows, processes, share))

    def plan(
        self, config: "BaseConfig", rows: int, processes: int, share: Mapping[str, int]
    ) -> "BatchPlan":
        """The batch plan behind it, in numbers."""
        from core.explain.batch_plan import batch_plan

        shared: Any = SimpleNamespace(**vars(config))  # Any: a config's fields
        vars(shared).update(share)
        return batch_plan(shared, rows, processes)

    def cost(self, config: "BaseConfig", rows: int | None = None) -> Cost:
        """Work out the completions of all updates."""
        c = cast("GRPOConfig", config)
        updates = c.max_steps if c.max_steps > 0 else None
        if rows is not None:
            updates = self.plan(c, rows, 1, {}).updates
        each = c.per_device_train_batch_size * c.gradient_accumulation_steps * c.world_size
        samples = int(each * updates / c.num_iterations) if updates else None
        compares = ("reference",) if c.keeps_reference else ()
        return Cost(
            updates=updates,
            samples=samples,
            unit="completions",
            sampled_tokens=int(samples * (c.max_completion_length or 0)) if samples else None,
            copies=(*Cost.copies, *compares),
        )

    def work(self, config: "BaseConfig", processes: int, share: Mapping[str, int]) -> Work:
        """Work out what one of the processes computes at a time."""
        from core.rollout.native.native import ROWS

        c = cast("GRPOConfig", config)
        rollout = c.rollout_size // processes
        batch = share.get("per_device_train_batch_size") or c.per_device_train_batch_size
        return Work(
            micro_batch=batch,
            prompts=min(batch, ceil(rollout / c.num_generations)),
            rows=min(rollout, ROWS),
            completion=c.max_completion_length or 0,
            checkpointing=bool(c.activation_checkpointing),
            reference=c.keeps_reference,
        )

    def answer_tokens(self, config: "BaseConfig") -> int | None:
        """The longest completion."""
        return cast("GRPOConfig", config).max_completion_length
