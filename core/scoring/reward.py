"""Reward models of pairs of texts, arXiv 2203.02155, with margins and centred rewards."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import torch
from datasets import Dataset, IterableDataset
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.configs.reward import RewardConfig
from core.data.best_fit import Data
from core.data.pair_columns import MARGIN
from core.data.scored_pairs import IDS, tokenize_scored_pairs
from core.forward.head_scores import end_scores
from core.losses.scoring import PairRewards, pair_losses
from core.models.scorers import REWARD_HEAD
from core.preference.answer_trainer import Term
from core.scoring.collate import ScoredPairCollator
from core.scoring.trainer import ScoringTrainer
from core.trainers.setup import refuse

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra

REWARD_METHODS: Mapping[str, str] = {
    "_prepare_dataset": "override prepared(dataset)",
    "_send_telemetry": "nothing is sent, so leave it out",
}


class RewardTrainer(ScoringTrainer):
    """Trainer of rewards of pairs of texts, with the interface of TRL's `RewardTrainer`."""

    UNCALLED = REWARD_METHODS
    args: RewardConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    _config = RewardConfig
    head = REWARD_HEAD
    _name = "Reward"
    _tag_names = ("reward-trainer",)

    def __init__(
        self,
        model: str | PreTrainedModel,
        args: RewardConfig | None = None,
        data_collator: Callable[..., dict[str, Tensor]] | None = None,
        train_dataset: Dataset | IterableDataset | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        compute_metrics: Callable[..., dict[str, float]] | None = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        optimizer_cls_and_kwargs: tuple[type[Optimizer], dict[str, Any]] | None = None,
        preprocess_logits_for_metrics: Callable[..., Tensor] | None = None,
        quantization_config: object = None,
        peft_config: "PeftConfig | None" = None,
    ):
        refuse(
            type(self).__name__,
            compute_metrics=compute_metrics,
            preprocess_logits_for_metrics=preprocess_logits_for_metrics,
            quantization_config=quantization_config,
        )
        super().__init__(
            model,
            args,
            data_collator=data_collator,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=processing_class,
            callbacks=callbacks,
            optimizers=optimizers,
            optimizer_cls_and_kwargs=optimizer_cls_and_kwargs,
            peft_config=peft_config,
        )

    def collator(self) -> ScoredPairCollator:
        """Return the collator of rows that `prepared` returns."""
        return ScoredPairCollator(cast(int, self.tokenizer.pad_token_id), self.args.padding)

    def prepared(self, dataset: Data) -> Data:
        """Return rows of token ids from a dataset of pairs, see `tokenize_scored_pairs`."""
        c = self.args
        return tokenize_scored_pairs(dataset, self.tokenizer, c.max_length, c.dataset_num_proc)

    def scores(self, model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return the rewards (2B,) of the chosen texts, then of the rejected ones."""
        ids, half = inputs["input_ids"], len(inputs["input_ids"]) // 2
        pairs = [(place, half + place) for place in range(half)]
        return end_scores(model, ids, inputs["attention_mask"], groups=pairs)[:, 0]

    def loss_terms(self, scores: Tensor, inputs: Mapping[str, Tensor]) -> list[Term]:
        """Return the loss of the pairs, and record statistics of their rewards."""
        chosen, rejected = scores.chunk(2)
        margin = inputs[MARGIN].to(scores) if MARGIN in inputs else None
        rewards = PairRewards(chosen=chosen, rejected=rejected, margin=margin)
        self.record_rewards(*self.gathered([chosen, rejected]).unbind(1))
        losses = pair_losses(rewards, self.args.weights)
        return [Term(losses, torch.ones_like(losses))]

    def record_rewards(self, chosen: Tensor, rejected: Tensor) -> None:
        """Record statistics of the rewards (B,) of the pairs of all processes."""
        rewards = torch.cat([chosen, rejected])
        metrics = {
            "min_reward": rewards.min(),
            "mean_reward": rewards.mean(),
            "max_reward": rewards.max(),
            "accuracy": (chosen > rejected).double().mean(),
            "margin": (chosen - rejected).mean(),
        }
        self.record({name: x.item() for name, x in metrics.items()}, weight=len(chosen))

    def _set_signature_columns_if_needed(self) -> None:
        self._signature_columns = [*IDS, MARGIN]
