"""Callback that prints the batch plan before a training begins."""

from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import has_length

from core.explain.batch_plan import batch_plan
from eval.terminal import say


class BatchPlanCallback(TrainerCallback):
    """Callback that prints the batch plan on the main process before step 0."""

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        train_dataloader: Any = None,  # Any: a DataLoader over a dataset, perhaps with a length
        **_: object,
    ) -> None:
        """Print the plan to standard error, unless the dataset has no length."""
        if state.is_world_process_zero and has_length(train_dataloader.dataset):
            arguments: Any = args  # Any: a GRPOConfig, which the caller's signature hides
            plan = batch_plan(arguments, len(train_dataloader.dataset), args.world_size)
            say(str(plan))
