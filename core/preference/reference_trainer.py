"""Base class of trainers whose losses compare a policy with a frozen reference."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

import torch
from datasets import Dataset, IterableDataset, concatenate_datasets
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback
from transformers.trainer_utils import EvalLoopOutput

from core.configs.reference_config import ReferenceConfig
from core.data.best_fit import Data
from core.data.streams import is_stream
from core.forward.answers import AnswerTokens, answer_tokens
from core.forward.batches import Batch
from core.forward.logps import evaluating
from core.preference.answer_trainer import AnswerTrainer
from core.shards.adapters import refuse_adapters
from core.shards.reference import frozen_copy
from core.shards.sharding import gather_weights, spread_weights
from core.trainers.base import BaseTrainer
from core.trainers.setup import refuse, without_dropout
from eval.errors import BadValue

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra


class ReferenceTrainer(AnswerTrainer):
    """Trainer of losses that compare a policy with a frozen reference on given answers.

    With `batch_scope="step"` the micro-batches of an optimizer step are read before they are
    trained on, and so is a held-out set before it is evaluated.
    """

    args: ReferenceConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    _observes_evaluations: ClassVar[bool] = True  # whether held-out rows are read first
    _is_ahead = False  # whether all rows of a step or of an evaluation have been observed

    def __init__(
        self,
        model: str | PreTrainedModel,
        ref_model: PreTrainedModel | None = None,
        args: ReferenceConfig | None = None,
        data_collator: Callable[..., dict[str, Tensor]] | None = None,
        train_dataset: Dataset | IterableDataset | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        compute_metrics: Callable[..., dict[str, float]] | None = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        quantization_config: object = None,
        peft_config: "PeftConfig | None" = None,
    ):
        name = type(self).__name__
        refuse(name, quantization_config=quantization_config, compute_metrics=compute_metrics)
        check_reference(ref_model, model)
        super().__init__(
            model,
            args,
            data_collator=data_collator,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=processing_class,
            callbacks=callbacks,
            optimizers=optimizers,
            peft_config=peft_config,
        )
        self.take_reference(ref_model, has_new_adapters=peft_config is not None)

    @property
    @abstractmethod
    def reference_columns(self) -> tuple[str, ...]:
        """Names of the columns of `reference_sums`."""

    @abstractmethod
    def reference_sums(self, batch: Mapping[str, Tensor]) -> list[Tensor]:
        """Return the reference's log-probabilities (B,) of the answers of B rows, by column."""

    @abstractmethod
    def observations(
        self, model: nn.Module, inputs: Mapping[str, Tensor], references: list[Tensor]
    ) -> Tensor:
        """Return what the losses of other rows read of a micro-batch, without gradient.

        Args:
            model: The policy.
            inputs: A micro-batch of B rows.
            references: Log-probabilities of the reference, by `reference_columns`.

        Returns:
            Numbers of shape (B,) or (B, K).
        """

    @abstractmethod
    def observe(self, numbers: Iterable[Tensor]) -> None:
        """Take the observed numbers of micro-batches on all processes."""

    def take_reference(self, ref_model: PreTrainedModel | None, *, has_new_adapters: bool) -> None:
        """Set up the frozen reference: the given model, else the policy as it starts.

        New adapters are off in it. Log-probabilities that are computed beforehand are added to the
        datasets.
        """
        set_reference(
            self,
            ref_model,
            adapters_off=has_new_adapters,
            disable_dropout=self.args.disable_dropout,
        )
        if self.args.sync_ref_model:
            refuse_adapters(self.policy(), "sync_ref_model=True")
            share, steps = self.args.ref_model_mixup_alpha, self.args.ref_model_sync_steps
            self.move_reference(share, steps)
        if self.args.precompute_ref_log_probs:
            self.train_dataset = self.with_reference(self.train_dataset)
            datasets = self.eval_dataset
            self.eval_dataset = (
                {name: self.with_reference(data) for name, data in datasets.items()}
                if isinstance(datasets, dict)
                else datasets and self.with_reference(datasets)
            )

    def with_reference(self, dataset: Data) -> Data:
        """Return a dataset with the reference's log-probabilities of the answers.

        Raises:
            BadValue: the dataset has no length.
        """
        if is_stream(dataset):
            raise BadValue(
                "precompute_ref_log_probs=True with an IterableDataset, which cannot be read "
                "beforehand: leave it out"
            )
        size = self.args.precompute_ref_batch_size or self.args.per_device_train_batch_size
        loader = DataLoader(dataset, batch_size=size, collate_fn=cast(Any, self.data_collator))
        columns = [
            self.gather_rows(torch.stack(self.reference_sums(batch), dim=1))
            for batch in self.accelerator.prepare(loader)
        ]
        sums = torch.cat(columns).cpu()
        by_name = {name: sums[:, i].tolist() for i, name in enumerate(self.reference_columns)}
        return concatenate_datasets([dataset, Dataset.from_dict(by_name)], axis=1)

    @torch.no_grad()
    def policy_tokens(self, model: nn.Module, answers: Batch) -> AnswerTokens:
        """Return the tokens of answers under the policy, without gradient or dropout."""
        with self.phases("forward"), self.accelerator.autocast(), evaluating(model):
            return answer_tokens(model, answers)

    @torch.no_grad()
    def reference_logps(self, batch: Batch) -> Tensor:
        """Return the reference's log-probabilities (B, T) of the tokens of B answers."""
        whole = gather_weights(self.reference(), self.frame)
        with self.accelerator.autocast(), whole as reference, evaluating(reference):
            return answer_tokens(reference, batch).logps

    def references_of(self, inputs: Mapping[str, Tensor]) -> list[Tensor]:
        """Return the columns of the reference that were computed beforehand, or compute them."""
        if all(name in inputs for name in self.reference_columns):
            return [inputs[name] for name in self.reference_columns]
        return self.reference_sums(inputs)

    def observations_with_references(
        self, batches: Iterable[dict[str, Tensor]]
    ) -> Iterator[tuple[dict[str, Tensor], Tensor]]:
        """Yield micro-batches with the columns of the reference, and the observed numbers."""
        for batch in batches:
            inputs = self._prepare_inputs(batch)
            references = self.references_of(inputs)
            columns = dict(zip(self.reference_columns, references, strict=True))
            numbers = self.observations(cast(nn.Module, self.model_wrapped), inputs, references)
            yield {**inputs, **columns}, numbers

    def get_batch_samples(
        self, epoch_iterator: Iterator[Any], num_batches: int, device: torch.device
    ) -> tuple[list[Any], Tensor | int | None]:  # Any: transformers' own
        """Return the micro-batches of an optimizer step; observe several first for its scope."""
        batches, count = super().get_batch_samples(epoch_iterator, num_batches, device)
        parts = len(batches) * self.accelerator.num_processes
        self._is_ahead = self.args.reads_steps and parts > 1
        if self._is_ahead:
            observations = list(self.observations_with_references(batches))
            self.observe(numbers for _, numbers in observations)
            batches = [batch for batch, _ in observations]
        return batches, count

    def evaluation_loop(
        self,
        dataloader: DataLoader,
        description: str,
        prediction_loss_only: bool | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> EvalLoopOutput:
        """Evaluate; with the scope "step", losses read all held-out rows."""
        self._is_ahead = self.args.reads_steps and self._observes_evaluations
        if self._is_ahead:
            self.policy().eval()
            self.observe(numbers for _, numbers in self.observations_with_references(dataloader))
        return super().evaluation_loop(
            dataloader, description, prediction_loss_only, ignore_keys, metric_key_prefix
        )


def set_reference(
    trainer: BaseTrainer,
    ref_model: PreTrainedModel | None,
    *,
    adapters_off: bool,
    disable_dropout: bool,
) -> None:
    """Freeze a model as the reference of a trainer; None copies the policy without new adapters."""
    if ref_model is None:
        trainer.keep_reference(adapters_off=adapters_off)
        return
    if disable_dropout:
        without_dropout(ref_model)
    if trainer.frame is not None:
        with gather_weights(ref_model, trainer.frame) as whole:  # ZeRO-3 may have cut it, too
            trainer.ref_model = frozen_copy(whole)
        spread_weights(trainer.ref_model, trainer.args.device)
        return
    frozen = cast(nn.Module, ref_model.eval().requires_grad_(False))
    trainer.ref_model = frozen.to(trainer.args.device)


def check_reference(ref_model: PreTrainedModel | None, model: str | PreTrainedModel) -> None:
    """Raise `BadValue` if the reference is the model that is trained, or no model."""
    if not isinstance(ref_model, nn.Module | None):
        raise BadValue(
            f"ref_model={ref_model!r:.60}: expected a model: load it, or leave it out, the "
            "reference is a copy then"
        )
    if ref_model is not None and ref_model is model:
        raise BadValue(
            "`model` and `ref_model` cannot be the same object: leave ref_model out, the "
            "reference is a copy then"
        )
