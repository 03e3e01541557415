"""Conversion of a trainer's rewards and prompts to named functions and checked datasets."""

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from torch import nn
from transformers import PretrainedConfig, PreTrainedTokenizerBase

from core.collect.reward_calls import SHARED, RewardFunction, UncheckedReward, with_unique_names
from core.collect.reward_model import RewardModel
from core.configs.generation_keywords import as_list
from core.configs.rollout import RolloutConfig
from core.data.best_fit import Data
from core.data.chatml import to_chatml
from core.data.streams import check_dataset, columns_of
from core.errors import MissingColumn
from core.losses.estimators import ESTIMATORS, NEEDS
from core.models.load import load_keywords, own_tokenizer
from core.models.scorers import REWARD_HEAD, load_scorer
from eval.errors import BadValue

RewardSource = str | nn.Module | UncheckedReward
Tokenizers = PreTrainedTokenizerBase | Sequence[PreTrainedTokenizerBase | None] | None


def reward_functions(
    sources: RewardSource | Sequence[RewardSource] | None,
    tokenizers: Tokenizers,
    args: RolloutConfig,
) -> list[RewardFunction]:
    """Return the rewards as functions with unique names; a string or module is a reward model.

    Raises:
        BadValue: there is no reward, or the number of weights or tokenizers does not match.
    """
    listed: Sequence[RewardSource] = [] if sources is None else as_list(sources)
    if not listed:
        raise BadValue(
            "No reward source provided: reward_funcs is empty, pass at least one reward function "
            "or model"
        )
    weights = args.reward_weights or [1.0] * len(listed)
    none: list[PreTrainedTokenizerBase | None] = [None] * len(listed)
    matched = none if tokenizers is None else as_list(tokenizers)
    for name, values in (("reward_weights", weights), ("reward_processing_classes", matched)):
        if len(values) != len(listed):
            raise BadValue(
                f"{name} has {len(values)} entries for {len(listed)} reward functions: the numbers "
                "must match"
            )
    pairs = zip(listed, matched, strict=True)
    return with_unique_names(
        [reward_function(source, tokenizer, args) for source, tokenizer in pairs]
    )


def check_needs(
    estimator: str, rewards: Sequence[RewardFunction], trainer: Collection[str]
) -> None:
    """Refuse an advantage estimator that needs what neither the rewards nor the trainer provide.

    Raises:
        BadValue: a need is not met.
    """
    available = {*trainer, *(["steps"] if any(f.per_step for f in rewards) else [])}
    for need in ESTIMATORS[estimator].needs:
        if need not in available:
            raise BadValue(
                f"advantage_estimator={estimator!r} needs {NEEDS[need]}: found the rewards "
                f"{', '.join(f.name for f in rewards)}"
            )


def reward_function(
    source: RewardSource,
    tokenizer: PreTrainedTokenizerBase | None,
    args: RolloutConfig,
) -> RewardFunction:
    """Return one reward as a function, named after itself or its model.

    Raises:
        BadValue: it is neither a function nor a model nor the name of one.
    """
    is_name = isinstance(source, str)
    if isinstance(source, str):
        keywords = {"trust_remote_code": args.trust_remote_code, **load_keywords(args)}
        source = reward_model(source, keywords)
    if not isinstance(source, nn.Module):
        if not callable(source):
            raise BadValue(
                f"reward_funcs has {source!r:.60}: expected a function, a model or its name"
            )
        return RewardFunction.of(source)
    config = cast(PretrainedConfig, source.config)
    name = str(config.name_or_path)
    tokenizer = tokenizer or own_tokenizer(name, args, by_name=is_name)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    config.get_text_config().pad_token_id = tokenizer.pad_token_id
    model = source.eval().to(args.device)
    call = RewardModel(model, tokenizer, args.template)
    return RewardFunction(name=name.split("/")[-1], call=call)


def reward_model(name: str, keywords: Mapping[str, object]) -> nn.Module:
    """Load a sequence classifier with one label, adapters merged into it.

    Raises:
        BadValue: its files lack the head, which would be initialised at random.
        BadValue, DamagedFile, MissingFile, UnknownName: it cannot be loaded, see `load_scorer`.
    """
    model, new_weights = load_scorer(name, REWARD_HEAD, **keywords)
    if new_weights:
        raise BadValue(
            f"reward model {name}: its files lack {', '.join(new_weights)}: expected a trained "
            "sequence classifier with one label"
        )
    return model


def prompt_datasets(
    train: Data, evaluation: Data | dict[str, Data] | None
) -> tuple[Data, Data | dict[str, Data] | None]:
    """Return the checked training and evaluation datasets, with conversations in ChatML.

    Raises:
        BadValue, MissingColumn, WrongType: see `checked_prompts`.
    """
    train_prompts = checked_prompts(train, "train_dataset")
    if isinstance(evaluation, dict):
        eval_prompts = {
            n: checked_prompts(rows, f"eval_dataset[{n!r}]") for n, rows in evaluation.items()
        }
        return train_prompts, eval_prompts
    return train_prompts, None if evaluation is None else checked_prompts(
        evaluation, "eval_dataset"
    )


def checked_prompts(dataset: Data, name: str) -> Data:
    """Return a checked dataset of prompts, with conversations in ChatML.

    Raises:
        BadValue: the dataset is missing or empty, has images, or has a column with the name of
            another keyword of reward functions.
        MissingColumn: it has no column `prompt`.
        WrongType: it is no dataset.
    """
    check_dataset(dataset, name)
    columns = columns_of(dataset)
    if "prompt" not in columns:
        raise MissingColumn(name, ["prompt"], columns, "rename the column that holds the prompts")
    if {"image", "images"} & set(columns):
        raise BadValue(f"{name} has images: models of images are not supported, drop the column")
    reserved = sorted({"prompts", "completions", *SHARED} & set(columns))
    if reserved:
        raise BadValue(
            f"{name} has a column {reserved[0]!r}, which reward functions get from the trainer: "
            "rename the column"
        )
    return to_chatml(dataset)
