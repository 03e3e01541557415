"""MiniLLM: the reverse KL of whole completions, by a policy gradient and an exact next token."""

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.collect.draws import Draw
from core.collect.generation import Generated, RolloutFunction, sample
from core.collect.metrics import Metrics, sum_and_count
from core.collect.reward_sources import RewardSource, Tokenizers
from core.data.best_fit import Data
from core.distillation.completed import DATA, data_batch, data_columns
from core.distillation.distilling import check_completions
from core.distillation.minillm_config import CURRENT, MiniLLMConfig
from core.distillation.sampled_tokens import check_head, check_possible
from core.distillation.teacher import OtherModel
from core.distillation.unrewarded import check_unrewarded, no_reward
from core.forward.batches import Batch, trained_mask
from core.forward.logps import TokenLogps, token_logps
from core.forward.two_heads import entropy_of, token_numbers
from core.losses.aggregate import Scale, global_token_mean
from core.losses.batch import Rollout
from core.losses.divergence import kl
from core.losses.estimators import Scored
from core.losses.returns import later_rewards, mean_of_later_rewards
from core.rewards.completions import Completion
from core.rollout.merged_adapters import unwrap_peft
from core.rollout.mixed import MixedEngine
from core.shapes import BT
from core.shards.sharding import gather_weights
from core.trainers.grpo import GRPOTrainer
from core.trainers.prompts import Rows
from core.trainers.publish import PAPERS
from core.trainers.setup import resolve_settings
from eval.errors import BadValue

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra

NUMBERS, LOGP, ENTROPY, OWN, OTHER, APART = "distilled", *range(5)  # see `measure`
DATA_TOKENS = "data_tokens"  # number of tokens of the data's completions in the rollout (B,)


