"""Base class of trainers of labelled answers: data, batches, the shift of rewards and metrics."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from core.configs.unpaired_config import UnpairedConfig
from core.data.best_fit import Data
from core.data.pairs import ANSWERS
from core.data.unpaired import MISMATCHED, TOKENS, tokenize_unpaired
from core.forward.answers import AnswerTokens, answer_tokens
from core.forward.batches import Batch
from core.losses.unpaired import UNPAIRED, unpaired_losses
from core.preference.answer_trainer import Term, check_finite
from core.preference.reference_trainer import ReferenceTrainer
from core.preference.unpaired_collate import (
    LABEL,
    UNPAIRED_REFS,
    WEIGHT,
    UnpairedCollator,
    answers_of,
)


class UnpairedTrainer(ReferenceTrainer):
    """Trainer of losses of single answers, labelled desirable or not.

    A loss compares the reward of an answer, beta log(pi / pi_ref), with a shift that other answers
    make; a subclass says how.
    """

    args: UnpairedConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    _shift_metric: ClassVar[str]  # name of the logged `statistic`

    @property
    @abstractmethod
    def statistic(self) -> float:
        """The number that other answers make and that the shift is made of."""

    @property
    def shift(self) -> float:
        """The reward that counts as neither gain nor loss, here the statistic."""
        return self.statistic

    @abstractmethod
    def take_sum(self, total: float, count: float) -> None:
        """Set the statistic from the sum of `count` observed numbers."""

    def weights(self, inputs: Mapping[str, Tensor]) -> Tensor | None:
        """Return the factors (B,) of the losses of a micro-batch; None if all are 1."""
        return inputs.get(WEIGHT)

    @property
    def reference_columns(self) -> tuple[str, ...]:
        """Names of the columns of `reference_sums`: of labelled, then of mismatched answers."""
        return UNPAIRED_REFS if self.args.needs_mismatches else UNPAIRED_REFS[:1]

    def collator(self) -> UnpairedCollator:
        """Return the collator of labelled answers."""
        pad = cast(int, self.tokenizer.pad_token_id)
        return UnpairedCollator(pad, self.args.max_length, self.args.padding)

    def prepared(self, dataset: Data) -> Data:
        """Return rows of token ids from labelled answers or pairs, see `tokenize_unpaired`."""
        return tokenize_unpaired(
            dataset,
            self.tokenizer,
            max_length=self.args.max_length,
            block=self.args.block,
            seed=self.args.seed,
            with_text=self.keeps_text,
            workers=self.args.dataset_num_proc,
        )

    @property
    def keeps_text(self) -> bool:
        """True if prepared rows keep the text of their prompt."""
        return False

    @torch.no_grad()
    def reference_sums(self, batch: Mapping[str, Tensor]) -> list[Tensor]:
        """Return the reference's log-probabilities (B,) of labelled and mismatched answers."""
        parts = answers_of(batch), answers_of(batch, mismatched=True)
        rows = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        return list(self.reference_logps(rows).sum(-1).chunk(len(self.reference_columns)))

    def batch_terms(
        self, model: nn.Module, inputs: dict[str, Tensor]
    ) -> tuple[list[Term], Tensor | None]:
        """Return the terms of the loss of a micro-batch, see `AnswerTrainer`."""
        answers, c = answers_of(inputs), self.args
        with self.phases("forward"):
            tokens = answer_tokens(model, answers, with_router=bool(self.router_weight))
        with self.phases("reference"):
            references = self.references_of(inputs)
        rewards = c.beta * self.log_ratios(tokens.logps.sum(-1), references[0], answers)
        is_observed = self.mode == "train" or self._observes_evaluations
        if UNPAIRED[c.loss_name].has_shift and is_observed and not self._is_ahead:
            numbers = rewards.detach()
            if c.needs_mismatches:
                numbers = self.observations(model, inputs, references)
            self.observe([numbers])
        with self.phases("forward"):
            losses = unpaired_losses(
                c.loss_name,
                rewards,
                inputs[LABEL],
                shift=self.shift,
                weights=self.weights(inputs),
            )
        self.record({self._shift_metric: self.statistic}, weight=len(losses))
        self.record_answers(rewards, tokens, inputs)
        return [Term(losses, torch.ones_like(losses))], tokens.router_loss

    def log_ratios(self, logps: Tensor, ref_logps: Tensor, answers: Batch) -> Tensor:
        """Return log(pi / pi_ref) (B,) of answers.

        Raises:
            BadValue: one is not finite; the message has its prompt and completion.
        """
        check_finite(logps, answers, self.tokenizer, "policy")
        check_finite(ref_logps, answers, self.tokenizer, "reference")
        return logps - ref_logps.to(logps)

    def observations(
        self, model: nn.Module, inputs: Mapping[str, Tensor], references: list[Tensor]
    ) -> Tensor:
        """Return what the statistic is of: rewards (B,), or log-ratios (B,) of mismatched answers.

        Rewards are those of the answers of the micro-batch.
        """
        answers = answers_of(inputs, mismatched=self.args.needs_mismatches)
        logps = self.policy_tokens(model, answers).logps.sum(-1)
        log_ratios = self.log_ratios(logps, references[-1], answers)
        return log_ratios if self.args.needs_mismatches else self.args.beta * log_ratios

    def observe(self, numbers: Iterable[Tensor]) -> None:
        """Set the statistic from observed numbers of micro-batches on all processes."""
        values = torch.cat(list(numbers)).double()
        sums = torch.stack([values.sum(), torch.ones_like(values).sum()])
        total, count = cast(Tensor, self.accelerator.reduce(sums, reduction="sum")).tolist()
        self.take_sum(total, count)

    @torch.no_grad()
    def record_answers(
        self, rewards: Tensor, tokens: AnswerTokens, inputs: Mapping[str, Tensor]
    ) -> None:
        """Record rewards, log-probabilities and token statistics over all processes, by label."""
        answers = answers_of(inputs)
        lengths = answers["completion_mask"].sum(1)
        columns = [inputs[LABEL], rewards, tokens.logps.sum(1), tokens.mean_logits.sum(1)]
        columns += [tokens.entropy.sum(1), lengths, lengths + answers["prompt_mask"].sum(1)]
        rows = self.gather_rows(torch.stack([column.double() for column in columns], 1))
        labels, rewards, logps, logits, entropy, lengths, token_counts = rows.unbind(1)
        self.count_tokens(token_counts.sum().item())
        weight = lengths.sum().item()
        self.record({"entropy": entropy.sum().item() / weight}, weight=weight)
        means: list[float] = []
        for name, side in zip(ANSWERS, (labels == 1, labels == 0), strict=True):
            if not side.any():
                continue
            means.append(rewards[side].mean().item())
            metrics = {f"rewards/{name}": means[-1], f"logps/{name}": logps[side].mean().item()}
            self.record(metrics, weight=side.sum().item())
            weight = lengths[side].sum().item()
            self.record({f"logits/{name}": logits[side].sum().item() / weight}, weight=weight)
        if len(means) == len(ANSWERS):
            self.record({"rewards/margins": means[0] - means[1]}, weight=len(rows))

    def _set_signature_columns_if_needed(self) -> None:
        self._signature_columns = [*TOKENS, MISMATCHED, WEIGHT, *UNPAIRED_REFS]
