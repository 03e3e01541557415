"""Base class of trainers of preference pairs that compare the policy with a frozen reference."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import torch
from datasets import Dataset, IterableDataset, concatenate_datasets
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.configs.dpo import DPOConfig
from core.data.best_fit import Data
from core.data.pairs import REF_COLUMNS
from core.data.streams import is_stream
from core.forward.answers import AnswerTokens, answer_tokens
from core.forward.logps import evaluating
from core.losses.preference import WIN_COLUMNS, Answers, Pairs, PreferenceLosses, sums_of
from core.preference.trainer import PreferenceTrainer, Term, pair_metrics, tokens_of
from core.shards.adapters import refuse_adapters
from core.shards.sharding import gather_weights, spread_weights
from core.trainers.setup import refuse, without_dropout
from eval.errors import BadValue

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra


class ReferencedTrainer(PreferenceTrainer):
    """Trainer of pairs with a reference; a subclass says what the loss of a pair is."""

    args: DPOConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    _config = DPOConfig

    def __init__(
        self,
        model: str | PreTrainedModel,
        ref_model: PreTrainedModel | None = None,
        args: DPOConfig | None = None,
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

    @abstractmethod
    def pair_losses(self, pairs: Pairs) -> PreferenceLosses:
        """Return the loss of each pair of a micro-batch; a method to override."""

    def loss_terms(self, tokens: AnswerTokens, inputs: Mapping[str, Tensor]) -> list[Term]:
        """Return the loss of the pairs, and record their rewards and log-probabilities."""
        with self.phases("reference"):
            if all(name in inputs for name in REF_COLUMNS):
                references = [inputs[name].to(tokens.logps.dtype) for name in REF_COLUMNS]
            else:
                references = self.reference_sums(inputs)
        with self.phases("forward"):
            result = self.pair_losses(as_pairs(tokens, inputs, references))
        sides = (result.scores.chosen, result.scores.rejected)
        rewards = [self.args.beta * side.ratio for side in sides]
        self.record_pairs(pair_metrics(rewards, [side.logp for side in sides]))
        return [Term(result.losses, torch.ones_like(result.losses))]

    def take_reference(self, ref_model: PreTrainedModel | None, *, has_new_adapters: bool) -> None:
        """Set up the frozen reference: the given model, else the policy as it starts.

        New adapters are off in it. Log-probabilities that are computed beforehand are added to the
        datasets.
        """
        if ref_model is None:
            self.keep_reference(adapters_off=has_new_adapters)
        else:
            if self.args.disable_dropout:
                without_dropout(ref_model)
            frozen = cast(nn.Module, ref_model.eval().requires_grad_(False))
            self.ref_model = frozen.to(self.args.device)
            if self.frame is not None:
                spread_weights(self.ref_model, self.args.device)
        if self.args.sync_ref_model:
            refuse_adapters(self.policy(), "sync_ref_model=True")
            self.move_reference()
        if self.args.precompute_ref_log_probs:
            self.train_dataset = self.with_reference(self.train_dataset)
            datasets = self.eval_dataset
            self.eval_dataset = (
                {name: self.with_reference(data) for name, data in datasets.items()}
                if isinstance(datasets, dict)
                else datasets and self.with_reference(datasets)
            )

    def with_reference(self, dataset: Data) -> Data:
        """Return a dataset with the reference's log-probabilities of both answers.

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
            self.gather_pairs(torch.stack(self.reference_sums(batch), dim=1))
            for batch in self.accelerator.prepare(loader)
        ]
        sums = torch.cat(columns).cpu()
        by_name = {name: sums[:, i].tolist() for i, name in enumerate(REF_COLUMNS)}
        return concatenate_datasets([dataset, Dataset.from_dict(by_name)], axis=1)

    @torch.no_grad()
    def reference_sums(self, batch: Mapping[str, Tensor]) -> list[Tensor]:
        """Return the reference's log-probabilities (B,) of chosen and rejected answers."""
        whole = gather_weights(self.reference(), self.frame)
        with self.accelerator.autocast(), whole as reference, evaluating(reference):
            logps = answer_tokens(reference, tokens_of(batch)).logps
        masks = batch["completion_mask"]
        halves = zip(logps.chunk(2), masks.chunk(2), strict=True)
        answers = [Answers(logps=x, ref_logps=x, mask=mask) for x, mask in halves]
        return sums_of(Pairs(chosen=answers[0], rejected=answers[1]), self.args.ld_alpha)[1]


def check_reference(ref_model: PreTrainedModel | None, model: str | PreTrainedModel) -> None:
    """Raise `BadValue` if the reference is the model that is trained."""
    if ref_model is not None and ref_model is model:
        raise BadValue(
            "`model` and `ref_model` cannot be the same object: leave ref_model out, the "
            "reference is a copy then"
        )


def as_pairs(tokens: AnswerTokens, batch: Mapping[str, Tensor], references: list[Tensor]) -> Pairs:
    """Return the pairs of a batch whose first half of rows are the chosen answers."""
    columns = (tokens.logps, batch["completion_mask"], tokens.log_sum_squares)
    halves = zip(*(column.chunk(2) for column in columns), strict=True)
    win_rates = (batch.get(name) for name in WIN_COLUMNS)
    chosen, rejected = (
        Answers(
            logps=logps, ref_logps=reference, mask=mask, log_sum_squares=squares, win_rates=wins
        )
        for (logps, mask, squares), reference, wins in zip(
            halves, references, win_rates, strict=True
        )
    )
    return Pairs(chosen=chosen, rejected=rejected)
