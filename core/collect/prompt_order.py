"""Orders of prompts: whole groups for a data loader, and a stream of single prompts."""

from collections.abc import Iterator, Mapping, Sequence, Set, Sized
from copy import copy, deepcopy
from itertools import repeat
from typing import Protocol, runtime_checkable

import torch
from datasets import Dataset, IterableDataset
from torch.utils.data import IterableDataset as TorchIterableDataset
from torch.utils.data import Sampler

from core.data.conversations import Row
from core.data.streams import Blocks, Passes
from eval.errors import BadValue


class GroupSampler(Sampler[int]):
    """Sampler of row indices: rollouts of `prompts` rows, each row `group` times in a row.

    A rollout is repeated `repeats` times, since each of its micro-batches consumes one batch of the
    data loader. Rows that do not fill a rollout are left out of the epoch. The order of epoch e is
    permutation e of a generator with `seed`, whether or not the epochs before it were run here, so
    that a resumed run continues where it stopped.
    """

    def __init__(
        self,
        rows: Sized,
        *,
        group: int,
        prompts: int = 1,
        repeats: int = 1,
        shuffle: bool = True,
        seed: int = 0,
    ):
        self.rows = len(rows)
        self.group = group
        self.prompts = prompts
        self.repeats = repeats
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Use the order of this epoch from the next iteration on."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        order = self.order(self.epoch)
        for start in range(0, self.rows - self.prompts + 1, self.prompts):
            rollout = order[start : start + self.prompts]
            for _ in range(self.repeats):
                for row in rollout:
                    yield from [row] * self.group

    def __len__(self) -> int:
        return self.rows // self.prompts * self.prompts * self.group * self.repeats

    def order(self, epoch: int) -> list[int]:
        """Return all row indices in the order of an epoch."""
        if not self.shuffle:
            return list(range(self.rows))
        generator = torch.Generator().manual_seed(self.seed)
        for _ in range(epoch):
            torch.randperm(self.rows, generator=generator)
        return torch.randperm(self.rows, generator=generator).tolist()


class NumberedRows:
    """The rows of a dataset one by one; batches of rows are empty, as they are only counted."""

    def __init__(self, rows: Dataset):
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> Row:
        return self.rows[place]

    def __getitems__(self, places: Sequence[int]) -> list[Row]:
        return []


