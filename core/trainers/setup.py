"""Turns the arguments of a trainer into a model, a tokenizer, rewards and checked datasets."""

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from datasets import Dataset
from torch import nn
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Trainer,
)
from transformers.utils import logging

from core.collect.reward_calls import RewardFunction, RewardModel, called
from core.configs.base import BaseConfig
from core.configs.grpo import GRPOConfig
from core.configs.processes import asks_for_shards
from core.data.chatml import in_chatml
from core.errors import MissingColumn
from core.losses.batch import PolicyConfig
from core.losses.policy import LOSS_TYPES
from core.losses.sampling import Correction
from core.models.load import load_causal, load_policy
from eval.errors import BadValue

SHARED = ("trainer_state", "log_extra", "log_metric")  # keywords of every reward function
logger = logging.get_logger(__name__)

RewardSource = str | nn.Module | Callable[..., Any]
Settings = TypeVar("Settings", bound=BaseConfig)


def refuse(trainer: str, **arguments: object) -> None:
    """Stop at an argument that TRL's trainer takes and this one cannot use yet.

    Raises:
        BadValue: one of them is given.
    """
    for name, value in arguments.items():
        if value:
            raise BadValue(f"{trainer}({name}=...) is not supported: leave it out")


def taken(
    args: Any, config: type[Settings], model: str | PreTrainedModel, method: str
) -> Settings:  # Any: whatever was given
    """The settings of a trainer, as they are by now; without any, those of its method.

    Raises:
        BadValue: they are of another class, or a field that was set since is refused.
    """
    settings = config(default_output(model, method)) if args is None else args
    if not isinstance(settings, config):
        given = f"{type(args).__module__}.{type(args).__name__}"
        raise BadValue(f"args is a {given}: expected a {config.__name__} of core")
    settings.settle()
    return settings


def default_output(model: str | PreTrainedModel, method: str) -> str:
    """Name an output folder after the model and the method."""
    name = model if isinstance(model, str) else str(model.config.name_or_path)
    return f"{name.split('/')[-1]}-{method}"


def check_launch(trainer: Trainer) -> None:
    """Refuse what is not what was launched, and launchers under which sampling would be wrong.

    Raises:
        BadValue: as `check_processes` says, or the model is replicated by `nn.DataParallel`.
    """
    check_processes(trainer)
    if trainer.args.n_gpu > 1:
        raise BadValue(
            f"{trainer.args.n_gpu} GPUs in one process: start with `accelerate launch`, or make "
            "one visible with CUDA_VISIBLE_DEVICES"
        )


def check_processes(trainer: Trainer) -> None:
    """Refuse what accelerate would quietly train instead of what was launched.

    Raises:
        BadValue: FSDP or DeepSpeed was asked for and is not there, FSDP is of version 1, or one of
            several processes would train alone.
    """
    state, asked = trainer.accelerator.state, int(os.environ.get("WORLD_SIZE", "1"))
    if asked > state.num_processes:
        raise BadValue(
            f"one of {asked} processes would train alone: found no GPU; set use_cpu=True"
        )
    if asks_for_shards() and not (trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled):
        raise BadValue(
            "FSDP or DeepSpeed was asked for, but accelerate would train without: on a CPU set "
            "use_cpu=True and start with at least 2 processes"
        )
    if trainer.is_fsdp_enabled and getattr(state.fsdp_plugin, "fsdp_version", 2) != 2:
        raise BadValue("FSDP of version 1 is not supported: set fsdp_version: 2")


def loss_config(args: GRPOConfig) -> PolicyConfig:
    """The settings of the loss.

    Raises:
        BadValue: a normaliser is chosen for a loss that does not count tokens.
    """
    if args.token_normalizer != "step" and not LOSS_TYPES[args.loss_type].counts_tokens:
        raise BadValue(
            f"token_normalizer={args.token_normalizer!r}: loss_type={args.loss_type!r} does not "
            "divide by a number of tokens of several completions: leave it out"
        )
    return PolicyConfig(
        loss_type=args.loss_type,
        importance_sampling_level=args.importance_sampling_level,
        epsilon=args.epsilon,
        epsilon_high=args.upper_epsilon,
        delta=args.delta,
        beta=args.beta,
        use_bias_correction_kl=args.use_bias_correction_kl,
    )


def correction(args: GRPOConfig) -> Correction:
    """How losses are weighed for an engine whose policy is slightly another one."""
    return Correction(
        mode=args.vllm_importance_sampling_mode,
        clip_min=args.vllm_importance_sampling_clip_min,
        clip_max=args.vllm_importance_sampling_clip_max,
    )


def policy_model(model: str | PreTrainedModel, args: BaseConfig) -> PreTrainedModel:
    """The model itself, or the one of that name in 32 bits unless `model_init_kwargs` say else."""
    if not isinstance(model, str):
        if args.model_init_kwargs:
            logger.warning(
                "model_init_kwargs are for a model given by name: this one stays as it is"
            )
        return model
    keywords = load_keywords(args)
    if not keywords and not args.trust_remote_code:
        return load_policy(model)
    keywords = {"dtype": torch.float32, "trust_remote_code": args.trust_remote_code, **keywords}
    return load_causal(model, model, **keywords)


def load_keywords(args: BaseConfig) -> dict[str, Any]:
    """Keywords of `from_pretrained` for models given by name."""
    given: Any = args.model_init_kwargs  # Any: a mapping, which was parsed from its string
    return dict(given or {})


