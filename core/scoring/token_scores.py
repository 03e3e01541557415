"""Base class of trainers of scores of tokens of solutions, such as the ends of steps."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from core.data.conversations import Row
from core.data.labelled_steps import ENCODED
from core.data.sft import IGNORED
from core.forward.head_scores import token_scores
from core.preference.answer_trainer import Term
from core.preference.collate import LABELS
from core.scoring.collate import StepCollator
from core.scoring.trainer import ScoringTrainer

# Returns `token_input_ids` and `token_labels` of a row at a place of its dataset.
Encoder: TypeAlias = Callable[[Row, int], Mapping[str, Sequence[int]]]


class TokenScoringTrainer(ScoringTrainer):
    """Trainer of scores of labelled tokens.

    The loss is a mean over the labelled tokens of the whole optimizer step, on all processes.
    """

    @classmethod
    @abstractmethod
    def encoder(
        cls,
        args: Any,  # Any: the config of the trainer
        tokenizer: PreTrainedTokenizerBase,
        *,
        all_labels: bool = True,
    ) -> Encoder:
        """Return the function that encodes rows, with all labels or those that are trained on."""

    @abstractmethod
    def token_losses(
        self, scores: Tensor, labels: Tensor, inputs: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of each labelled token, and whether its label is predicted, both (M,).

        Args:
            scores: The scores (M, L) of the tokens.
            labels: Their labels (M,).
            inputs: The micro-batch.
        """

    def collator(self) -> StepCollator:
        """Return the collator of rows that `prepared` returns."""
        return StepCollator(cast(int, self.tokenizer.pad_token_id))

    def scores(self, model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return the logits (M, L) of the labels at the M labelled tokens."""
        labels, mask = inputs[LABELS], inputs["attention_mask"]
        logits = token_scores(model, inputs["input_ids"], mask)
        return logits[labels[mask.bool()] != IGNORED]

    def score_rows(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return the row of each labelled token."""
        return (inputs[LABELS] != IGNORED).nonzero()[:, 0]

    def loss_terms(self, scores: Tensor, inputs: Mapping[str, Tensor]) -> list[Term]:
        """Return the losses of the tokens, summed in each row, and record their accuracy."""
        labels, is_labelled = inputs[LABELS], inputs[LABELS] != IGNORED
        losses, hits = self.token_losses(scores, labels[is_labelled], inputs)
        sums = losses.new_zeros(2, len(labels))
        columns = torch.stack([losses, hits.to(losses.dtype)])
        of_rows, right = sums.index_add(1, self.score_rows(inputs), columns)
        counts = is_labelled.sum(1)
        found, tokens = self.gathered([right, counts]).sum(0).tolist()
        self.record({"accuracy": found / max(tokens, 1.0)}, weight=tokens)
        return [Term(of_rows, counts)]

    def _set_signature_columns_if_needed(self) -> None:
        self._signature_columns = [*ENCODED]
