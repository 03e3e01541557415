"""GRPO: samples groups of completions, scores them, learns from those above their group's mean."""

from collections.abc import Mapping
from typing import Any, cast

import torch
from accelerate.utils import gather_object, set_seed
from datasets import Dataset
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.collect.completion_log import CompletionLog, RewardLogs, report_completions
from core.collect.correction import correct_sampling, sampling_logps
from core.collect.estimators import ESTIMATORS, Grouping, Rewards, standardised
from core.collect.event_loop import AsyncLoop
from core.collect.generation import (
    Generated,
    RolloutFunction,
    call_rollout,
    extended_rows,
    pad_token_id,
    sample,
)
from core.collect.metrics import loss_sums, reward_metrics
from core.collect.reward_calls import Samples, call_rewards
from core.collect.summary import (
    gathered_rewards,
    gathered_steps,
    length_summary,
    logged_columns,
    named_metrics,
)
from core.configs.grpo import GRPOConfig
from core.forward.batches import Batch, as_rollout, padded, token_batch
from core.forward.logps import frozen_logps, token_logps
from core.forward.router import router_weight
from core.losses.aggregate import Scale
from core.losses.policy import policy_loss
from core.rewards.completions import Completion
from core.rollout.engine import Engine
from core.rollout.engines import make_engine, vllm_engine
from core.rollout.seeds import seed_of
from core.rollout.stops import end_tokens
from core.shards.adapters import adapted, refuse_adapters
from core.shards.reference import SyncReferenceCallback, frozen_copy
from core.shards.sharding import gathered, spread
from core.trainers.attributes import GRPOAttributes
from core.trainers.publish import DEEPSEEKMATH
from core.trainers.rollouts import RolloutTrainer, Rows
from core.trainers.setup import (
    RewardSource,
    check_launch,
    correction,
    loss_config,
    policy_model,
    policy_tokenizer,
    prompt_datasets,
    refuse,
    reward_functions,
    taken,
    without_dropout,
)
from core.trainers.uncalled_methods import GRPO_METHODS


