"""Model, tokenizer and settings from the arguments of a trainer, and checks of the launch."""

import os
from collections.abc import Mapping
from typing import TypeVar

import torch
from torch import nn
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Trainer,
)
from transformers.utils import logging

from core.configs.base import BaseConfig
from core.configs.processes import asks_for_shards
from core.data.streams import is_stream
from core.models.folders import locate
from core.models.load import load_causal, load_keywords, load_policy, own_tokenizer
from eval.errors import BadValue

logger = logging.get_logger(__name__)

Settings = TypeVar("Settings", bound=BaseConfig)


def refuse(trainer: str, **arguments: object) -> None:
    """Refuse arguments that TRL's trainer takes and this one does not support.

    Raises:
        BadValue: one of them is given.
    """
    for name, value in arguments.items():
        if value:
            raise BadValue(f"{trainer}({name}=...) is not supported: leave it out")


def resolve_settings(
    args: object, config: type[Settings], model: str | PreTrainedModel, method: str
) -> Settings:
    """Return the settings of a trainer with late changes resolved; None gives its defaults.

    Raises:
        BadValue: they are of another class, a field that was set later is refused, or the model
            is neither a model nor a name.
    """
    if not isinstance(model, str | nn.Module):
        raise BadValue(
            f"model={model!r:.60}: expected a model, or the name or folder of one as a text"
        )
    settings = config(default_output(model, method)) if args is None else args
    if not isinstance(settings, config):
        actual = f"{type(args).__module__}.{type(args).__name__}"
        raise BadValue(f"args is a {actual}: expected a {config.__name__} of core")
    settings.settle()
    return settings


def check_streams(args: BaseConfig, train: object, evaluation: object) -> None:
    """Refuse settings that do not go with datasets without a length, if there are any.

    Raises:
        BadValue: one process would send batches to the others, or `max_steps` is missing.
    """
    evaluations = evaluation.values() if isinstance(evaluation, dict) else [evaluation]
    if any(map(is_stream, [train, *evaluations])):
        check_dispatch(args)
    if is_stream(train) and args.max_steps <= 0:
        raise BadValue("train_dataset is an IterableDataset, which has no length: set max_steps")


def check_dispatch(args: BaseConfig) -> None:
    """Refuse that one process reads a streamed dataset for the others.

    Text cannot be sent between processes.

    Raises:
        BadValue: `accelerator_config` has `dispatch_batches=True`.
    """
    if args.data_loading.dispatch_batches:
        raise BadValue(
            "Iterable datasets require `dispatch_batches=False`, but accelerator_config has True: "
            "set it to False, or leave it out"
        )


def default_output(model: str | PreTrainedModel, method: str) -> str:
    """Return the name of an output folder after the model and the method."""
    name = model if isinstance(model, str) else str(model.config.name_or_path)
    return f"{name.split('/')[-1]}-{method}"


def check_launch(trainer: Trainer) -> None:
    """Refuse a training that differs from its launch, and launchers that would sample wrongly.

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
    """Refuse a launch of which accelerate would silently train something else.

    Raises:
        BadValue: FSDP or DeepSpeed was requested and is not active, FSDP is of version 1, or one of
            several processes would train alone.
    """
    state, launched = trainer.accelerator.state, int(os.environ.get("WORLD_SIZE", "1"))
    if launched > state.num_processes:
        raise BadValue(
            f"one of {launched} processes would train alone: found no GPU; set use_cpu=True"
        )
    if asks_for_shards() and not (trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled):
        raise BadValue(
            "FSDP or DeepSpeed was asked for, but accelerate would train without: on a CPU set "
            "use_cpu=True and start with at least 2 processes"
        )
    if trainer.is_fsdp_enabled and getattr(state.fsdp_plugin, "fsdp_version", 2) != 2:
        raise BadValue("FSDP of version 1 is not supported: set fsdp_version: 2")


def policy_model(model: str | PreTrainedModel, args: BaseConfig) -> PreTrainedModel:
    """Return the model, or load the named one, in 32 bits unless `model_init_kwargs` differ."""
    if not isinstance(model, str):
        if args.model_init_kwargs:
            logger.warning(
                "model_init_kwargs are for a model given by name: this one stays as it is"
            )
        return model
    return named_model(model, args, load_keywords(args))


def named_model(name: str, args: BaseConfig, keywords: Mapping[str, object]) -> PreTrainedModel:
    """Load a causal language model of a name, in 32 bits unless the keywords differ.

    Args:
        name: Folder, hub id, shipped or packaged name.
        args: Settings that say whether code that it brings is trusted.
        keywords: Keywords of `from_pretrained`; `torch_dtype` is another name of `dtype`.
    """
    if not keywords and not args.trust_remote_code:
        return load_policy(name)
    given = {"dtype" if key == "torch_dtype" else key: value for key, value in keywords.items()}
    options = {"dtype": torch.float32, "trust_remote_code": args.trust_remote_code, **given}
    return load_causal(name, locate(name), **options)


def given_tokenizer(
    tokenizer: PreTrainedTokenizerBase | None,
    model: PreTrainedModel,
    args: BaseConfig,
    *,
    by_name: bool = False,
) -> PreTrainedTokenizerBase:
    """Return the tokenizer, or load that of the model.

    Raises:
        BadValue: it is no tokenizer.
    """
    if tokenizer is None:
        name = str(model.config.name_or_path)
        tokenizer = own_tokenizer(name, args, by_name=by_name, padding_side="left")
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise BadValue(
            f"processing_class={type(tokenizer).__name__}: expected a tokenizer; models of images "
            "are not supported"
        )
    return tokenizer


def policy_tokenizer(
    tokenizer_or_none: PreTrainedTokenizerBase | None,
    model: PreTrainedModel,
    args: BaseConfig,
    *,
    by_name: bool = False,
) -> PreTrainedTokenizerBase:
    """Return the tokenizer, or that of the model; a missing padding token becomes the end token.

    Raises:
        BadValue: the tokenizer has no end token.
    """
    tokenizer = given_tokenizer(tokenizer_or_none, model, args, by_name=by_name)
    if tokenizer.eos_token_id is None:
        raise BadValue("the tokenizer has no eos_token: set it to the token that ends a completion")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    model.config.get_text_config().pad_token_id = tokenizer.pad_token_id
    if getattr(model, "generation_config", None) is not None:  # of a model that can generate
        model.generation_config.pad_token_id = tokenizer.pad_token_id
    return tokenizer


def without_dropout(model: nn.Module) -> None:
    """Set the probability of every dropout module to 0."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
