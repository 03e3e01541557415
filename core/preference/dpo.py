"""Direct preference optimisation, arXiv 2305.18290, and the losses that TRL trains beside it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from core.configs.dpo import DPOConfig
from core.data.pairs import REF_COLUMNS
from core.forward.answers import AnswerTokens
from core.losses.pair_scores import Step
from core.losses.paired_answers import Answers, Pairs, sums_of
from core.losses.preference import WIN_COLUMNS, PreferenceLosses, preference_losses, scores_of
from core.preference.answer_trainer import Term, check_finite
from core.preference.collate import LABELS, STEP_ROW
from core.preference.reference_trainer import ReferenceTrainer
from core.preference.trainer import PreferenceTrainer, pair_metrics, tokens_of
from core.trainers.publish import PAPERS


class DPOTrainer(ReferenceTrainer, PreferenceTrainer):
    """Trainer of the losses of `PREFERENCES`, with the interface of TRL's `DPOTrainer`."""

    args: DPOConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    _config = DPOConfig
    _step: Step | None = None  # what losses of several pairs read beside the micro-batch
    _observed: Tensor  # `Scores.rows` of all pairs of an optimizer step or of an evaluation
    _name = "DPO"
    _tag_names = ("dpo",)
    _paper = PAPERS["DPO"]

    def pair_losses(self, pairs: Pairs) -> PreferenceLosses:
        """Return the losses that `loss_type` names; a method to override."""
        return preference_losses(pairs, self.args, self._step)

    def loss_terms(self, tokens: AnswerTokens, inputs: Mapping[str, Tensor]) -> list[Term]:
        """Return the loss of the pairs, and record their rewards and log-probabilities."""
        with self.phases("reference"):
            references = [sums.to(tokens.logps) for sums in self.references_of(inputs)]
        check_finite(torch.cat(references), inputs, self.tokenizer, "reference")
        first = int(inputs[STEP_ROW]) if STEP_ROW in inputs else None
        self._step = Step(self._observed, first) if self._is_ahead else None
        with self.phases("forward"):
            result = self.pair_losses(as_pairs(tokens, inputs, references))
        sides = (result.scores.chosen, result.scores.rejected)
        rewards = [self.args.beta * side.ratio for side in sides]
        metrics = pair_metrics(rewards, [side.logp for side in sides])
        if result.log_weights is not None:
            metrics["weights/log_mean"] = result.log_weights
        self.record_pairs(metrics)
        return [Term(result.losses, torch.ones_like(result.losses))]

    @property
    def reference_columns(self) -> tuple[str, ...]:
        """Names of the columns of `reference_sums`: of chosen, then of rejected answers."""
        return REF_COLUMNS

    def observations(
        self, model: nn.Module, inputs: Mapping[str, Tensor], references: list[Tensor]
    ) -> Tensor:
        """Return `Scores.rows` (B, 10) of the pairs of a micro-batch."""
        tokens = self.policy_tokens(model, tokens_of(inputs))
        references = [sums.to(tokens.logps) for sums in references]
        return scores_of(as_pairs(tokens, inputs, references), self.args).rows

    def observe(self, numbers: Iterable[Tensor]) -> None:
        """Keep the rows of all pairs on all processes, in the order of processes in training."""
        if self.mode == "eval":
            self._observed = torch.cat([self.gather_rows(rows) for rows in numbers])
        else:
            self._observed = cast(Tensor, self.accelerator.gather(torch.cat([*numbers])))

    def get_batch_samples(
        self, epoch_iterator: Iterator[Any], num_batches: int, device: torch.device
    ) -> tuple[list[Any], Tensor | int | None]:  # Any: transformers' own
        """Return the micro-batches of an optimizer step, which know their place in it."""
        batches, count = super().get_batch_samples(epoch_iterator, num_batches, device)
        if self._is_ahead:
            sizes = torch.tensor([0, *(len(batch[LABELS]) for batch in batches)])
            firsts = self.accelerator.process_index * sizes.sum() + sizes.cumsum(0)
            placed = zip(batches, firsts[:-1], strict=True)
            batches = [{**batch, STEP_ROW: first} for batch, first in placed]
        return batches, count

    @torch.no_grad()
    def reference_sums(self, batch: Mapping[str, Tensor]) -> list[Tensor]:
        """Return the reference's log-probabilities (B,) of chosen and rejected answers."""
        logps = self.reference_logps(tokens_of(batch))
        halves = zip(logps.chunk(2), batch["completion_mask"].chunk(2), strict=True)
        answers = [Answers(logps=x, ref_logps=x, mask=mask) for x, mask in halves]
        return sums_of(Pairs(chosen=answers[0], rejected=answers[1]), self.args.ld_alpha)[1]


def as_pairs(tokens: AnswerTokens, batch: Mapping[str, Tensor], references: list[Tensor]) -> Pairs:
    """Return the pairs of a batch whose first half of rows are the chosen answers."""
    columns = (tokens.logps, batch["completion_mask"], tokens.alignment)
    halves = zip(*(column.chunk(2) for column in columns), strict=True)
    win_rates = (batch.get(name) for name in WIN_COLUMNS)
    chosen, rejected = (
        Answers(logps=logps, ref_logps=reference, mask=mask, alignment=aligned, win_rates=wins)
        for (logps, mask, aligned), reference, wins in zip(
            halves, references, win_rates, strict=True
        )
    )
    return Pairs(chosen=chosen, rejected=rejected)