class MiniLLMTrainer(GRPOTrainer):
    """Trainer by rewards log T - log S of the student's own tokens, with the interface of TRL's.

    arXiv 2306.08543. Their returns are added to the advantages of the reward functions, if there
    are any, without gradient. The loss is that of GRPO, plus the reverse KL at each token.
    """

    args: MiniLLMConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    settings = MiniLLMConfig
    _name = "MiniLLM"
    _tag_names = ("minillm",)
    _paper = PAPERS["MiniLLM"]

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
        self.is_rewarded = bool(reward_funcs)
        check_unrewarded(args, is_rewarded=self.is_rewarded)
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

    def set_up(self) -> None:
        """Check the tokens of the teacher, and put it in its place.

        Raises:
            BadValue: see `check_vocabularies`, or a rollout function samples beside a mixture.
        """
        if self.rollout_func is not None and self.args.teacher_mix_alpha:
            raise BadValue("teacher_mix_alpha cannot act: rollout_func makes the completions")
        self.router_weight = 0.0
        self.shared = self.source.shared_tokens(self.tokenizer, self.policy())
        self.teacher = self.source.placed(self)

    def scores(self, scored: Scored) -> Metrics:
        """Return the metrics of the reward functions, if there are any."""
        return super().scores(scored) if self.is_rewarded else {}

    def right(self, scored: Scored) -> Tensor:
        """Return 1 for correct completions, 0 for wrong and NaN for unscored ones (N,)."""
        right = super().right(scored)
        return right if self.is_rewarded else torch.full_like(right, torch.nan)

    def further_tensors(self, draws: list[Draw], batch: Batch) -> Batch:
        """Return the completions that the rows of a rollout have, if they are trained on."""
        if not self.args.lm_coef:
            return super().further_tensors(draws, batch)
        rows = [row for draw in draws for row in draw.rows]
        columns = data_columns(rows, self.tokenizer, self.args.padding, "lm_coef=0")
        return {key: value.to(self.args.device) for key, value in columns.items()}

    def rollout(self, rows: Rows) -> Batch:
        """Collect a rollout and count the tokens of the data's completions of its selected rows."""
        batch = super().rollout(rows)
        if not self.args.lm_coef:
            return batch
        selected = batch.get("selected", torch.ones_like(batch["completion_mask"][:, 0]))
        mask = DATA.format("completion_mask")
        batch |= {mask: batch[mask] * selected.view(-1, 1, 1)}
        count = self.count_tokens(data_batch(batch))
        return {**batch, DATA_TOKENS: count.expand(len(selected))}

    def sample_from(
        self, chosen: PreTrainedModel, prompts: list[Completion], seeds: list[int]
    ) -> Generated:
        """Sample one completion per prompt, in training from the mixture with the teacher."""
        alpha, own = self.args.teacher_mix_alpha, self.accelerator.autocast()
        if not alpha or self.mode == "eval":
            return super().sample_from(chosen, prompts, seeds)
        with own, gather_weights(chosen, self.frame) as model, self.teacher.whole() as teacher:
            engine, ends = MixedEngine(unwrap_peft(model), teacher, alpha), self.eos_token_ids
            return sample(model, self.tokenizer, prompts, self.args, ends, seeds, engine)

    def tensors(self, generated: Generated) -> Batch:
        """Return the rollout's tensors, after a check of its tokens."""
        check_head(generated, self.shared)
        return super().tensors(generated)

    def learns(self, inputs: Batch) -> Tensor:
        """Return a mask (B,) of the completions with a gradient: of trained tokens or the data."""
        return trained_mask(inputs).any(1) | (self.args.lm_coef > 0)

    def measure(self, logps: Tensor, teacher_logps: Tensor, tokens: Tensor) -> Tensor:
        """Return five numbers of each token (N, 5) from both models' log-probabilities (N, V).

        They are its log-probability and the entropy, and at `kd_temperature` the log-probabilities
        of the token under both models and their reverse KL.
        """
        heat = self.args.temperature / self.args.kd_temperature
        pair = (logps, teacher_logps)
        own, other = pair if heat == 1 else ((heat * x).log_softmax(-1) for x in pair)
        of_token = (x.gather(-1, tokens[:, None])[:, 0] for x in (logps, own, other))
        logp, own_logp, other_logp = of_token
        entropy = entropy_of(logps, learned=self.args.rewards_entropy)
        return torch.stack([logp, entropy, own_logp, other_logp, kl(own, other)], dim=-1)

    def returns(self, numbers: Tensor, inputs: Batch) -> BT:
        """Return the returns of the rewards log T - log S of each token, without gradient.

        Raises:
            BadValue: a sampled token is impossible for the teacher.
        """
        args, mask = self.args, trained_mask(inputs)
        own, other = numbers[..., OWN].detach(), numbers[..., OTHER].detach()
        check_possible(other, inputs["completion_ids"], "rkl_advantage=False")
        of = mean_of_later_rewards if args.length_normalization else later_rewards
        return of(other - own, mask, gamma=args.gamma, has_own=args.return_from == CURRENT)

    def loss(self, model: nn.Module, inputs: Batch) -> Tensor:
        """Return the share of a piece in the loss of its micro-batch, and record its metrics."""
        with self.accelerator.autocast(), self.teacher.whole() as teacher:
            temperature = self.args.temperature
            numbers = token_numbers(model, teacher, inputs, inputs, temperature, self.measure)
        advantages = inputs["advantages"].view(len(numbers), -1)
        if self.args.rkl_advantage:
            advantages = advantages + self.returns(numbers, inputs)
        loss = super().loss(model, {**inputs, NUMBERS: numbers, "advantages": advantages})
        return loss + self.data_loss(model, inputs) if self.args.lm_coef else loss

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

    def data_loss(self, model: nn.Module, inputs: Batch) -> Tensor:
        """Return lm_coef times the mean cross-entropy of the data's completions of the rollout."""
        data = data_batch(inputs)
        losses, mask = -token_logps(model, data, 1.0).logps, trained_mask(data)
        self.seen[-1].totals["lm_loss"] = sum_and_count(losses.detach(), mask)
        scale = replace(self.scale(inputs), rollout_tokens=inputs[DATA_TOKENS][0])
        return self.args.lm_coef * global_token_mean(losses, mask, scale)
