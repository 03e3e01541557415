"""The order in which prompts are visited: whole groups, a rollout repeated for its updates."""

from collections.abc import Callable, Iterator, Sized

import torch
from torch.utils.data import Sampler


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
        epoch: Callable[[], int] = lambda: 0,
    ):
        self.rows = len(rows)
        self.group = group
        self.prompts = prompts
        self.repeats = repeats
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        order = self.order(self.epoch())
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
