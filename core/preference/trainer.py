"""Base class of trainers of preference pairs: data, batches, the loss of a step and metrics."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from core.configs.pair_config import PairConfig
from core.data.best_fit import Data
from core.data.pairs import ANSWERS, REF_COLUMNS, token_columns, tokenize_pairs
from core.forward.answers import AnswerTokens, answer_tokens
from core.losses.preference import WIN_COLUMNS
from core.preference.answer_trainer import AnswerTrainer, Term, check_finite
from core.preference.collate import ANSWER_MASK, LABELS, STEP_ROW, PairCollator


class PreferenceTrainer(AnswerTrainer):
    """Trainer of losses of preference pairs; a subclass says what the terms of a loss are."""

    args: PairConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower

    @abstractmethod
    def loss_terms(self, tokens: AnswerTokens, inputs: Mapping[str, Tensor]) -> list[Term]:
        """Return the terms of the loss of a micro-batch of B pairs, and record their metrics.

        Args:
            tokens: Log-probabilities and statistics of the completions.
            inputs: The batch.
        """

    @property
    def answers(self) -> Sequence[str]:
        """Columns of the answers that are read, of which the first two are the pair."""
        return ANSWERS

    def collator(self) -> PairCollator:
        """Return the collator of rows that `prepared` returns."""
        return PairCollator(
            cast(int, self.tokenizer.pad_token_id), self.args.padding, answers=self.answers
        )

    def prepared(self, dataset: Data) -> Data:
        """Return rows of token ids from a dataset of pairs, see `tokenize_pairs`."""
        return tokenize_pairs(
            dataset,
            self.tokenizer,
            answers=self.answers,
            max_length=self.args.max_length,
            truncation=self.args.kept_tokens,
            workers=self.args.dataset_num_proc,
            shares=self.args.shares,
        )

    def batch_terms(
        self, model: nn.Module, inputs: dict[str, Tensor]
    ) -> tuple[list[Term], Tensor | None]:
        """Return the terms of the loss of a micro-batch, see `AnswerTrainer`."""
        with self.phases("forward"):
            tokens = answer_tokens(
                model,
                tokens_of(inputs),
                alignment=self.args.alignment,
                with_router=bool(self.router_weight),
            )
        check_finite(tokens.logps.sum(-1), inputs, self.tokenizer, "policy")
        terms = self.loss_terms(tokens, inputs)
        self.record_tokens(tokens, inputs)
        return terms, tokens.router_loss

    @torch.no_grad()
    def record_pairs(self, columns: Mapping[str, Tensor]) -> None:
        """Record the mean of each column (B,) over the pairs of all processes."""
        rows = self.gather_rows(torch.stack([*columns.values()], 1).double())
        means = dict(zip(columns, rows.mean(0).tolist(), strict=True))
        self.record(means, weight=len(rows))

    @torch.no_grad()
    def record_tokens(self, tokens: AnswerTokens, inputs: Mapping[str, Tensor]) -> None:
        """Record entropy, accuracy and mean logits over the answers' tokens of all processes."""
        mask, count = inputs.get(ANSWER_MASK, inputs["completion_mask"]), len(self.answers)
        right, logits, parts = (
            [part.sum() for part in (values * mask).chunk(count)]
            for values in (tokens.right, tokens.mean_logits, mask)
        )
        seen = inputs["completion_mask"].sum() + inputs["prompt_mask"].sum()
        entropy = (tokens.entropy * mask).sum()
        sums = [entropy, mask.sum(), right[0], *logits[:2], *parts[:2], seen]
        totals = cast(
            Tensor, self.accelerator.reduce(torch.stack(sums).double(), reduction="sum")
        ).tolist()
        every, chosen, rejected = (max(total, 1.0) for total in (totals[1], *totals[5:7]))
        self.record({"entropy": totals[0] / every}, weight=every)
        accuracy = {"mean_token_accuracy": totals[2] / chosen, "logits/chosen": totals[3] / chosen}
        self.record(accuracy, weight=chosen)
        self.record({"logits/rejected": totals[4] / rejected}, weight=rejected)
        self.count_tokens(totals[7])

    def _set_signature_columns_if_needed(self) -> None:
        self._signature_columns = [*token_columns(self.answers), *REF_COLUMNS, *WIN_COLUMNS]


def pair_metrics(rewards: Sequence[Tensor], logps: Sequence[Tensor]) -> dict[str, Tensor]:
    """Return metrics (B,) from rewards and log-probabilities (B,) of chosen and rejected."""
    return {
        "rewards/chosen": rewards[0],
        "rewards/rejected": rewards[1],
        "rewards/accuracies": (rewards[0] > rewards[1]).to(rewards[0].dtype),
        "rewards/margins": rewards[0] - rewards[1],
        "logps/chosen": logps[0],
        "logps/rejected": logps[1],
    }


def tokens_of(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the columns of prompts and completions of a batch."""
    skipped = {LABELS, ANSWER_MASK, STEP_ROW, *REF_COLUMNS, *WIN_COLUMNS}
    return {name: rows for name, rows in batch.items() if name not in skipped}