@runtime_checkable
class RowNumbers(Protocol):
    """A sampler of row numbers with a length, and `set_epoch` if its order depends on the epoch."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[int]: ...


class RowsByNumber(Protocol):
    """Rows, one at each number that a sampler yields."""

    def __getitem__(self, place: int, /) -> Row: ...


class PromptStream:
    """The prompts of a training one by one, for rollouts of any number of prompts.

    The order is that of `sampler`, epoch after epoch, without the repetitions that `GroupSampler`
    yields. All processes have the same stream and take equally many prompts.

    Attributes:
        drawn: Position in the stream: prompts taken or skipped so far, over all processes.
        latest: Rows of the prompts taken last.
        retired: Rows of prompts that are skipped.

    Raises:
        BadValue: the sampler yields less than one rollout.
    """

    def __init__(
        self,
        sampler: RowNumbers,
        rows: RowsByNumber = (),
        *,
        group: int,
        prompts: int,
        repeats: int = 1,
    ):
        self.sampler = sampler
        self.rows = rows
        self.group = group
        self.rollout = group * prompts
        self.block = self.rollout * repeats  # what the sampler yields for one rollout
        self.drawn = 0
        self.latest: list[int] = []
        self.retired: Set[int] = frozenset()
        self.size = len(sampler) // self.block * prompts  # prompts of one epoch
        self.order: tuple[int, list[int]] = (-1, [])  # the epoch read last, and its prompts
        if not self.size:
            raise BadValue(
                f"the sampler yields {len(sampler)} rows in an epoch: expected at least the "
                f"{self.block} of one rollout"
            )

    def take(self, count: int) -> list[int]:
        """Return the rows of the next `count` prompts, which may span several epochs.

        Raises:
            BadValue: all prompts of an epoch are retired.
        """
        rows: list[int] = []
        skipped = 0  # prompts without one that is taken
        while len(rows) < count:
            if skipped >= self.size:
                raise BadValue(
                    f"all {self.size} prompts of an epoch are retired: train for fewer steps, or "
                    "raise prompt_retirement"
                )
            epoch, start = divmod(self.drawn, self.size)
            part = self.epoch(epoch)[start : start + count - len(rows)]
            active = [row for row in part if row not in self.retired]
            skipped = 0 if active else skipped + len(part)
            rows += active
            self.drawn += len(part)
        self.latest = rows
        return rows

    def share(self, count: int, process: int = 0, processes: int = 1) -> list[int]:
        """Return one process's share of the next prompts' rows, each repeated for its group."""
        rows = [row for row in self.take(count) for _ in range(self.group)]
        size = len(rows) // processes
        return rows[process * size : (process + 1) * size]

    def draw(self, process: int = 0, processes: int = 1) -> list[Row]:
        """Return one process's rows of the next rollout; the rows of a group are copies."""
        places = self.share(self.rollout // self.group, process, processes)
        rows = {place: self.rows[place] for place in dict.fromkeys(places)}
        return [copy(rows[place]) for place in places]

    @property
    def position(self) -> None:
        """Always None: `drawn` is the whole position."""

    def resume(self, drawn: int, position: object = None) -> None:  # noqa: ARG002 - as of a stream
        """Continue after the prompts that were drawn before."""
        self.drawn = drawn

    def epoch(self, number: int) -> Sequence[int]:
        """Return the prompts of one epoch, each once."""
        if self.order[0] != number:
            if (set_epoch := getattr(self.sampler, "set_epoch", None)) is not None:
                set_epoch(number)
            rows, blocks = list(self.sampler), range(0, len(self.sampler), self.block)
            once = [rows[start : start + self.rollout : self.group] for start in blocks]
            self.order = number, [row for rollout in once for row in rollout][: self.size]
        return self.order[1]


class StreamedPrompts(TorchIterableDataset):
    """The prompts of a training from a dataset without a length, one rollout after another.

    The dataset is read in repeated passes. Rows at its end that fill no rollout are left out of the
    pass. Every process reads the whole dataset and takes its share of each rollout. Iterating over
    the object yields one empty batch per micro-batch, without end.

    Attributes:
        drawn: Prompts drawn so far, over all processes.
    """

    def __init__(self, rows: IterableDataset, *, group: int, prompts: int):
        self.group = group
        self.prompts = prompts
        self.passes = Passes(Blocks(rows, prompts))
        self.rollouts = iter(self.passes)
        self.drawn = 0

    def __iter__(self) -> Iterator[list[Row]]:
        return repeat([])

    def draw(self, process: int = 0, processes: int = 1) -> list[Row]:
        """Return one process's rows of the next rollout, each repeated for its group."""
        places = [row for row in next(self.rollouts) for _ in range(self.group)]
        self.drawn += self.prompts
        size = len(places) // processes
        return [deepcopy(row) for row in places[process * size : (process + 1) * size]]

    @property
    def position(self) -> tuple[int, int]:
        """Number of the pass, and of the rollouts drawn in it."""
        return self.passes.position

    def resume(self, drawn: int, position: tuple[int, int] | None) -> None:
        """Continue after the prompts drawn before; without a position, skip `drawn` prompts."""
        if position is None:
            for _ in range(drawn // self.prompts):
                next(self.rollouts)
        else:
            self.passes.position = position
        self.drawn = drawn


class PassRates:
    """Numbers of sampled and of correct completions of each prompt in a training.

    A prompt is retired once the share of correct completions is at least `bound`; arXiv 2510.13786.
    With the bound None no prompt is retired.
    """

    def __init__(self, bound: float | None, counts: Mapping[int, tuple[int, int]] | None = None):
        self.bound = bound
        self.counts = dict(counts or {})

    def count(self, prompts: Sequence[int], right: Sequence[int], group: int) -> None:
        """Add one group of completions for each prompt, `right` of which are correct."""
        for prompt, correct in zip(prompts, right, strict=True):
            correct_before, sampled = self.counts.get(prompt, (0, 0))
            self.counts[prompt] = correct_before + correct, sampled + group

    @property
    def retired(self) -> Set[int]:
        """Rows of the prompts that are not drawn again."""
        if self.bound is None:
            return frozenset()
        return {
            prompt
            for prompt, (right, graded) in self.counts.items()
            if right >= self.bound * graded
        }
