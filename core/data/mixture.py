"""Mixtures of several datasets, in the proportions that a config names."""

from datasets import DatasetDict, concatenate_datasets, load_dataset

from core.configs.script import DatasetConfig, DatasetMixtureConfig
from core.data.best_fit import Data
from eval.errors import BadValue


def get_dataset(mixture_config: DatasetMixtureConfig) -> DatasetDict:
    """Load and concatenate datasets as `train`, and as `test` if `test_split_size` is set.

    Raises:
        BadValue: the config names no dataset, or fractions for some of them only.
    """
    if not mixture_config.datasets:
        raise BadValue("datasets is empty: name at least one dataset of the mixture")
    parts = [
        load_one(config, streaming=mixture_config.streaming) for config in mixture_config.datasets
    ]
    fractions = [config.fraction for config in mixture_config.datasets]
    if any(fraction is not None for fraction in fractions):
        parts = take_shares(parts, fractions, streaming=mixture_config.streaming)
    mixture: Data = concatenate_datasets(parts)
    if mixture_config.test_split_size is not None:
        return mixture.train_test_split(test_size=mixture_config.test_split_size)
    return DatasetDict({"train": mixture})


def load_one(config: DatasetConfig, *, streaming: bool) -> Data:
    """Load one dataset with the columns that its config names."""
    rows: Data = load_dataset(
        config.path,
        name=config.name,
        data_dir=config.data_dir,
        data_files=config.data_files,
        split=config.split,
        streaming=streaming,
    )
    return rows if config.columns is None else rows.select_columns(config.columns)


def take_shares(parts: list[Data], fractions: list[float | None], *, streaming: bool) -> list[Data]:
    """Take the first rows of each part, so that the mixture is as large as its fractions allow.

    Raises:
        BadValue: a fraction is missing or negative, all are 0, or the datasets are streamed.
    """
    if streaming:
        raise BadValue("fraction and streaming: shares need the number of rows, leave one out")
    pairs = list(zip(parts, normalised_shares(fractions), strict=True))
    total = min(len(part) / weight for part, weight in pairs if weight > 0)
    return [part.select(range(round(weight * total))) for part, weight in pairs]


def normalised_shares(fractions: list[float | None]) -> list[float]:
    """Return fractions divided by their sum.

    Raises:
        BadValue: a fraction is missing or negative, or all are 0.
    """
    shares = [fraction for fraction in fractions if fraction is not None]
    if len(shares) < len(fractions) or min(shares) < 0 or sum(shares) <= 0:
        raise BadValue(f"fraction={fractions}: give every dataset of the mixture a share, or none")
    return [share / sum(shares) for share in shares]
