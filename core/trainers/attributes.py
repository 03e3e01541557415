"""Attributes of TRL's trainer that callbacks and rollout functions read."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Generic, Self, TypeVar, overload

import torch
from torch import Tensor, nn
from transformers import GenerationConfig, PreTrainedTokenizerBase, TrainingArguments

from core.collect.reward_calls import RewardFunction, UncheckedReward
from core.collect.reward_model import RewardModel
from core.configs.base import BaseConfig
from core.configs.grpo import GRPOConfig
from core.trainers.entropy_bonus import EntropyBonus
from core.trainers.token_masks import TokenMasks
from eval.errors import BadValue

Class = TypeVar("Class", bound=type)
Value = TypeVar("Value")
ROUTER = "GRPOConfig.router_aux_loss_coef and the model"


class FromArguments(Generic[Value]):
    """Descriptor of a read-only attribute that follows from the trainer's arguments."""

    def __init__(self, read: Callable[["GRPOAttributes"], Value], argument: str):
        self.read, self.argument = read, argument

    def __set_name__(self, owner: type, name: str):
        self.name = name

    @overload
    def __get__(self, trainer: None, owner: type) -> Self: ...
    @overload
    def __get__(self, trainer: "GRPOAttributes", owner: type) -> Value: ...
    def __get__(self, trainer: "GRPOAttributes | None", owner: type) -> Self | Value:
        return self if trainer is None else self.read(trainer)

    def __set__(self, trainer: "GRPOAttributes", value: object):
        if not hasattr(trainer, "args") or self.read(trainer) != value:
            raise BadValue(
                f"{type(trainer).__name__}.{self.name} cannot be set to {value!r}: it follows from "
                f"{self.argument}, which is read when the trainer is built"
            )


def with_settings(trainer: Class, config: type[BaseConfig] = GRPOConfig) -> Class:
    """Give a class an attribute for every field of its config that `TrainingArguments` lacks."""
    for name in {f.name for f in fields(config)} - {f.name for f in fields(TrainingArguments)}:
        if not hasattr(trainer, name):
            descriptor = FromArguments(
                lambda trainer, read=attrgetter(name): read(trainer.args),
                f"{config.__name__}.{name}",
            )
            descriptor.__set_name__(trainer, name)
            setattr(trainer, name, descriptor)
    return trainer


def setting(field: str, read: Callable[[GRPOConfig], Value]) -> FromArguments[Value]:
    """Return a descriptor of an attribute that follows from a field of the config."""
    return FromArguments(lambda trainer: read(trainer.args), f"GRPOConfig.{field}")


@with_settings
class GRPOAttributes(TokenMasks):
    """Settings under their own names, and the attributes that TRL derives from them and rewards."""

    args: GRPOConfig
    bonus: EntropyBonus
    router_weight: float
    rewards: list[RewardFunction]
    tokenizer: PreTrainedTokenizerBase
    eos_token_ids: list[int]
    generation_config: GenerationConfig

    epsilon_low = setting("epsilon", lambda args: args.epsilon)
    epsilon_high = setting("epsilon_high", lambda args: args.upper_epsilon)
    num_generations_eval = setting("num_generations_eval", lambda args: args.generations_eval)
    chat_template_kwargs = setting("chat_template_kwargs", lambda args: args.template)
    reward_funcs = FromArguments(
        lambda trainer: tuple(reward_source(f) for f in trainer.rewards), "reward_funcs"
    )
    reward_func_names = FromArguments(
        lambda trainer: [f.name for f in trainer.rewards], "reward_funcs"
    )
    reward_processing_classes = FromArguments(
        lambda trainer: [getattr(f.call, "tokenizer", None) for f in trainer.rewards],
        "reward_processing_classes",
    )

    router_aux_loss_coef = FromArguments(lambda trainer: trainer.router_weight, ROUTER)
    aux_loss_enabled = FromArguments(lambda trainer: trainer.router_weight != 0.0, ROUTER)

    entropy_coef = FromArguments(
        lambda trainer: trainer.bonus.coefficient, "GRPOConfig.entropy_coef and the entropy"
    )

    generation_kwargs = FromArguments(
        lambda trainer: sampling_keywords(trainer.args, trainer.tokenizer, trainer.eos_token_ids),
        "GRPOConfig",
    )

    def check_generation(self) -> None:
        """Refuse a `generation_config` that differs from the settings.

        Raises:
            BadValue: it was changed.
        """
        if self.generation_config != self.expected_generation():
            raise BadValue(
                "generation_config was changed: set temperature, top_p, top_k, min_p, "
                "repetition_penalty or max_completion_length of GRPOConfig instead"
            )

    def expected_generation(self) -> GenerationConfig:
        """Return the `GenerationConfig` that follows from the settings."""
        return GenerationConfig(**self.generation_kwargs, disable_compile=True)

    @property
    def reward_weights(self) -> Tensor:
        """Weight of each reward (F,); a new value has an effect from the next rollout on."""
        return self._reward_weights

    @reward_weights.setter
    def reward_weights(self, weights: Sequence[float] | Tensor):
        weight_tensor = torch.as_tensor(weights, dtype=torch.float32)
        if weight_tensor.shape != (len(self.rewards),):
            raise BadValue(
                f"reward_weights of shape {list(weight_tensor.shape)} for {len(self.rewards)} "
                "reward functions: expected one number for each"
            )
        self._reward_weights = weight_tensor


def reward_source(f: RewardFunction) -> nn.Module | UncheckedReward:
    """Return the reward as the user gave it: a function or a model."""
    return f.call.model if isinstance(f.call, RewardModel) else f.call


def sampling_keywords(
    args: GRPOConfig, tokenizer: PreTrainedTokenizerBase, ends: Sequence[int]
) -> dict[str, object]:
    """Return the keywords of transformers' `generate` that sample as the settings say."""
    return {
        "max_new_tokens": args.max_completion_length,
        "do_sample": True,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": list(ends),
        "temperature": args.temperature,
        "top_p": args.top_p,
        "top_k": args.top_k,
        "min_p": args.min_p,
        "repetition_penalty": args.repetition_penalty,
        "cache_implementation": args.cache_implementation,
        **args.generation_keywords,
    }
