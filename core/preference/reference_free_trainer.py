"""Base class of trainers of preference pairs without a reference: CPO, ORPO and TPO."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

import torch
from datasets import Dataset, IterableDataset
from torch import Tensor
from torch.nn.functional import pad
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.configs.reference_free_config import ReferenceFreeConfig
from core.data.best_fit import Data
from core.data.sft import IGNORED
from core.forward.answers import AnswerTokens
from core.losses.reference_free import (
    AnswerLogps,
    ReferenceFreeLosses,
    negative_log_likelihood,
    reference_free_losses,
)
from core.preference.answer_trainer import Term
from core.preference.collate import ANSWER_MASK, LABELS
from core.preference.trainer import PreferenceTrainer, pair_metrics
from core.trainers.setup import refuse
from core.trainers.uncalled_methods import PREFERENCE_METHODS
from eval.errors import BadValue

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra


class ReferenceFreeTrainer(PreferenceTrainer):
    """Trainer of a loss of pairs and the likelihood of one of their answers.

    The likelihood is the mean negative log-likelihood of the tokens of the whole optimizer step,
    on all processes, as in `SFTTrainer`; TRL averages the means of micro-batches.
    """

    UNCALLED = PREFERENCE_METHODS
    args: ReferenceFreeConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    _likely: ClassVar[str] = "chosen"  # the answer whose likelihood is trained

    def __init__(
        self,
        model: str | PreTrainedModel | None = None,
        args: ReferenceFreeConfig | None = None,
        data_collator: Callable[..., dict[str, Tensor]] | None = None,
        train_dataset: Dataset | IterableDataset | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        model_init: Callable[[], PreTrainedModel] | None = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        preprocess_logits_for_metrics: Callable[..., Tensor] | None = None,
        peft_config: "PeftConfig | None" = None,
        compute_metrics: Callable[..., dict[str, float]] | None = None,
    ):
        name = type(self).__name__
        refuse(
            name,
            model_init=model_init,
            preprocess_logits_for_metrics=preprocess_logits_for_metrics,
            compute_metrics=compute_metrics,
        )
        if model is None:
            raise BadValue(f"{name}(model=None): give a model, or the name of one")
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

    def pair_losses(self, chosen: AnswerLogps, rejected: AnswerLogps) -> ReferenceFreeLosses:
        """Return the loss of each pair, without the likelihood; a method to override."""
        return reference_free_losses(chosen, rejected, self.args.loss, self.args.coefficients)

    def loss_terms(self, tokens: AnswerTokens, inputs: Mapping[str, Tensor]) -> list[Term]:
        """Return the loss of the pairs and the weighted likelihood, and record their metrics."""
        count = len(self.answers)
        masks = inputs.get(ANSWER_MASK, inputs["completion_mask"]).chunk(count)
        logps = tokens.logps.chunk(count)
        chosen, rejected = (AnswerLogps(logps=logps[i], mask=masks[i]) for i in range(2))
        result = self.pair_losses(chosen, rejected)
        self.record_pairs(self.metrics_of(result))
        terms = [Term(result.losses, torch.ones_like(result.losses))]
        return [*terms, self.likelihood(logps, inputs)] if self.learns_likelihood else terms

    def metrics_of(self, result: ReferenceFreeLosses) -> dict[str, Tensor]:
        """Return metrics (B,) of the pairs of a micro-batch, those of the loss among them."""
        row, c = self.args.loss, self.args.coefficients
        own = {name: values(result.gap, c) for name, values in row.metrics.items()}
        return {**pair_metrics(result.rewards, result.logps), **own}

    def likelihood(self, logps: tuple[Tensor, ...], inputs: Mapping[str, Tensor]) -> Term:
        """Return the weighted term of the likelihood, whose mean is recorded as `nll_loss`.

        Args:
            logps: Log-probabilities of the completions of each answer.
            inputs: The batch.
        """
        mask = self.likelihood_mask(inputs)
        losses = negative_log_likelihood(
            AnswerLogps(logps=logps[self.answers.index(self._likely)], mask=mask)
        )
        counts = mask.sum(1).to(losses.dtype)
        rows = self.gather_rows(torch.stack([losses.detach(), counts], 1).double())
        total, tokens = rows.sum(0).tolist()
        self.record({"nll_loss": total / max(tokens, 1.0)}, weight=tokens)
        return Term(self.args.likelihood_weight * losses, counts)

    @property
    def learns_likelihood(self) -> bool:
        """True if a batch has the answer whose likelihood is trained."""
        return self._likely in self.answers

    def likelihood_mask(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return 1 on tokens (B, T) of a batch whose likelihood is trained."""
        parts = inputs["completion_mask"].chunk(len(self.answers))
        return parts[self.answers.index(self._likely)]

    def _get_num_items_in_batch(
        self, batch_samples: list[dict[str, Tensor]], device: torch.device
    ) -> Tensor | int | None:
        """Return the pairs of an optimizer step, and the tokens of the likelihood if there are any.

        They are counted by transformers, on all processes; None if batches have no `labels`.
        """
        pairs = super()._get_num_items_in_batch(batch_samples, device)
        if pairs is None or not self.learns_likelihood:
            return pairs
        labels = [{LABELS: as_labels(self.likelihood_mask(batch))} for batch in batch_samples]
        tokens = super()._get_num_items_in_batch(labels, device)
        return torch.stack([torch.as_tensor(pairs), torch.as_tensor(tokens)])


def as_labels(mask: Tensor) -> Tensor:
    """Return labels (B, 1 + T) of which transformers counts one for each 1 of a mask (B, T)."""
    return pad(torch.where(mask.bool(), 0, IGNORED), (1, 0), value=IGNORED)
