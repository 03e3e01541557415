"""Base class of trainers of two completions of each prompt, sampled and judged while training."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import torch
from accelerate.utils import set_seed
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.collect.generation import Generated
from core.collect.metrics import LossSums, Metrics, reward_metrics, sum_and_count
from core.collect.reward_calls import RewardFunction
from core.collect.reward_sources import RewardSource, Tokenizers, reward_functions
from core.data.best_fit import Data
from core.forward.batches import PROMPT_KEYS, Batch, trained_mask
from core.forward.logps import frozen_logps, token_logps
from core.losses.advantages import Advantages, group_spread, weighted_sum
from core.losses.estimators import Scored
from core.losses.paired_answers import Answers
from core.preference.answer_trainer import check_decoder, check_finite
from core.preference.online_config import OnlineDPOConfig
from core.preference.pair_rewards import MissingEnd, has_judge, reward_sources
from core.preference.reference_trainer import check_reference, set_reference
from core.rollout.stops import end_tokens
from core.shards.adapters import refuse_adapters
from core.shards.sharding import gather_weights
from core.trainers.grpo import policy_and_tokenizer, rollout_datasets
from core.trainers.on_policy import OnPolicyTrainer
from core.trainers.prompts import Rows
from core.trainers.setup import check_launch, refuse, resolve_settings

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra

REFERENCE = "ref_per_token_logps"


class OnlineTrainer(OnPolicyTrainer):
    """Trainer of pairs of completions, compared by rewards or by a judge.

    A subclass says how completions are sampled (`generate`), how rewards become preferences
    (`half_margin`), and what the loss is (`losses`). Rows 2i and 2i + 1 of a rollout are a pair.
    """

    args: OnlineDPOConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    settings: type[OnlineDPOConfig] = OnlineDPOConfig
    rows_together = 2
    rollout_func = None

    def __init__(
        self,
        model: str | PreTrainedModel,
        ref_model: PreTrainedModel | None = None,
        reward_funcs: RewardSource | list[RewardSource] | None = None,
        args: OnlineDPOConfig | None = None,
        data_collator: Callable[..., object] | None = None,
        train_dataset: Data | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        reward_processing_classes: Tokenizers = None,
        peft_config: "PeftConfig | None" = None,
        compute_metrics: Callable[..., dict[str, float]] | None = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        preprocess_logits_for_metrics: Callable[..., Tensor] | None = None,
        *,
        judge: Callable[..., Sequence[float]] | None = None,
    ):
        refuse(
            type(self).__name__,
            data_collator=data_collator,
            compute_metrics=compute_metrics,
            preprocess_logits_for_metrics=preprocess_logits_for_metrics,
        )
        check_reference(ref_model, model)
        args = resolve_settings(args, self.settings, model, self._name)
        sources = reward_sources(reward_funcs, judge, args)
        self.rewards = reward_functions(sources, reward_processing_classes, args)
        self.scored_by, self.is_judged = len(self.rewards), has_judge(self.rewards, args)
        self.has_verdicts = not self.is_judged
        self.reward_weights = torch.tensor(args.reward_weights or [1.0] * self.scored_by)
        datasets = rollout_datasets(cast(Data, train_dataset), eval_dataset, args)
        set_seed(args.seed)
        policy, self.tokenizer = policy_and_tokenizer(model, processing_class, peft_config, args)
        check_decoder(policy)
        self.eos_token_ids = end_tokens(policy, self.tokenizer)
        self.penalise_missing_ends(args.missing_eos_penalty)
        super().__init__(
            model=policy,
            args=args,
            processing_class=self.tokenizer,
            callbacks=callbacks,
            optimizers=optimizers,
            **datasets,
        )
        self.prepare_rollouts(ref_model, has_new_adapters=peft_config is not None)
        set_seed(args.seed, device_specific=True)

    def prepare_rollouts(
        self, ref_model: PreTrainedModel | None, *, has_new_adapters: bool
    ) -> None:
        """Check the launch, and set up the reference and the engine.

        Raises:
            BadValue: see `check_launch`, `refuse_adapters` and `prepare_engine`.
            EngineError: see `prepare_engine`.
        """
        check_launch(self)
        dropout = self.args.disable_dropout
        set_reference(self, ref_model, adapters_off=has_new_adapters, disable_dropout=dropout)
        if self.args.sync_ref_model:
            refuse_adapters(self.policy(), "sync_ref_model=True")
            share, steps = self.args.ref_model_mixup_alpha, self.args.ref_model_sync_steps
            self.move_reference(share, steps)
        self.prepare_engine()

    def penalise_missing_ends(self, penalty: float | None) -> None:
        """Add the penalty of a completion without an end token to the rewards."""
        if penalty is not None:
            call = MissingEnd(frozenset(self.eos_token_ids))
            self.rewards = [*self.rewards, RewardFunction(name="missing_eos", call=call)]
            self.reward_weights = torch.cat([self.reward_weights, torch.tensor([penalty])])

    def at_epoch(self, name: str) -> float:
        """Return the value that a setting such as `beta` has in this epoch."""
        return self.args.at_epoch(name, self.state.epoch or 0.0)

    @property
    def beta(self) -> float:
        """Weight of log-ratios in this epoch."""
        return self.at_epoch("beta")

    @abstractmethod
    def losses(self, answers: Answers, inputs: Batch) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Return the losses of the pairs of a piece, and the values (n,) of each metric."""

    @abstractmethod
    def half_margin(self, margins: Tensor) -> Tensor:
        """Return P(first over second) - 1/2 of each pair from the differences of its rewards."""

    def totals(self, scored: Scored) -> Tensor:
        """Return the reward of each completion (N,), NaN if no function scored it."""
        total = weighted_sum(scored.rewards, self.reward_weights.to(scored.rewards.device))
        is_unscored = scored.rewards[:, : self.scored_by].isnan().all(1)
        return total.masked_fill(is_unscored, torch.nan)

    def advantages(self, scored: Scored) -> Tensor:
        """Return the chance of each completion to be preferred, minus 1/2; 0 if not judged."""
        first, second = self.totals(scored).view(-1, 2).unbind(1)
        halves = self.half_margin(first - second)
        return torch.stack([halves, -halves], 1).flatten().nan_to_num(nan=0.0)

    def columns(self, scored: Scored) -> Batch:
        """Return advantages and rewards of the completions."""
        return {
            "advantages": self.advantages(scored),
            "scores": self.totals(scored).nan_to_num(nan=0.0),
        }

    def scores(self, scored: Scored) -> Metrics:
        """Return metrics of the rewards, and the share of pairs with equal ones."""
        total, names = self.totals(scored), [f.name for f in self.rewards]
        spread = Advantages(values=total, spread=group_spread(total.view(-1, 2)).flatten())
        weights = self.reward_weights.to(total.device)
        return reward_metrics(names, scored.rewards, weights, spread)

    def score(self, rows: Rows, generated: Generated) -> Scored:
        """Score the completions, and record which of them have an end token."""
        ends = set(self.eos_token_ids)
        has_end = [not ends.isdisjoint(ids) for ids in generated.completion_ids]
        flags = self.gather(torch.tensor(has_end, device=self.args.device).float())
        self.record(self.end_metrics(flags))
        return super().score(rows, generated)

    def end_metrics(self, has_end: Tensor) -> Metrics:
        """Return metrics of which completions (N,) have an end token."""
        return {"val/contain_eos_token": has_end.mean().item()}

    def tensors(self, generated: Generated) -> Batch:
        """Return the tensors of a rollout; of a long prompt only the end, see `max_length`."""
        lengths = [len(ids) for ids in generated.completion_ids]
        pairs = zip(lengths[::2], lengths[1::2], strict=True)
        rooms = [self.args.max_length - max(pair) for pair in pairs for _ in pair]
        prompts = [ids[-room:] for ids, room in zip(generated.prompt_ids, rooms, strict=True)]
        return super().tensors(replace(generated, prompt_ids=prompts))

    def pieces(self, batch: Batch) -> tuple[list[list[int]], list[list[int]]]:
        """Return the rows of the pieces of a micro-batch, each of which has whole pairs."""
        if self.rows_together == 1:
            return super().pieces(batch)
        pairs = {key: batch[key][::2] for key in PROMPT_KEYS}
        for key in ("completion_ids", "completion_mask"):
            pairs[key] = torch.cat([batch[key][::2], batch[key][1::2]], 1)
        learned, watched = super().pieces(pairs)
        return both_rows(learned), both_rows(watched)

    def compare(self, batches: list[Batch]) -> None:
        """Add the log-probabilities of the reference, computed on the pieces of the training."""
        whole = gather_weights(self.reference(), self.frame)
        with self.phases("reference"), self.accelerator.autocast(), whole as reference:
            for batch in batches:
                learned, watched = self.pieces(batch)
                rows = [*watched, *learned]
                batch[REFERENCE] = frozen_logps(reference, batch, 1.0, rows).logps

    def loss(self, model: nn.Module, inputs: Batch) -> Tensor:
        """Return the share of a piece in the loss of its micro-batch, and record its metrics.

        The loss is the mean over the pairs of a micro-batch, divided by the micro-batches of the
        optimizer step.

        Raises:
            BadValue: a log-probability is not finite.
        """
        logps, references = token_logps(model, inputs, 1.0).logps, inputs[REFERENCE]
        check_finite(logps.sum(1), inputs, self.tokenizer, "policy")
        check_finite(references.sum(1), inputs, self.tokenizer, "reference")
        answers = Answers(logps=logps, ref_logps=references, mask=trained_mask(inputs))
        losses, metrics = self.losses(answers, inputs)
        sums = {
            name: sum_and_count(values.detach().double(), torch.ones_like(values))
            for name, values in metrics.items()
        }
        self.seen.append(LossSums(sums, {}))
        steps = self.current_gradient_accumulation_steps if self.mode == "train" else 1
        pairs = inputs.get("rows", len(logps)) / self.rows_together
        return losses.sum() / pairs / steps


def both_rows(pieces: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the rows 2i and 2i + 1 of the pairs i of each piece."""
    return [[row for pair in piece for row in (2 * pair, 2 * pair + 1)] for piece in pieces]


def alternate(first: Generated, second: Generated) -> Generated:
    """Return completions of two models, those of a pair one after the other."""
    fields = ("prompt_ids", "completion_ids", "completions", "logps")
    lists = {
        name: [
            row
            for pair in zip(getattr(first, name), getattr(second, name), strict=True)
            for row in pair
        ]
        for name in fields
    }
    return replace(first, **lists)


def end_shares(has_end: Tensor) -> Metrics:
    """Return the shares of completions of two models (N,) that have an end token."""
    return {
        "val/model_contain_eos_token": has_end[::2].mean().item(),
        "val/ref_contain_eos_token": has_end[1::2].mean().item(),
    }
