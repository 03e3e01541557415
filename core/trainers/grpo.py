"""GRPO: samples groups of completions, scores them, and reinforces those above the group mean."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch
from accelerate.utils import set_seed
from datasets import Dataset, IterableDataset
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback
from transformers.utils import logging

from core.collect.generation import RolloutFunction
from core.collect.metrics import Metrics, loss_sums, reward_metrics
from core.collect.reward_calls import RewardFunction
from core.collect.reward_sources import (
    RewardSource,
    Tokenizers,
    check_needs,
    prompt_datasets,
    reward_functions,
)
from core.configs.grpo import GRPOConfig
from core.configs.idle import ratio_is_one
from core.configs.rollout import RolloutConfig
from core.data.streams import is_stream
from core.forward.batches import Batch, as_rollout
from core.forward.logps import TokenLogps, token_logps
from core.forward.micro_pieces import kept_mask
from core.forward.router import router_weight
from core.losses.aggregate import TOKEN_NORMALIZERS, Scale
from core.losses.batch import Rollout
from core.losses.estimators import ESTIMATORS, AdvantageSettings, Scored, standardise
from core.losses.loss_statistics import DRIFT
from core.losses.policy import LOSS_TYPES, PolicyLoss, policy_loss
from core.rollout.stops import end_tokens
from core.rollout.wide_head import widen_head
from core.shards.adapters import add_adapters, refuse_adapters
from core.trainers.attributes import GRPOAttributes
from core.trainers.comparison import ComparingTrainer
from core.trainers.entropy_bonus import EntropyBonus
from core.trainers.prompts import Rows
from core.trainers.publish import PAPERS, DataArguments
from core.trainers.setup import (
    check_launch,
    check_streams,
    policy_model,
    policy_tokenizer,
    refuse,
    resolve_settings,
    without_dropout,
)
from core.trainers.uncalled_methods import GRPO_METHODS

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra

logger = logging.get_logger(__name__)
Data = Dataset | IterableDataset


def rollout_datasets(
    train: Data | None, evaluation: Data | dict[str, Data] | None, args: RolloutConfig
) -> DataArguments:
    """Return the checked datasets of prompts, under the names of transformers' arguments.

    Raises:
        BadValue: as `prompt_datasets` and `check_streams` say.
    """
    train, evaluation = prompt_datasets(train, evaluation)
    check_streams(args, train, evaluation)
    if is_stream(train) and args.dataloader_num_workers:
        logger.warning("dataloader_num_workers is set to 0: a stream of prompts has one reader")
        args.dataloader_num_workers = 0
    return {"train_dataset": train, "eval_dataset": evaluation}


def policy_and_tokenizer(
    model: str | PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    peft_config: "PeftConfig | None",
    args: RolloutConfig,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the model to train, with its adapters, and its tokenizer; load those given by name.

    A given model is changed in place: `disable_dropout` sets its dropout to 0, and
    `cast_lm_head_to_fp32` computes its logits in 32 bits.

    Raises:
        BadValue: see `add_adapters` and `policy_tokenizer`.
        BadValue, DamagedFile, MissingFile, UnknownName: see `load_policy`.
    """
    policy = add_adapters(policy_model(model, args), peft_config, args)
    by_name = isinstance(model, str)
    policy_tokens = policy_tokenizer(tokenizer, policy, args, by_name=by_name)
    if args.disable_dropout:
        without_dropout(policy)
    if args.cast_lm_head_to_fp32:
        widen_head(policy)
    return policy, policy_tokens