class GRPOTrainer(GRPOAttributes, RolloutTrainer):
    """Group relative policy optimisation, arXiv 2402.03300, with the face of TRL's `GRPOTrainer`.

    A paper's trainer differs by overriding one of `generate`, `score`, `advantages` and `loss`.
    """

    UNCALLED = GRPO_METHODS
    _name = "GRPO"
    _tag_names = ("grpo",)
    _paper = DEEPSEEKMATH

    def __init__(
        self,
        model: str | PreTrainedModel,
        reward_funcs: RewardSource | list[RewardSource] | None = None,
        args: GRPOConfig | None = None,
        train_dataset: Dataset | None = None,
        eval_dataset: Dataset | dict[str, Dataset] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        reward_processing_classes: Any = None,  # Any: a tokenizer or a list with None in it
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Any, Any] = (None, None),  # Any: optimizer and scheduler
        quantization_config: Any = None,
        peft_config: Any = None,
        tools: Any = None,
        rollout_func: RolloutFunction | None = None,
        environment_factory: Any = None,
    ):
        refuse(
            "GRPOTrainer",
            quantization_config=quantization_config,
            tools=tools,
            environment_factory=environment_factory,
        )
        args = taken(args, GRPOConfig, model, "GRPO")
        train_dataset, eval_dataset = prompt_datasets(train_dataset, eval_dataset)
        set_seed(args.seed)
        policy = adapted(policy_model(model, args), peft_config, args)
        tokenizer = policy_tokenizer(processing_class, policy, args, named=isinstance(model, str))
        if args.disable_dropout:
            without_dropout(policy)
        self.tokenizer = tokenizer
        self.eos_token_ids = end_tokens(policy, tokenizer)
        self.rewards = reward_functions(reward_funcs, reward_processing_classes, args)
        self.reward_weights = args.reward_weights or [1.0] * len(self.rewards)
        self.rollout_func = rollout_func
        self.router_weight = router_weight(policy, args.router_aux_loss_coef)
        super().__init__(
            model=policy,
            args=args,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=tokenizer,
            callbacks=callbacks,
            optimizers=optimizers,
        )
        check_launch(self)
        self.add_reference(adapters_off=peft_config is not None)
        name, needed = str(policy.config.name_or_path), args.use_vllm and rollout_func is None
        self.vllm = vllm_engine(name, args) if needed else None
        if rollout_func is None:
            self.engine(policy)  # it says now if it has only a slow way for this model
        self.loss_config, self.correction = loss_config(args), correction(args)
        self.loop = AsyncLoop()
        self.completion_log = CompletionLog(args.rollout_size)
        self.reward_logs = RewardLogs()
        self.generation_config = self.expected_generation()
        set_seed(args.seed, device_specific=True)

    def generate(self, prompts: list[Completion]) -> Generated:
        """Sample one completion per prompt; a prompt repeats for each completion of its group."""
        with self.phases("rollout"):
            if self.rollout_func is not None:
                return call_rollout(self.rollout_func, self.tokenizer, prompts, self)
            self.check_generation()
            offline = self.args.rollout_policy == "reference"
            chosen = self.reference() if offline else self.policy()
            with (
                self.accelerator.autocast(),
                gathered(chosen, self.frame) as model,
            ):  # as in training
                seeds, engine = self.seeds(prompts), self.engine(model)
                return sample(
                    model, self.tokenizer, prompts, self.args, self.eos_token_ids, seeds, engine
                )

    def engine(self, model: PreTrainedModel) -> Engine:
        """What decodes for this model; vLLM gets its weights when they have changed."""
        if self.vllm is None:
            return make_engine(self.args.rollout_engine, model, pad_token_id(self.tokenizer))
        moves = self.args.rollout_policy == "policy"
        return self.vllm.serving(model, self.state.global_step if moves else 0)

    def seeds(self, prompts: list[Completion]) -> list[int]:
        """A seed for each completion of this rollout, the same however processes share them."""
        start = self.accelerator.process_index * len(prompts)
        moment = (self.args.seed, self.mode, self.state.global_step, self._rollouts)
        return [seed_of(*moment, row, prompt) for row, prompt in enumerate(prompts, start)]

    def score(self, rows: Rows, generated: Generated) -> Rewards:
        """Call the reward functions; the rewards of all processes."""
        samples = Samples.of(rows, generated.completions, generated.completion_ids)
        self.reward_logs = RewardLogs()
        shared = {
            "trainer_state": self.state,
            "log_extra": self.reward_logs.log_extra,
            "log_metric": self.reward_logs.log_metric,
        }
        with self.phases("rewards"):
            values = call_rewards(self.rewards, samples, shared, self.loop)
        outcomes = gathered_rewards(values, self.accelerator)
        if self.args.advantage_estimator != "process":
            return Rewards(values=outcomes)
        weights = self.reward_weights.tolist()
        steps, ends = gathered_steps(
            values, generated.completion_ids, weights, self.tokenizer, self.accelerator
        )
        return Rewards(values=outcomes, steps=steps, ends=ends)

    def advantages(self, rewards: Rewards, length: int) -> Tensor:
        """Advantages of all completions (N,), or of their tokens (N, length)."""
        return ESTIMATORS[self.args.advantage_estimator](rewards, self.grouping, length)

    def loss(self, model: nn.Module, inputs: Batch) -> Tensor:
        """Return what this piece of a micro-batch adds to its policy loss; keep what it shows."""
        balances, scale = self.router_weight != 0.0, self.scale(inputs)
        logps, entropy, router = token_logps(
            model, inputs, self.args.temperature, with_entropy=True, with_router=balances
        )
        r = as_rollout(inputs, logps, with_reference=self.args.beta != 0.0)
        result = policy_loss(r, self.loss_config, scale)
        self.seen.append(loss_sums(result, r, cast(Tensor, entropy), self.loss_config))
        if router is None:
            return result.loss
        self.record({"aux_loss": self.gather(router.detach()).mean().item()})
        return result.loss + self.router_weight * router / scale.accumulation

    @property
    def grouping(self) -> Grouping:
        """How rewards become advantages in the present mode."""
        return Grouping(
            weights=self.reward_weights.to(self.args.device),
            group=self.group,
            scale=str(self.args.scale_rewards),
            aggregation=self.args.multi_objective_aggregation,
        )

    def scale(self, inputs: Batch) -> Scale:
        """Where a micro-batch stands in its optimizer step; an evaluation batch stands alone."""
        training = self.mode == "train"
        return Scale(
            rollout_tokens=inputs["num_items_in_batch"],
            accumulation=self.current_gradient_accumulation_steps if training else 1,
            micro_batches=self.args.rollout_parts if training else 1,
            processes=self.accelerator.num_processes,
            max_length=self.args.max_completion_length,
            rows=inputs.get("rows"),
            tokens=inputs.get("tokens"),
        )

    def learns(self, inputs: Batch) -> Tensor:
        """Which completions have a gradient: without KL, those whose advantages are not all 0."""
        advantages = inputs["advantages"]
        if self.args.beta != 0.0:
            return super().learns(inputs)
        return advantages.ne(0).view(len(advantages), -1).any(1)

    def add_reference(self, *, adapters_off: bool) -> None:
        """Keep the starting policy if the loss or the sampling needs it, and move it if asked."""
        if self.args.beta == 0.0 and self.args.rollout_policy == "policy":
            return
        with gathered(self.policy(), self.frame) as policy:  # ZeRO-3 may have cut it while loading
            self.ref_model = frozen_copy(policy)
        if adapters_off:
            cast(Any, self.ref_model).base_model.disable_adapter_layers()
        if self.frame is not None:
            spread(self.ref_model, self.args.device)
        if self.args.sync_ref_model:
            refuse_adapters(self.policy(), "sync_ref_model=True")
            self.add_callback(SyncReferenceCallback(self.ref_model, self.frame))

    def rollout(self, rows: Rows) -> Batch:
        """Sample, score and compare a completion for each row."""
        generated = self.generate([row["prompt"] for row in rows])
        batch = self.tensors(generated)
        rewards = self.score(extended_rows(rows, generated.columns), generated)
        advantages = self.advantages(rewards, batch["completion_ids"].size(1))
        start = self.accelerator.process_index * len(rows)
        batch["advantages"] = advantages[start : start + len(rows)]
        self.record_rollout(rows, generated, rewards, advantages)
        return batch

    def record_rollout(
        self, rows: Rows, generated: Generated, rewards: Rewards, advantages: Tensor
    ) -> None:
        """Record lengths, rewards and token counts, and keep the samples for the completion log."""
        names, logs = [f.name for f in self.rewards], self.reward_logs
        ends = [*self.eos_token_ids, pad_token_id(self.tokenizer)]
        lengths, tokens = length_summary(generated, ends, self.group, self.accelerator)
        self.record(lengths)
        self.count_seen(tokens)
        spread = standardised(rewards, self.grouping)
        self.record(reward_metrics(names, rewards.values, self.grouping.weights, spread))
        self.record(named_metrics(logs, self.accelerator))
        columns = logged_columns(logs, len(rows))
        if self.args.log_completions:
            self.completion_log.add(
                gather_object([row["prompt"] for row in rows]),
                gather_object(generated.completions),
                {name: rewards.values[:, i].tolist() for i, name in enumerate(names)},
                columns,
                advantages.tolist(),
            )

    def tensors(self, generated: Generated) -> Batch:
        """Token ids and masks of a rollout on this process's device."""
        pad, multiple = pad_token_id(self.tokenizer), self.args.padding
        batch = token_batch(generated.prompt_ids, generated.completion_ids, pad, multiple)
        if generated.trained is not None:
            batch["tool_mask"] = padded(generated.trained, 1, multiple=multiple)[0]
        if self.args.mask_truncated_completions:
            complete = ~torch.tensor(generated.truncated([*self.eos_token_ids, pad]))
            batch["completion_mask"] = batch["completion_mask"] * complete.unsqueeze(1)
        if self.args.corrects_sampling:
            batch["sampling_logps"] = sampling_logps(generated, like=batch["completion_mask"])
        return {key: tensor.to(self.args.device) for key, tensor in batch.items()}

    def compare(self, batches: list[Batch]) -> None:
        """Add log-probabilities of the reference, and of the policy at rollout if it moves.

        They go through the very pieces that are trained on, so that equal policies are equal to the
        last bit: the ratio is 1, and the KL and its gradient are 0. A policy that does not move
        before its use has ratio 1 without them; vLLM's probabilities are corrected by them.
        """
        args = self.args
        moves = self.mode == "train" and args.gradient_accumulation_steps % args.rollout_uses
        if moves or args.corrects_sampling:
            with self.phases("forward"):
                self.add_logps("old_per_token_logps", self.policy(), batches)
        if args.beta != 0.0 and self.ref_model is not None:
            with self.phases("reference"):
                self.add_logps("ref_per_token_logps", self.reference(), batches)
        if args.corrects_sampling:
            self.record(correct_sampling(batches, self.correction, self.accelerator))

    def add_logps(self, name: str, policy: PreTrainedModel, batches: list[Batch]) -> None:
        """Add the log-probabilities of a policy to micro-batches under a name."""
        temperature, router = self.args.temperature, self.router_weight != 0.0
        # the policy has autocast in its forward, the reference has not
        with self.accelerator.autocast(), gathered(policy, self.frame) as model:
            for batch in batches:
                learned, watched = self.pieces(batch)
                rows = [*watched, *learned]
                batch[name] = frozen_logps(model, batch, temperature, rows, with_router=router)

    def log(self, logs: dict[str, Any], start_time: float | None = None) -> None:
        """Log as TRL does; write and print the completions if `log_completions` asks for it."""
        if self.args.log_completions and self.accelerator.is_main_process:
            report_completions(self.completion_log, self.args, self.state.global_step)
        super().log(logs, start_time)

    def own_state(self) -> dict[str, Any]:
        """That of every method with rollouts, and the completions that the next log shows."""
        return {**super().own_state(), "completions": self.completion_log.state()}

    def take_state(self, state: Mapping[str, Any]) -> None:
        """Go on in the middle of a rollout, or at its end."""
        super().take_state(state)
        if state:
            self.completion_log.take_state(state["completions"])
