"""Datasets without a length: their columns, and reading them pass after pass from a position."""

from collections.abc import Iterator
from copy import deepcopy
from itertools import repeat
from typing import Any, Protocol

from datasets import Dataset, IterableDataset
from torch import Generator
from torch.utils.data import DataLoader
from torch.utils.data import IterableDataset as TorchIterableDataset

from core.errors import WrongType
from eval.errors import BadValue


def check_dataset(dataset: object, name: str) -> None:
    """Refuse what is no dataset of the datasets library, or has no rows.

    Raises:
        BadValue: nothing is given, or a dataset without rows.
        WrongType: something else is given.
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


def columns_of(dataset: Any) -> list[str]:  # Any: a Dataset or an IterableDataset
    """Return the column names of a dataset; those of its first row if the dataset has none."""
    return list(dataset.column_names or next(iter(dataset), {}))


class Repeatable(Protocol):
    """Rows that can be read several times, in an order that may depend on the pass."""

    def set_epoch(self, epoch: int, /) -> None:
        """Read in the order of this pass from the next iteration on."""
        ...

    def __iter__(self) -> Iterator[Any]: ...  # Any: rows, or batches of them


class Passes(TorchIterableDataset):
    """The items of a source, which is read again from its start whenever it ends.

    Attributes:
        position: the pass of the item read last, and how many items of that pass are read. Reading
            begins behind the position, so that a position read from a checkpoint continues the run.
        passed_over: how many empty items come first, in place of those that a resumed run skips.
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
    """Return a data loader of the batches of another one, read pass after pass."""
    loader.base_dataloader.generator = Generator()  # so that beginning a pass draws no seed
    return DataLoader(Passes(loader), batch_size=None, collate_fn=unchanged)


def unchanged(batch: Any) -> Any:  # Any: of any data collator
    """Return a batch that is collated already."""
    return batch


class Blocks:
    """A streamed dataset in blocks of `size` rows; rows at its end that fill no block are left out.

    Raises:
        BadValue: the dataset does not fill a block.
    """

    def __init__(self, rows: IterableDataset, size: int):
        self.rows = rows
        self.size = size

    def set_epoch(self, epoch: int) -> None:
        """Read in the order of this pass from the next iteration on."""
        self.rows.set_epoch(epoch)

    def __iter__(self) -> Iterator[tuple[dict[str, Any], ...]]:  # Any: columns of any type
        """Yield the blocks of one pass."""
        block: list[dict[str, Any]] = []
        full = False
        for row in self.rows:
            block.append(row)
            if len(block) == self.size:
                full = True
                yield tuple(block)
                block = []
        if not full and block:
            raise BadValue(
                f"a pass over train_dataset has {len(block)} rows, which do not fill one rollout "
                f"of {self.size} prompts: add rows, or lower per_device_train_batch_size, "
                "steps_per_generation or generation_batch_size"
            )


class Repeated(TorchIterableDataset):
    """A streamed dataset with each row `count` times in a row, as separate objects."""

    def __init__(self, rows: IterableDataset, count: int):
        self.rows = rows
        self.count = count

    def __iter__(self) -> Iterator[dict[str, Any]]:  # Any: columns of any type
        for row in self.rows:
            yield from (deepcopy(row) for _ in range(self.count))