class GRPOTrainer(GRPOAttributes, ComparingTrainer):
    """Group relative policy optimisation.

    arXiv 2402.03300, with the interface of TRL's `GRPOTrainer`.

    The trainer of another method overrides some of `generate`, `score`, `select`, `advantages`,
    `compare` and `loss`.
    """

    args: GRPOConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    UNCALLED = GRPO_METHODS
    gives: tuple[str, ...] = ("kl",)  # keys of `NEEDS` that this trainer meets
    settings: type[GRPOConfig] = GRPOConfig
    _name = "GRPO"
    _tag_names = ("grpo",)
    _paper = PAPERS["GRPO"]

    def __init__(
        self,
        model: str | PreTrainedModel,
        reward_funcs: RewardSource | list[RewardSource] | None = None,
        args: GRPOConfig | None = None,
        train_dataset: Data | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        reward_processing_classes: Tokenizers = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        quantization_config: object = None,
        peft_config: "PeftConfig | None" = None,
        tools: object = None,
        rollout_func: RolloutFunction | None = None,
        environment_factory: object = None,
    ):
        factory, name = environment_factory, type(self).__name__
        refuse(
            name, quantization_config=quantization_config, tools=tools, environment_factory=factory
        )
        args = resolve_settings(args, self.settings, model, self._name)
        datasets = rollout_datasets(train_dataset, eval_dataset, args)
        set_seed(args.seed)
        policy, self.tokenizer = policy_and_tokenizer(model, processing_class, peft_config, args)
        self.eos_token_ids = end_tokens(policy, self.tokenizer)
        self.set_rewards(reward_functions(reward_funcs, reward_processing_classes, args), args)
        self.rollout_func, self.bonus = rollout_func, EntropyBonus(args)
        self.router_weight = router_weight(policy, args.router_aux_loss_coef)
        super().__init__(
            model=policy,
            args=args,
            processing_class=self.tokenizer,
            callbacks=callbacks,
            optimizers=optimizers,
            **datasets,
        )
        self.prepare_rollouts(has_new_adapters=peft_config is not None)
        set_seed(args.seed, device_specific=True)
        self.set_up()

    def set_up(self) -> None:
        """Prepare what a method needs beside this trainer's parts; called when these are ready."""

    def set_rewards(self, rewards: list[RewardFunction], args: GRPOConfig) -> None:
        """Take reward functions and their weights; refuse an estimator that needs more."""
        check_needs(args.advantage_estimator, rewards, self.gives)
        self.rewards = rewards
        self.reward_weights = args.reward_weights or [1.0] * len(rewards)

    def prepare_rollouts(self, *, has_new_adapters: bool) -> None:
        """Check the launch, and set up the reference, the engine and the logged statistics.

        Settings that are likely a mistake are logged as warnings.

        Raises:
            BadValue: see `check_launch`, `refuse_adapters` and `prepare_engine`.
            EngineError: see `prepare_engine`.
        """
        check_launch(self)
        args = self.args
        for warning in filter(None, (args.loss_warning, args.length_weighting)):
            logger.warning(warning)
        if args.keeps_reference:
            self.keep_reference(adapters_off=has_new_adapters)
        if args.sync_ref_model:
            refuse_adapters(self.policy(), "sync_ref_model=True")
            self.move_reference(args.ref_model_mixup_alpha, args.ref_model_sync_steps)
        self.prepare_engine()
        drift = () if ratio_is_one(args) else DRIFT
        self.logged = (*LOSS_TYPES[args.loss_type].logs, *drift)
        self.generation_config = self.expected_generation()

    def advantages(self, scored: Scored) -> Tensor:
        """Return the advantages of the completions (N,), or of their tokens (N, length)."""
        return ESTIMATORS[self.args.advantage_estimator].advantages(scored, self.advantage_settings)

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of what the estimator of advantages reads beside rewards, see `NEEDS`."""
        return ESTIMATORS[self.args.advantage_estimator].needs

    def scores(self, scored: Scored) -> Metrics:
        """Return metrics of the rewards and of their spread."""
        names, weights = [f.name for f in self.rewards], self.advantage_settings.weights
        spread = standardise(scored, self.advantage_settings)
        metrics = reward_metrics(names, scored.rewards, weights, spread)
        if ESTIMATORS[self.args.advantage_estimator].least_group == 1:
            del metrics["frac_reward_zero_std"]  # says nothing where groups are not compared
        return metrics

    def loss(self, model: nn.Module, inputs: Batch) -> Tensor:
        """Return the share of a piece in the loss of its micro-batch, and record its metrics."""
        scale = self.scale(inputs)
        logps, entropy, router = self.token_logps(model, inputs)
        r = as_rollout(inputs, logps, with_reference=self.args.penalises_kl)
        result = self.objective(r, scale)
        self.seen.append(loss_sums(result, r, cast(Tensor, entropy), self.args, self.logged))
        loss = result.loss + self.extra_loss(r, inputs, scale)
        if self.args.rewards_entropy:
            self.seen[-1].totals["policy_loss"] = self.loss_of_piece(result.loss, scale)
            counted = replace(scale, tokens=inputs.get("kept", inputs.get("tokens")))
            training = self.mode == "train"
            loss = loss - self.bonus.weigh(
                cast(Tensor, entropy), r.kept_mask, counted, training=training
            )
        if router is None:
            return loss
        self.record({"aux_loss": self.gather(router.detach()).mean().item()})
        return loss + self.router_weight * router / scale.accumulation

    def token_logps(self, model: nn.Module, inputs: Batch) -> TokenLogps:
        """Return log-probability and entropy of a piece's tokens, and its load-balancing loss."""
        return token_logps(
            model,
            inputs,
            self.args.temperature,
            with_entropy=True,
            learns_entropy=self.args.rewards_entropy,
            with_router=self.router_weight != 0.0,
        )

    def loss_of_piece(self, loss: Tensor, scale: Scale) -> Tensor:
        """Return the policy loss of a piece and 1 for the last of its micro-batch, else 0 (2,).

        Summed over pieces, it is a sum over processes and their number.
        """
        times = 1 if self.args.aggregate.counts_tokens else scale.accumulation
        last = loss.new_tensor(float(not self._more))
        return torch.stack([loss.detach() * times, last])

    def objective(self, r: Rollout, scale: Scale) -> PolicyLoss:
        """Return the policy loss of a piece."""
        return policy_loss(r, self.args, scale)

    def extra_loss(self, r: Rollout, inputs: Batch, scale: Scale) -> Tensor:  # noqa: ARG002 - for those who override it
        """Return what a method adds to the policy loss of a piece; 0 for GRPO."""
        return r.logps.new_zeros(())

    def training_step(
        self, model: nn.Module, inputs: Rows | Batch, num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """Train on one micro-batch; the last of an optimizer step updates the entropy weight."""
        loss = super().training_step(model, inputs, num_items_in_batch)
        if self.args.rewards_entropy and self.accelerator.sync_gradients:
            self.record({"entropy_coef": self.bonus.step(self.accelerator)})
        return loss

    @property
    def advantage_settings(self) -> AdvantageSettings:
        """Settings of how rewards become advantages."""
        return AdvantageSettings(
            weights=self.reward_weights.to(self.args.device),
            scale=self.args.scale_rewards,
            aggregation=self.args.multi_objective_aggregation,
            kl_coef=self.args.reward_kl,
            bounds=self.args.reward_bounds,
        )

    def counted_tokens(
        self, tokens: Sequence[Tensor], batches: Sequence[Batch]
    ) -> Sequence[Tensor]:
        """Return the token count that the loss of each micro-batch is divided by.

        Without `counts_kept` the counts are those of `token_normalizer`. With it all are equal:
        the number of tokens selected by entropy in the step, over all processes, times
        `rollout_parts` (1 in evaluation) and divided by the number of micro-batches.

        Args:
            tokens: Number of completion tokens of each micro-batch.
            batches: The micro-batches of one step.
        """
        if not self.args.counts_kept:
            return TOKEN_NORMALIZERS[self.args.token_normalizer].counts(tokens)
        selected = self.gather(
            torch.stack([kept_mask(batch).sum() for batch in batches]).sum()
        ).sum()
        parts = self.args.rollout_parts if self.mode == "train" else 1
        return [selected.double() * parts / len(batches)] * len(batches)

    def held_out_weight(self, batch: Batch) -> Tensor:
        """Return the weight of an evaluation batch: its tokens for a mean over tokens."""
        if self.args.aggregate.weighs_tokens:
            return batch["num_items_in_batch"].double()
        return super().held_out_weight(batch)

    def scale(self, inputs: Batch) -> Scale:
        """Return the denominators of a micro-batch, see `Scale`."""
        training = self.mode == "train"
        accumulation = self.current_gradient_accumulation_steps if training else 1
        parts = self.args.rollout_parts if training else 1
        shares = TOKEN_NORMALIZERS[self.args.token_normalizer].shares or self.args.counts_kept
        return Scale(
            rollout_tokens=inputs["num_items_in_batch"],
            accumulation=accumulation,
            micro_batches=parts if shares else accumulation,
            processes=self.accelerator.num_processes,
            max_length=self.args.max_completion_length,
            rows=inputs.get("rows"),
            tokens=inputs.get("kept" if self.args.counts_kept else "tokens"),
            group_tokens=inputs.get("group_tokens"),
        )

    def learns(self, inputs: Batch) -> Tensor:
        """Return a mask (B,) of the completions with a gradient.

        Advantages that are all 0 give no gradient, unless the loss has a KL or an entropy bonus.
        """
        advantages = inputs.get("advantages")
        if advantages is None or self.args.penalises_kl or self.args.rewards_entropy:
            return super().learns(inputs)
        return advantages.ne(0).view(len(advantages), -1).any(1)

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        if self.args.use_adaptive_entropy and self.args.should_save:
            self.bonus.save(Path(output_dir))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            self.bonus.begin()
        else:
            self.bonus.load(Path(checkpoint))
