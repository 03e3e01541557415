"""Prompts of rollouts: a stream whose position is stored in the checkpoint."""

from collections.abc import Callable
from typing import Any, ClassVar, cast

from datasets import Dataset, IterableDataset
from torch import Tensor, nn
from torch.utils.data import DataLoader, Sampler
from torch.utils.data import Dataset as TorchDataset

from core.collect.prompt_order import (
    GroupSampler,
    NumberedRows,
    PassRates,
    PromptStream,
    RowNumbers,
    StreamedPrompts,
)
from core.collect.reward_sources import checked_prompts
from core.configs.rollout import RolloutConfig
from core.data.best_fit import Data
from core.data.conversations import Row
from core.data.streams import Repeated, columns_of, is_stream
from core.trainers.base import BaseTrainer
from core.trainers.resume import ProcessState
from core.trainers.setup import check_dispatch
from eval.errors import BadValue

Rows = list[Row]  # rows of the dataset, one per completion


class PromptTrainer(BaseTrainer):
    """Trainer that draws the prompts of each rollout in the order of the training data.

    The data loader only counts the micro-batches of an epoch, with empty batches. The stream has
    its dataset and sampler, so that a subclass may override `get_train_dataloader` or
    `_get_train_sampler`. A dataset without a length is read in repeated passes within one epoch.
    """

    args: RolloutConfig
    read_columns: ClassVar[tuple[str, ...]] = ("prompt",)  # kept with `remove_unused_columns`
    prompts: PromptStream | StreamedPrompts  # of the training that runs
    passes: PassRates  # likewise; empty where prompts do not retire
    _completions = 0  # sampled in this training, over all processes
    _effective = 0  # prompts whose completions had different rewards

    @property
    def group(self) -> int:
        """Completions per prompt."""
        args = self.args
        return args.num_generations if self.mode == "train" else args.generations_eval

    @property
    def order_seed(self) -> int:
        """Seed of the order of the training prompts: `data_seed`, else `seed`."""
        return self.args.seed if self.args.data_seed is None else self.args.data_seed

    def draw(self) -> Rows:
        """Draw the prompts of one more rollout; return a row per completion of this process.

        All processes have to draw together.
        """
        return self.prompts.draw(self.accelerator.process_index, self.accelerator.num_processes)

    def count_seen(self, completions: int, tokens: int, idle: float) -> None:
        """Add sampled completions, and the tokens of prompts and completions, to the totals.

        Args:
            completions: Number of completions.
            tokens: Number of tokens.
            idle: Share of groups with equal rewards, from which nothing is learned.
        """
        if self.mode == "train":
            self._completions += completions
            self._effective += round(completions / self.group * (1 - idle))
            self.state.num_input_tokens_seen += tokens
        self.record_total("num_completions", self._completions)
        self.record_total("num_effective_prompts", self._effective)
        self.record_total("num_tokens", self.state.num_input_tokens_seen)

    def retire(self, right: Tensor) -> None:
        """Count the correct completions (N,) of the latest prompts, and retire prompts."""
        counts, stream = right.view(-1, self.group).sum(1).int().tolist(), self.numbered_prompts()
        self.passes.count(stream.latest, counts, self.group)
        stream.retired = self.passes.retired
        self.record_total("prompts/retired", len(stream.retired))

    def _set_signature_columns_if_needed(self) -> None:
        if self._signature_columns is None:
            self._signature_columns = [*self.read_columns]

    def read_alone(self, rows: IterableDataset) -> IterableDataset:
        """Return a stream with the columns that are read alone, if settings say so."""
        if not self.args.remove_unused_columns:
            return rows
        return rows.select_columns([name for name in columns_of(rows) if name in self.read_columns])

    def get_train_dataloader(self) -> DataLoader:
        """Return a data loader with one batch per micro-batch, each as large as a whole rollout."""
        rows = cast(Data, self.train_dataset)
        if is_stream(rows):
            return DataLoader(self.streamed_prompts(rows), batch_size=None, collate_fn=list)
        read = self._remove_unused_columns(rows, "Training")
        return self._get_dataloader(
            dataset=cast(TorchDataset, NumberedRows(read)),
            description="Training",
            batch_size=self._train_batch_size
            * self.args.completions_per_row
            * self.args.rollout_parts,
            sampler_fn=cast(Callable[[TorchDataset], Sampler], self._get_train_sampler),
            is_training=True,
        )

    def streamed_prompts(self, rows: IterableDataset) -> StreamedPrompts:
        """Return the prompts of a streamed dataset, shuffled in a buffer if settings say so."""
        args = self.args
        rows = self.read_alone(rows)
        if args.shuffle_dataset:
            rows = rows.shuffle(seed=self.order_seed)
        return StreamedPrompts(rows, group=args.num_generations, prompts=args.rollout_prompts)

    def get_eval_dataloader(self, eval_dataset: Data | str | None = None) -> DataLoader:
        """Return transformers' loader; a dataset given here is checked and may have no length."""
        if eval_dataset is not None and not isinstance(eval_dataset, str):
            eval_dataset = checked_prompts(eval_dataset, "eval_dataset")
        datasets = cast(Data, self.eval_dataset)
        chosen = datasets if eval_dataset is None else eval_dataset
        rows = datasets[chosen] if isinstance(chosen, str) else chosen
        if not is_stream(rows):
            return super().get_eval_dataloader(eval_dataset)
        check_dispatch(self.args)
        self.args.check_evaluation()
        rows = self.read_alone(rows)
        repeated = Repeated(rows.shuffle(seed=self.args.seed), self.args.generations_eval)
        return self.accelerator.prepare(
            DataLoader(repeated, batch_size=self.args.eval_batch_size, collate_fn=list)
        )

    def _get_train_sampler(self, train_dataset: Dataset | None = None) -> GroupSampler:  # pyright: ignore[reportIncompatibleMethodOverride]
        args = self.args
        return GroupSampler(
            cast(Dataset, self.train_dataset) if train_dataset is None else train_dataset,
            group=args.num_generations,
            prompts=args.rollout_prompts,
            repeats=args.rollout_uses,
            shuffle=bool(args.shuffle_dataset),
            seed=self.order_seed,
        )

    def _get_eval_sampler(self, eval_dataset: Dataset) -> GroupSampler:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.args.check_evaluation()
        return GroupSampler(eval_dataset, group=self.args.generations_eval, seed=self.args.seed)

    def _prepare_for_training(
        self, max_steps: int, train_dataloader: DataLoader, resume_from_checkpoint: str | None
    ) -> tuple[nn.Module, DataLoader]:
        self.prompts = self.prompt_stream(train_dataloader)
        self._completions = 0
        self.passes = PassRates(self.args.prompt_retirement)
        return super()._prepare_for_training(max_steps, train_dataloader, resume_from_checkpoint)

    def empty_epoch(self, rows: int) -> str:
        """Return the error of an epoch without a rollout: its prompts, and what to change."""
        return (
            f"train_dataset has {rows} prompts, which do not fill one rollout of "
            f"{self.args.rollout_prompts}: add prompts, or lower per_device_train_batch_size, "
            "steps_per_generation or generation_batch_size"
        )

    def prompt_stream(self, loader: DataLoader) -> PromptStream | StreamedPrompts:
        """Return all prompts in the order of the data loader's sampler, or of its stream.

        Raises:
            BadValue: the loader has no sampler of a known length.
        """
        if isinstance(loader.dataset, StreamedPrompts):
            return loader.dataset
        sampler, args = sampler_of(loader), self.args
        if not isinstance(sampler, RowNumbers):
            raise BadValue(
                f"get_train_dataloader gives a {type(loader).__name__} without a sampler of a "
                "known length: expected one of row numbers, such as _get_train_sampler gives"
            )
        return PromptStream(
            sampler,
            loader.dataset,
            group=args.num_generations,
            prompts=args.rollout_prompts,
            repeats=args.rollout_uses,
        )

    def own_state(self) -> ProcessState:
        """Return the position in the stream of prompts, and the counts of samples so far."""
        return {
            **super().own_state(),
            "drawn": self.prompts.drawn,
            "position": self.prompts.position,
            "num_completions": self._completions,
            "num_effective_prompts": self._effective,
            "passes": self.passes.counts,
        }

    def take_state(self, state: ProcessState) -> None:
        """Continue after the prompts that were drawn.

        A checkpoint without a position, such as TRL's, is assumed to have drawn one rollout's
        prompts for each rollout.
        """
        super().take_state(state)
        args = self.args
        micro_batches = self.state.global_step * args.gradient_accumulation_steps
        rollouts = -(-micro_batches // args.rollout_uses)
        drawn = state.get("drawn", rollouts * args.rollout_prompts)
        self.prompts.resume(drawn, state.get("position"))
        self._completions = state.get("num_completions", drawn * args.num_generations)
        self._effective = state.get("num_effective_prompts", 0)
        self.passes = PassRates(args.prompt_retirement, state.get("passes"))
        if args.prompt_retirement is not None:
            self.numbered_prompts().retired = self.passes.retired

    def numbered_prompts(self) -> PromptStream:
        """Return the stream of prompts, whose prompts have row numbers.

        Raises:
            BadValue: the prompts come from a dataset without a length.
        """
        if isinstance(self.prompts, StreamedPrompts):
            raise BadValue(
                "prompt_retirement needs prompts with numbers, but train_dataset is an "
                "IterableDataset: give a datasets.Dataset, or leave prompt_retirement out"
            )
        return self.prompts


def sampler_of(loader: DataLoader) -> object:
    """Return the sampler of a data loader before it is split between processes, else None."""
    batches: Any = loader.batch_sampler  # of torch, of accelerate or the user's own
    while hasattr(batches, "batch_sampler"):  # accelerate's share of one process
        batches = batches.batch_sampler
    return getattr(batches, "sampler", None)
