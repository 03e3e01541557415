"""Several datasets as one, in the shares that a config names."""

from typing import Any

from datasets import DatasetDict, concatenate_datasets, load_dataset

from core.configs.script import DatasetConfig, DatasetMixtureConfig
from eval.errors import BadValue


def get_dataset(mixture_config: DatasetMixtureConfig) -> DatasetDict:
    """The datasets one after the other, as `train`, and `test` if `test_split_size` is set.

    Raises:
        BadValue: there is none, or the shares are not those of all of them.
    """
    if not mixture_config.datasets:
        raise BadValue("datasets is empty: name at least one dataset of the mixture")
    parts = [loaded(one, streaming=mixture_config.streaming) for one in mixture_config.datasets]
    fractions = [one.fraction for one in mixture_config.datasets]
    if any(fraction is not None for fraction in fractions):
        parts = in_shares(parts, fractions, streaming=mixture_config.streaming)
    mixture: Any = concatenate_datasets(parts)
    if mixture_config.test_split_size is not None:
        return mixture.train_test_split(test_size=mixture_config.test_split_size)
    return DatasetDict({"train": mixture})


def loaded(one: DatasetConfig, *, streaming: bool) -> Any:  # Any: of the kind that streaming asks
    """One dataset, with the columns that are asked for."""
    rows: Any = load_dataset(
        one.path,
        name=one.name,
        data_dir=one.data_dir,
        data_files=one.data_files,
        split=one.split,
        streaming=streaming,
    )
    return rows if one.columns is None else rows.select_columns(one.columns)


def in_shares(parts: list[Any], fractions: list[float | None], *, streaming: bool) -> list[Any]:
    """The first rows of each, as many as the largest mixture of these shares takes.

    Raises:
        BadValue: a share is missing or not positive in sum, or the datasets are streamed.
    """
    shares = [fraction for fraction in fractions if fraction is not None]
    if len(shares) < len(parts) or min(shares) < 0 or sum(shares) <= 0:
        raise BadValue(f"fraction={fractions}: give every dataset of the mixture a share, or none")
    if streaming:
        raise BadValue("fraction and streaming: shares need the number of rows, leave one out")
    weights = [share / sum(shares) for share in shares]
    pairs = list(zip(parts, weights, strict=True))
    total = min(len(part) / weight for part, weight in pairs if weight > 0)
    return [part.select(range(round(weight * total))) for part, weight in pairs]