def own_tokenizer(
    name: str, args: BaseConfig, *, named: bool, **more: Any
) -> PreTrainedTokenizerBase:
    """The tokenizer of a model; of its revision too, where the model was given by name."""
    revision = load_keywords(args).get("revision") if named else None
    code = args.trust_remote_code
    return AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=code, **more)


def given_tokenizer(
    tokenizer: PreTrainedTokenizerBase | None,
    model: PreTrainedModel,
    args: BaseConfig,
    *,
    named: bool = False,
) -> PreTrainedTokenizerBase:
    """The tokenizer itself, or the model's."""
    if tokenizer is None:
        name = str(model.config.name_or_path)
        tokenizer = own_tokenizer(name, args, named=named, padding_side="left")
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise BadValue(
            f"processing_class={type(tokenizer).__name__}: expected a tokenizer; models of images "
            "are not supported"
        )
    return tokenizer


def policy_tokenizer(
    given: PreTrainedTokenizerBase | None,
    model: PreTrainedModel,
    args: BaseConfig,
    *,
    named: bool = False,
) -> PreTrainedTokenizerBase:
    """The tokenizer itself, or the model's; padding is the end of sequence where there is none."""
    tokenizer = given_tokenizer(given, model, args, named=named)
    if tokenizer.eos_token_id is None:
        raise BadValue("the tokenizer has no eos_token: set it to the token that ends a completion")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    model.config.get_text_config().pad_token_id = tokenizer.pad_token_id
    if model.generation_config is not None:
        model.generation_config.pad_token_id = tokenizer.pad_token_id
    return tokenizer


def without_dropout(model: nn.Module) -> None:
    """Set the probability of every dropout module to 0."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0


def reward_functions(
    sources: RewardSource | Sequence[RewardSource] | None,
    tokenizers: Any,  # Any: a tokenizer, a list of them, or None
    args: GRPOConfig,
) -> list[RewardFunction]:
    """Name the rewards; a name or module is a reward model with one label.

    Raises:
        BadValue: there is no reward, or another number of weights or tokenizers.
    """
    given: Any = sources  # Any: one source, several, or none
    listed = list(given or []) if isinstance(given, list | tuple | None) else [given]
    if not listed:
        raise BadValue("reward_funcs is empty: pass at least one reward function or model")
    weights = args.reward_weights or [1.0] * len(listed)
    matched = tokenizers if isinstance(tokenizers, list) else [tokenizers] * len(listed)
    for name, values in (("reward_weights", weights), ("reward_processing_classes", matched)):
        if len(values) != len(listed):
            raise BadValue(f"{name} has {len(values)} entries for {len(listed)} reward functions")
    functions = [
        reward_function(source, tokenizer, args)
        for source, tokenizer in zip(listed, matched, strict=True)
    ]
    if args.advantage_estimator == "process" and not any(f.per_step for f in functions):
        raise BadValue(
            "advantage_estimator='process' needs a reward of steps, such as StepAccuracy(): "
            f"found {', '.join(f.name for f in functions)}"
        )
    return functions


def reward_function(
    source: Any,  # Any: a `RewardSource`
    tokenizer: PreTrainedTokenizerBase | None,
    args: GRPOConfig,
) -> RewardFunction:
    """Name one reward: after its function, or after its model."""
    named = isinstance(source, str)
    if isinstance(source, str):
        keywords = {"trust_remote_code": args.trust_remote_code, **load_keywords(args)}
        source = AutoModelForSequenceClassification.from_pretrained(
            source, num_labels=1, **keywords
        )
    if not isinstance(source, nn.Module):
        function = called(source)
        name = getattr(function, "__name__", None) or type(function).__name__
        return RewardFunction(name=name, call=source)
    config: Any = source.config
    name = config.name_or_path
    tokenizer = tokenizer or own_tokenizer(name, args, named=named)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    config.get_text_config().pad_token_id = tokenizer.pad_token_id
    model = source.eval().to(args.device)
    call = RewardModel(model, tokenizer, args.template)
    return RewardFunction(name=name.split("/")[-1], call=call)


def prompt_datasets(train: Any, evaluation: Any) -> tuple[Any, Any]:  # Any: one, several, or none
    """The training set and each evaluation set, checked, with their conversations in ChatML."""
    if isinstance(evaluation, dict):
        several = {n: prompts(rows, f"eval_dataset[{n!r}]") for n, rows in evaluation.items()}
        return prompts(train, "train_dataset"), several
    single = None if evaluation is None else prompts(evaluation, "eval_dataset")
    return prompts(train, "train_dataset"), single


def prompts(dataset: object, name: str) -> Dataset:
    """A dataset of prompts, with its conversations in ChatML.

    Raises:
        BadValue: it is no `Dataset`, is empty, holds images, or a column has the name of something
            else that reward functions are called with.
        MissingColumn: it has no column `prompt`.
    """
    if not isinstance(dataset, Dataset):
        raise BadValue(
            f"{name} is a {type(dataset).__name__}: expected a datasets.Dataset (streaming ones "
            "are not supported)"
        )
    columns = dataset.column_names
    if "prompt" not in columns:
        raise MissingColumn(name, ["prompt"], columns, "rename the column that holds the prompts")
    if {"image", "images"} & set(columns):
        raise BadValue(f"{name} has images: models of images are not supported, drop the column")
    taken = sorted({"prompts", "completions", *SHARED} & set(columns))
    if taken:
        raise BadValue(
            f"{name} has a column {taken[0]!r}, which reward functions get from the trainer: "
            "rename the column"
        )
    if not len(dataset):
        raise BadValue(f"{name} has no rows")
    return in_chatml(dataset)
