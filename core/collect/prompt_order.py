"""Which prompts come next: whole groups for a data loader, any number from a stream."""

from collections.abc import Iterator, Mapping, Sequence, Set, Sized
from copy import deepcopy
from itertools import repeat
from typing import Any

import torch
from datasets import IterableDataset
from torch.utils.data import IterableDataset as TorchIterableDataset
from torch.utils.data import Sampler

from core.data.streams import Blocks, Passes
from eval.errors import BadValue


class GroupSampler(Sampler[int]):
    """Yield row indices in rollouts of `prompts` rows, each row `group` times in a row.

    A rollout is repeated `repeats` times, since each of its micro-batches consumes one batch of
    the data loader. Rows that do not fill a rollout are left out of the epoch. The order of epoch
    e is permutation e of a generator with `seed`, whether or not the epochs before it were run
    here; so a resumed run goes on where it stopped.
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
        """Yield the order of this epoch from the next iteration on."""
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
        """All rows in the order of that epoch."""
        if not self.shuffle:
            return list(range(self.rows))
        generator = torch.Generator().manual_seed(self.seed)
        for _ in range(epoch):
            torch.randperm(self.rows, generator=generator)
        return torch.randperm(self.rows, generator=generator).tolist()


class PromptStream:
    """The prompts of a training one after another, however many a rollout takes.

    The order is that of `sampler`, epoch after epoch, which yields rows as `GroupSampler` does; of
    their repetitions the stream has one. `drawn` is its position: the prompts taken or passed over
    so far, over all processes, and `latest` are those taken last. Every process has the same stream
    and takes as many prompts as the others. Those that are `retired` are passed over.

    Raises:
        BadValue: the sampler does not yield one rollout.
    """

    def __init__(
        self, sampler: Any, rows: Any = None, *, group: int, prompts: int, repeats: int = 1
    ):
        # Any: a sampler with a length, and `set_epoch` if its order depends on the epoch; and what
        # has a row at each place that the sampler yields
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
        """The rows of the next prompts, which may lie in several epochs.

        Raises:
            BadValue: all prompts of an epoch are retired.
        """
        taken: list[int] = []
        passed = 0  # prompts without one that is taken
        while len(taken) < count:
            if passed >= self.size:
                raise BadValue(
                    f"all {self.size} prompts of an epoch are retired: train for fewer steps, or "
                    "raise prompt_retirement"
                )
            epoch, start = divmod(self.drawn, self.size)
            part = self.epoch(epoch)[start : start + count - len(taken)]
            kept = [row for row in part if row not in self.retired]
            passed = 0 if kept else passed + len(part)
            taken += kept
            self.drawn += len(part)
        self.latest = taken
        return taken

    def share(self, count: int, process: int = 0, processes: int = 1) -> list[int]:
        """The rows of the next prompts as often as a group has members; one process's part."""
        rows = [row for row in self.take(count) for _ in range(self.group)]
        size = len(rows) // processes
        return rows[process * size : (process + 1) * size]

    def draw(self, process: int = 0, processes: int = 1) -> list[Any]:  # Any: rows
        """Return one process's rows of the next rollout."""
        count = self.rollout // self.group
        return [self.rows[place] for place in self.share(count, process, processes)]

    @property
    def position(self) -> None:
        """Return None: `drawn` is the whole position."""

    def go_on(self, drawn: int, position: object = None) -> None:  # noqa: ARG002 - as of a stream
        """Continue behind the prompts that were drawn before."""
        self.drawn = drawn

    def epoch(self, number: int) -> Sequence[int]:
        """The prompts of one epoch, each once."""
        if self.order[0] != number:
            if hasattr(self.sampler, "set_epoch"):
                self.sampler.set_epoch(number)
            rows, blocks = list(self.sampler), range(0, len(self.sampler), self.block)
            once = [rows[start : start + self.rollout : self.group] for start in blocks]
            self.order = number, [row for rollout in once for row in rollout][: self.size]
        return self.order[1]


class StreamedPrompts(TorchIterableDataset):
    """The prompts of a training from a dataset without a length, one rollout after another.

    The dataset is read pass after pass; rows at its end that fill no rollout are left out of the
    pass. Every process reads the whole dataset and takes its part of each rollout. Iterating over
    the object yields one empty batch for each micro-batch, without end.

    Attributes:
        drawn: the prompts drawn so far, over all processes.
    """

    def __init__(self, rows: IterableDataset, *, group: int, prompts: int):
        self.group = group
        self.prompts = prompts
        self.passes = Passes(Blocks(rows, prompts))
        self.rollouts = iter(self.passes)
        self.drawn = 0

    def __iter__(self) -> Iterator[list[Any]]:  # Any: rows, of which there are none
        return repeat([])

    def draw(self, process: int = 0, processes: int = 1) -> list[Any]:  # Any: rows
        """Return one process's rows of the next rollout, each as often as a group has members."""
        places = [row for row in next(self.rollouts) for _ in range(self.group)]
        self.drawn += self.prompts
        size = len(places) // processes
        return [deepcopy(row) for row in places[process * size : (process + 1) * size]]

    @property
    def position(self) -> tuple[int, int]:
        """Return the number of the pass and the rollouts drawn in it."""
        return self.passes.position

    def go_on(self, drawn: int, position: tuple[int, int] | None) -> None:
        """Continue behind the prompts that were drawn before; without a position, count them."""
        if position is None:
            for _ in range(drawn // self.prompts):
                next(self.rollouts)
        else:
            self.passes.position = position
        self.drawn = drawn


class PassRates:
    """How many completions of each prompt were sampled in a training, and how many were right.

    A prompt is `retired` once the share of right ones is at least `bound`, if there is one;
    arXiv 2510.13786.
    """

    def __init__(self, bound: float | None, counts: Mapping[int, tuple[int, int]] | None = None):
        self.bound = bound
        self.counts = dict(counts or {})

    def count(self, prompts: Sequence[int], right: Sequence[int], group: int) -> None:
        """Add a group of completions of each of these prompts, of which so many are right."""
        for prompt, more in zip(prompts, right, strict=True):
            before, seen = self.counts.get(prompt, (0, 0))
            self.counts[prompt] = before + more, seen + group

    @property
    def retired(self) -> Set[int]:
        """The prompts that are not drawn again."""
        if self.bound is None:
            return frozenset()
        return {
            prompt for prompt, (right, seen) in self.counts.items() if right >= self.bound * seen
        }
