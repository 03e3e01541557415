"""Streamed datasets: their columns, and endless reading that resumes at a position."""

from collections.abc import Iterator
from copy import deepcopy
from itertools import repeat
from typing import Any, Protocol, TypeVar

from datasets import Dataset, IterableDataset
from torch import Generator
from torch.utils.data import DataLoader
from torch.utils.data import IterableDataset as TorchIterableDataset

from core.data.best_fit import Data
from core.errors import WrongType
from eval.errors import BadValue

Batch = TypeVar("Batch")


def check_dataset(dataset: object, name: str) -> None:
    """Raise if a value is no dataset of the datasets library, or has no rows.

    Raises:
        BadValue: the value is None, or a dataset without rows.
        WrongType: the value has another type.
    """
    if dataset is None:
        raise BadValue(f"`{name}` is required: pass a datasets.Dataset or IterableDataset")
    if not isinstance(dataset, Dataset | IterableDataset):
        raise WrongType(
            f"`{name}` must be a `Dataset` or `IterableDataset`, got `{type(dataset).__name__}`: "
            "pass one split of the datasets library"
        )
    if next(iter(dataset), None) is None:
        raise BadValue(f"{name} has no rows")


def is_stream(dataset: object) -> bool:
    """Return whether a dataset is read in order and has no length."""
    return isinstance(dataset, IterableDataset)


def columns_of(dataset: Data) -> list[str]:
    """Return the column names of a dataset; those of its first row if the dataset declares none."""
    return list(dataset.column_names or next(iter(dataset), {}))


class Repeatable(Protocol):
    """Source that can be read several times, in an order that may depend on the pass."""

    def set_epoch(self, epoch: int, /) -> None:
        """Set the pass whose order the next iteration has."""
        ...

    def __iter__(self) -> Iterator[object]: ...  # rows, or batches of them


class Passes(TorchIterableDataset):
    """Endless iterable over a source, which is read again whenever it ends.

    Attributes:
        position: number of the pass, and number of its items already read. Reading starts after
            this position, so a position from a checkpoint resumes the run.
        passed_over: number of None items that come first, in place of those that a resumed run
            skips.
    """

    def __init__(self, source: Repeatable):
        self.source = source
        self.position = (0, 0)
        self.passed_over = 0

    def __iter__(self) -> Iterator[Any]:  # Any: items of the source
        """Yield items without end.

        Raises:
            BadValue: a pass over the source has no items.
        """
        yield from repeat(None, self.passed_over)
        number, read = self.position
        while True:
            self.source.set_epoch(number)
            items = 0
            for items, item in enumerate(self.source, start=1):
                if items > read:
                    self.position = (number, items)
                    yield item
            if items == 0:
                raise BadValue(
                    f"pass {number + 1} over train_dataset has no rows: give a stream that can be "
                    "read several times, or fewer max_steps"
                )
            number, read = number + 1, 0


def endless(loader: Any) -> DataLoader:  # Any: a DataLoader that accelerate prepared
    """Return a data loader that repeats the batches of another one without end.

    The generator of `loader` is replaced, so that the start of a pass draws no random number. The
    iteration raises `BadValue` if a pass has no batches.
    """
    loader.base_dataloader.generator = Generator()  # so that beginning a pass draws no seed
    return DataLoader(Passes(loader), batch_size=None, collate_fn=identity)


def identity(batch: Batch) -> Batch:
    """Return an already collated batch unchanged."""
    return batch


class Blocks:
    """Streamed dataset in blocks of `size` rows; an incomplete last block is dropped.

    Raises:
        BadValue: the dataset has fewer rows than one block.
    """

    def __init__(self, rows: IterableDataset, size: int):
        self.rows = rows
        self.size = size

    def set_epoch(self, epoch: int) -> None:
        """Set the pass whose order the next iteration has."""
        self.rows.set_epoch(epoch)

    def __iter__(self) -> Iterator[tuple[dict[str, object], ...]]:
        """Yield the blocks of one pass."""
        block: list[dict[str, object]] = []
        has_block = False
        for row in self.rows:
            block.append(row)
            if len(block) == self.size:
                has_block = True
                yield tuple(block)
                block = []
        if not has_block and block:
            raise BadValue(
                f"a pass over train_dataset has {len(block)} rows, which do not fill one rollout "
                f"of {self.size} prompts: add rows, or lower per_device_train_batch_size, "
                "steps_per_generation or generation_batch_size"
            )


class Repeated(TorchIterableDataset):
    """Streamed dataset with each row repeated `count` times in a row, as separate objects."""

    def __init__(self, rows: IterableDataset, count: int):
        self.rows = rows
        self.count = count

    def __iter__(self) -> Iterator[dict[str, object]]:
        for row in self.rows:
            yield from (deepcopy(row) for _ in range(self.count))
