"""Sampling of the completions of a rollout: weights, engine and random seeds."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Unpack

from accelerate.utils import gather_object
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.collect.completion_log import CompletionLog, report_completions
from core.collect.generation import Generated, RolloutFunction, call_rollout, pad_token_id, sample
from core.configs.rollout import RolloutConfig
from core.data.best_fit import Data
from core.forward.batches import Batch, token_batch
from core.rewards.completions import Completion
from core.rollout.engine import Engine
from core.rollout.engines import make_engine, vllm_engine
from core.rollout.seeds import seed_of
from core.shards.adapters import has_adapters
from core.shards.past_weights import PastWeights, PastWeightsCallback
from core.shards.sharding import gather_weights
from core.trainers.prompts import Rows
from core.trainers.publish import TrainerArguments
from core.trainers.resume import ProcessState
from core.trainers.rollouts import RolloutTrainer
from eval.errors import BadValue


class SamplingTrainer(RolloutTrainer):
    """Trainer that samples completions with an engine or with the user's rollout function.

    With `log_completions` each log has a table of them.
    """

    tokenizer: PreTrainedTokenizerBase
    eos_token_ids: list[int]
    rollout_func: RolloutFunction | None

    def __init__(
        self,
        *,
        args: RolloutConfig,
        callbacks: Sequence[TrainerCallback] | None,
        **rest: Unpack[TrainerArguments],
    ):
        super().__init__(args=args, callbacks=callbacks, **rest)
        self.completion_logs = {
            "train": CompletionLog(args.rollout_size),
            "eval": CompletionLog(None, "eval"),
        }
        self.past = PastWeights(args.rollout_lag)
        if args.rollout_lag:
            self.add_callback(PastWeightsCallback(self.past, self.frame))

    def check_generation(self) -> None:
        """Refuse a `generation_config` that differs from the settings; overridden by GRPO."""

    def prepare_engine(self) -> None:
        """Start vLLM with the model if it samples; otherwise check the engine.

        Raises:
            BadValue: see `check_sampler`.
            EngineError: vLLM cannot be started or reached.
        """
        sampled = self.rollout_func is None
        self.check_sampler(sampled=sampled)
        name = str(self.policy().config.name_or_path)
        self.vllm = vllm_engine(name, self.args) if self.args.use_vllm and sampled else None
        if sampled:
            self.engine(self.policy())

    def check_sampler(self, *, sampled: bool) -> None:
        """Refuse settings of the sampler that have no effect, or do not go with adapters.

        Raises:
            BadValue: a rollout function makes the completions, or weights with adapters would be
                rounded.
        """
        args = self.args
        name = next((name for name in args.INSIDE if args.is_set(name)), None)
        if name is not None and not sampled:
            raise BadValue(f"{name} cannot act: rollout_func makes the completions; leave it out")
        if args.rollout_bits is not None and has_adapters(self.policy()):
            raise BadValue(
                f"rollout_bits={args.rollout_bits} rounds whole weights, and this model has "
                "adapters beside them: leave it out, or train without peft_config"
            )

    def generate(self, prompts: list[Completion]) -> Generated:
        """Sample one completion per prompt; a prompt repeats for each completion of its group.

        Raises:
            BadValue: see `check_generation`, `sample` and `call_rollout`.
            EngineError: vLLM fails.
        """
        with self.phases("rollout"):
            if self.rollout_func is not None:
                return call_rollout(self.rollout_func, self.tokenizer, prompts, self)
            self.check_generation()
            chosen = self.policy() if self.args.samples_policy else self.reference()
            return self.sample_from(chosen, prompts, self.seeds(prompts))

    def sample_from(
        self, chosen: PreTrainedModel, prompts: list[Completion], seeds: list[int]
    ) -> Generated:
        """Sample one completion per prompt from the policy or the reference, see `sample`."""
        autocast = self.accelerator.autocast()  # as in training
        with autocast, gather_weights(chosen, self.frame) as model, self.sampled_from(model):
            engine, ends = self.engine(model), self.eos_token_ids
            return sample(model, self.tokenizer, prompts, self.args, ends, seeds, engine)

    def sampled_from(self, model: PreTrainedModel) -> AbstractContextManager[None]:
        """Return a context with old or rounded weights in training, else a null context."""
        acts = self.mode == "train" and self.args.alters_weights
        return self.past.within(model, self.args.rollout_bits) if acts else nullcontext()

    def engine(self, model: PreTrainedModel) -> Engine:
        """Return the engine that samples from this model; vLLM gets weights that have changed."""
        if self.vllm is None:
            pad, batching = pad_token_id(self.tokenizer), self.args.batching_keywords
            return make_engine(self.args.rollout_engine, model, pad, batching)
        return self.vllm.serving(model, self.state.global_step if self.args.samples_policy else 0)

    def seeds(self, prompts: list[Completion]) -> list[int]:
        """Return a seed for each completion of this rollout, for any number of processes.

        Seeds are the same however processes share the completions. In evaluation, completions are
        numbered over all batches, so that seeds do not depend on these.
        """
        before = self.evaluated if self.mode == "eval" else 0
        start = before + self.accelerator.process_index * len(prompts)
        moment = (self.args.seed, self.mode, self.state.global_step, self._rollouts)
        return [seed_of(*moment, row, prompt) for row, prompt in enumerate(prompts, start)]

    def tensors(self, generated: Generated) -> Batch:
        """Return token ids and masks of a rollout, on this process's device."""
        pad, multiple = pad_token_id(self.tokenizer), self.args.padding
        batch = token_batch(generated.prompt_ids, generated.completion_ids, pad, multiple)
        return {key: tensor.to(self.args.device) for key, tensor in batch.items()}

    def log_samples(self, rows: Rows, generated: Generated) -> None:
        """Add completions without rewards to the completion log."""
        if self.args.log_completions:
            self.completion_logs[self.mode].add(
                gather_object([row["prompt"] for row in rows]),
                gather_object(generated.completions),
            )

    def evaluate(
        self,
        eval_dataset: Data | dict[str, Data] | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> dict[str, float]:
        """Evaluate as transformers does; each evaluation has its own completion log."""
        self.completion_logs["eval"] = CompletionLog(None, metric_key_prefix)
        return super().evaluate(eval_dataset, ignore_keys, metric_key_prefix)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log as TRL does; with `log_completions`, also write and print the completions."""
        log, step = self.completion_logs[self.mode], self.state.global_step
        is_due = self.args.log_completions and step % self.args.completion_log_steps == 0
        if log.columns and is_due and self.accelerator.is_main_process:
            report_completions(log, self.args, step)
        super().log(logs, start_time)

    def own_state(self) -> ProcessState:
        """Return the state of the rollouts, with past weights and the completions of the next log.

        Past weights are those that are sampled from.
        """
        completions = self.completion_logs["train"].state()
        return {**super().own_state(), "past": self.past.state(), "completions": completions}

    def take_state(self, state: ProcessState) -> None:
        """Restore what `own_state` returned, in the middle of a rollout or at its end."""
        super().take_state(state)
        if state:
            self.past.take_state(state.get("past", []))
        if "completions" in state:
            self.completion_logs["train"].take_state(state["completions"])
