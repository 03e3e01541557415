"""MiniLLM: the reverse KL of whole completions, by a policy gradient and an exact next token."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.collect.generation import RolloutFunction
from core.collect.metrics import Metrics, sum_and_count
from core.collect.reward_sources import RewardSource, Tokenizers
from core.data.best_fit import Data
from core.distillation.completed import check_completions
from core.distillation.data_likelihood import DataLikelihoodTrainer
from core.distillation.log_ratio_returns import (
    APART,
    ENTROPY,
    LOGP,
    log_ratio_returns,
    numbers_at_kd_temperature,
)
from core.distillation.minillm_config import MiniLLMConfig
from core.distillation.taught_sampling import TaughtSamplingTrainer
from core.distillation.teacher import NUMBERS, OtherModel
from core.distillation.unrewarded import check_unrewarded, no_reward
from core.forward.batches import Batch
from core.forward.logps import TokenLogps
from core.losses.aggregate import Scale, global_token_mean
from core.losses.batch import Rollout
from core.losses.estimators import Scored
from core.trainers.publish import PAPERS
from core.trainers.setup import resolve_settings
from core.trainers.uncalled_methods import GRPO_METHODS, TEACHER_METHODS

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra


class MiniLLMTrainer(DataLikelihoodTrainer, TaughtSamplingTrainer):
    """Trainer by rewards log T - log S of the student's own tokens, with the interface of TRL's.

    arXiv 2306.08543. Their returns are added to the advantages of the reward functions, if there
    are any, without gradient. The loss is that of GRPO, plus the reverse KL at each token.
    """

    args: MiniLLMConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    settings = MiniLLMConfig
    _name = "MiniLLM"
    _tag_names = ("minillm",)
    _paper = PAPERS["MiniLLM"]
    UNCALLED: ClassVar[Mapping[str, str]] = {**GRPO_METHODS, **TEACHER_METHODS}

    def __init__(
        self,
        model: str | PreTrainedModel,
        teacher_model: str | PreTrainedModel | None = None,
        reward_funcs: RewardSource | list[RewardSource] | None = None,
        args: MiniLLMConfig | None = None,
        train_dataset: Data | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        reward_processing_classes: Tokenizers = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        peft_config: "PeftConfig | None" = None,
        rollout_func: RolloutFunction | None = None,
    ):
        args = resolve_settings(args, MiniLLMConfig, model, self._name)
        if args.lm_coef:
            data = {"train_dataset": train_dataset, "eval_dataset": eval_dataset}
            check_completions(data, "lm_coef above 0", "lm_coef=0")
        self.has_verdicts = bool(reward_funcs)
        check_unrewarded(args, is_rewarded=self.has_verdicts)
        self.source = OtherModel(teacher_model, model, args)
        super().__init__(
            model,
            reward_funcs or no_reward,
            args,
            train_dataset,
            eval_dataset,
            processing_class,
            reward_processing_classes,
            callbacks,
            optimizers,
            peft_config=peft_config,
            rollout_func=rollout_func,
        )

    def scores(self, scored: Scored) -> Metrics:
        """Return the metrics of the reward functions, if there are any."""
        return super().scores(scored) if self.has_verdicts else {}

    def loss(self, model: nn.Module, inputs: Batch) -> Tensor:
        """Return the share of a piece in the loss of its micro-batch, and record its metrics."""
        with self.accelerator.autocast():
            measure = partial(numbers_at_kd_temperature, args=self.args)
            numbers = self.teacher.numbers(model, inputs, self.args.temperature, measure)
        advantages = inputs["advantages"].view(len(numbers), -1)
        if self.args.rkl_advantage:
            advantages = advantages + log_ratio_returns(numbers, inputs, self.args)
        return super().loss(model, {**inputs, NUMBERS: numbers, "advantages": advantages})

    def token_logps(self, model: nn.Module, inputs: Batch) -> TokenLogps:  # noqa: ARG002 - `loss` has called it
        """Return the log-probabilities and entropies of a piece's tokens."""
        numbers = inputs[NUMBERS]
        return TokenLogps(numbers[..., LOGP], numbers[..., ENTROPY])

    def extra_loss(self, r: Rollout, inputs: Batch, scale: Scale) -> Tensor:
        """Return the mean reverse KL over the trained tokens of the optimizer step."""
        apart = inputs[NUMBERS][..., APART]
        self.seen[-1].totals["reverse_kl"] = sum_and_count(apart.detach(), r.mask)
        if not self.args.single_step_decomposition:
            return super().extra_loss(r, inputs, scale)
        return global_token_mean(apart, r.mask, scale)
