"""Base of the families that train on given rows, without samples or rewards."""

from collections.abc import Callable, Mapping
from math import ceil
from typing import TYPE_CHECKING, Any, Protocol, cast

from core.families.family import Cost, Family, Training, Work

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from transformers import PreTrainedModel

    from core.configs.base import BaseConfig
    from core.configs.sft import SFTConfig
    from core.trainers.resume import ResumableTrainer


class Offline(Family, Protocol):
    """Base of a family whose trainer reads given rows, with a config like `SFTConfig`."""

    unused = ("rewards", *Family.unused)

    def trainer(self, training: Training) -> "ResumableTrainer":
        """Import and build the trainer, on the rows and without rewards."""
        from core.models.load import load_tokenizer

        trust_code = training.config.trust_remote_code
        own = cast("Callable[..., ResumableTrainer]", training.trainer_of(self.trainer_class()))
        return own(
            model=self.model_of(training),
            args=training.config,
            train_dataset=self.rows_of(training),
            processing_class=load_tokenizer(
                training.model, training.chat_template, trust_code=trust_code
            ),
            callbacks=list(training.callbacks),
            peft_config=training.adapters,
            **self.models_of(training),
        )

    def rows_of(self, training: Training) -> Any:  # Any: a dataset
        """Return the training data as the trainer reads it."""
        return training.rows

    def models_of(self, training: Training) -> Mapping[str, str]:
        """Return further arguments of the trainer: models by name or folder."""
        del training
        return {}

    def model_of(self, training: Training) -> "PreTrainedModel | str":
        """Load the model that is trained; a name is loaded by the trainer."""
        from core.models.load import load_policy

        return load_policy(training.model, trust_code=training.config.trust_remote_code)

    def batches(
        self, config: "BaseConfig", rows: int, processes: int, share: Mapping[str, int]
    ) -> str:
        """Describe how rows become updates."""
        c = cast("SFTConfig", config)
        per_device = share.get("per_device_train_batch_size", c.per_device_train_batch_size)
        parts = share.get("gradient_accumulation_steps", c.gradient_accumulation_steps)
        update = per_device * parts * processes
        epoch, run = updates_of(c, rows, update)
        is_packed = getattr(c, "packing", False)  # of those that can be
        packed = ", several of them in one of its rows" if is_packed else ""
        return "\n".join(
            [
                "Batch plan",
                f"  one update     {parts} x {per_device} rows on {processes} processes = {update}",
                f"  one epoch      {rows:,} rows{packed}: at most {epoch:,} updates",
                f"  the run        {run:,} updates, at most {run * update:,} rows",
            ]
        )

    def cost(self, config: "BaseConfig", rows: int | None = None) -> Cost:
        """Return the number of updates and of rows they read.

        Without `rows` they are known only if `max_steps` is set, and None otherwise.
        """
        c = cast("SFTConfig", config)
        rows_per_update = (
            c.per_device_train_batch_size * c.gradient_accumulation_steps * c.world_size
        )
        updates = c.max_steps if c.max_steps > 0 else None
        if rows is not None:
            updates = updates_of(c, rows, rows_per_update)[1]
        return Cost(updates=updates, samples=updates and rows_per_update * updates, unit="rows")

    def work(self, config: "BaseConfig", processes: int, share: Mapping[str, int]) -> Work:
        """Return what one process computes at a time: rows of the maximum length."""
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
    """Return the number of updates per epoch and per run, for updates of `update` rows."""
    epoch = -(-rows // update)
    run = config.max_steps if config.max_steps > 0 else ceil(config.num_train_epochs * epoch)
    return epoch, run
