"""Behaviour that all trainers share: train or eval mode, logged metrics, the frozen reference."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack, cast

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import PreTrainedModel, TrainerCallback
from transformers.trainer_utils import EvalLoopOutput, PredictionOutput

from core.configs.base import SELECTIVE, BaseConfig
from core.data.best_fit import Data
from core.explain.phases import PhaseCallback, Phases
from core.forward.checkpoints import keep_attention
from core.shards.reference import SyncReferenceCallback, frozen_copy
from core.shards.sharding import gather_weights, shards_weights, spread_weights, without_weights
from core.trainers.publish import TrainerArguments
from core.trainers.random_state import unchanged_random_state
from core.trainers.resume import ResumableTrainer, load_reference, save_reference


class BaseTrainer(ResumableTrainer):
    """Trainer that averages metrics between logs, and may keep the starting policy as reference."""

    def __init__(
        self,
        *,
        args: BaseConfig,
        callbacks: list[TrainerCallback],
        **rest: Unpack[TrainerArguments],
    ):
        self.phases = Phases()
        self.ref_model: nn.Module | None = None
        self._reference_moves = False
        self._metrics = {"train": defaultdict(list), "eval": defaultdict(list)}
        self._weights: defaultdict[str, list[float]] = defaultdict(list)  # of held-out metrics
        # Sums of each term of the loss and what they are divided by, (B, 2) for one term.
        self._held_out: list[Tensor] = []
        self.batch_weight = 1.0  # of an evaluation batch in the means over several
        if args.data_loading.dispatch_batches is None:
            args.data_loading.dispatch_batches = (
                False  # each process reads a streamed dataset itself
            )
        super().__init__(args=args, callbacks=[*callbacks, PhaseCallback(self.phases)], **rest)
        if SELECTIVE in args.checkpoint_keywords:
            keep_attention(self.policy())
        self.frame = without_weights(self.policy()) if shards_weights(self.accelerator) else None

    @property
    def mode(self) -> str:
        """'train' or 'eval', the mode that the model is in."""
        return "train" if self.policy().training else "eval"

    def policy(self) -> PreTrainedModel:
        """Return the trained model without wrappers of distributed training.

        See `gather_weights`.
        """
        return cast(PreTrainedModel, self.model)

    def reference(self) -> PreTrainedModel:
        """Return the frozen starting policy."""
        return cast(PreTrainedModel, self.ref_model)

    def keep_reference(
        self, *, adapters_off: bool, copied: Callable[[nn.Module], nn.Module] = frozen_copy
    ) -> None:
        """Copy the starting policy as the reference, with new adapters turned off."""
        with gather_weights(
            self.policy(), self.frame
        ) as policy:  # ZeRO-3 may have cut it while loading
            self.ref_model = copied(policy)
        if adapters_off:
            cast(Any, self.ref_model).base_model.disable_adapter_layers()  # Any: of peft
        if self.frame is not None:
            spread_weights(self.ref_model, self.args.device)

    def move_reference(self, share: float, steps: int) -> None:
        """Move the reference towards the policy by a share after every `steps` optimizer steps."""
        self._reference_moves = True
        self.add_callback(SyncReferenceCallback(self.reference(), self.frame, share, steps))

    def evaluate(
        self,
        eval_dataset: Data | dict[str, Data] | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> dict[str, float]:
        """Evaluate as transformers does, without changing the random state of training."""
        with unchanged_random_state(self.args.device):
            return super().evaluate(eval_dataset, ignore_keys, metric_key_prefix)

    def predict(
        self,
        test_dataset: Data,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "test",
    ) -> PredictionOutput:
        """Predict as transformers does, without changing the random state of training."""
        with unchanged_random_state(self.args.device):
            return super().predict(test_dataset, ignore_keys, metric_key_prefix)

    def gather(self, tensor: Tensor) -> Tensor:
        """Gather rows from all processes, in the order of the processes."""
        return cast(Tensor, self.accelerator.gather(tensor))

    def evaluation_loop(
        self,
        dataloader: DataLoader,
        description: str,
        prediction_loss_only: bool | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> EvalLoopOutput:
        """Evaluate as transformers does, with a loss that does not depend on the batch size."""
        self._held_out = []
        output = super().evaluation_loop(
            dataloader, description, prediction_loss_only, ignore_keys, metric_key_prefix
        )
        if self._held_out:
            rows = torch.cat(self._held_out).double()
            finite = rows[rows.isfinite().all(1)]
            counted = finite if self.args.logging_nan_inf_filter and len(finite) else rows
            totals, counts = counted.sum(0).view(-1, 2).unbind(1)
            metrics = cast(dict[str, float], output.metrics)
            metrics[f"{metric_key_prefix}_loss"] = (totals / counts.clamp(min=1)).sum().item()
        return output

    def record(self, metrics: Mapping[str, float], weight: float | None = None) -> None:
        """Add numbers to the next log, which averages them.

        Args:
            metrics: Numbers by name.
            weight: Weight of the numbers in an evaluation; None means `batch_weight`.
        """
        for name, value in metrics.items():
            self._metrics[self.mode][name].append(value)
            if self.mode == "eval":
                self._weights[name].append(self.batch_weight if weight is None else weight)

    def record_total(self, name: str, value: float) -> None:
        """Set a running total, of which the next log shows the last value."""
        self._metrics[self.mode][name] = [value]

    def log(self, logs: dict[str, Any], start_time: float | None = None) -> None:
        """Add the means of what was recorded since the last log; NaN counts as absent."""
        mode = self.mode
        prefix = "eval_" if mode == "eval" else ""
        for name, values in self._metrics[mode].items():
            weights = self._weights[name] if mode == "eval" else []
            logs[prefix + name] = weighted_mean(values, weights or [1.0] * len(values))
        super().log(logs, start_time)
        self._metrics[mode].clear()
        self._weights.clear()

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        if self._reference_moves:
            with gather_weights(self.reference(), self.frame) as reference:
                if self.args.should_save:
                    save_reference(Path(output_dir), reference)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint and self.ref_model is not None:
            load_reference(Path(checkpoint), self.ref_model, self.frame)


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float | None:
    """Return the weighted mean of the values that are not NaN; None if their weights sum to 0."""
    valid = [(x, w) for x, w in zip(values, weights, strict=True) if not math.isnan(x)]
    total = sum(weight for _, weight in valid)
    return sum(value * weight for value, weight in valid) / total if total else None
