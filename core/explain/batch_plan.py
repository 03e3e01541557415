"""Batch plan of a run: how its prompts become rollouts, micro-batches and updates."""

from dataclasses import dataclass
from math import ceil
from typing import Protocol

from eval.errors import BadValue


class BatchArguments(Protocol):
    """Fields of a GRPO configuration that determine the batch plan."""

    per_device_train_batch_size: int
    gradient_accumulation_steps: int
    num_train_epochs: float
    max_steps: int
    num_generations: int
    num_iterations: int
    steps_per_generation: int | None
    generation_batch_size: int | None
    max_completion_length: int | None
    rollout_draws: int

    @property
    def completions_per_row(self) -> int:
        """Completions that `per_device_train_batch_size` counts as one."""
        ...

    @property
    def has_ratio(self) -> bool:
        """True if the loss has a ratio to the policy that sampled."""
        ...


@dataclass(frozen=True, kw_only=True)
class BatchPlan:
    """Sizes and numbers of the rollouts, micro-batches and updates of a run.

    A rollout is one call of the sampler, a micro-batch one forward and backward pass on one
    process, an update one optimizer step. An epoch has whole rollouts only; prompts that do not
    fill one are left out. A selection may draw prompts up to `draws` times per rollout.
    """

    prompts: int
    completions_per_prompt: int
    prompts_per_rollout: int
    rollouts_per_epoch: int
    micro_batch: int
    micro_batches_per_rollout: int  # on each process
    iterations: int
    accumulation: int
    world_size: int
    updates: int
    max_completion_length: int
    draws: int = 1
    has_ratio: bool = True  # whether the loss has a ratio to the policy of the rollout

    @property
    def completions_per_rollout(self) -> int:
        """Number of completions per rollout, over all processes."""
        return self.prompts_per_rollout * self.completions_per_prompt

    @property
    def passes_per_rollout(self) -> int:
        """Number of micro-batches per rollout on each process, repeated passes included."""
        return self.micro_batches_per_rollout * self.iterations

    @property
    def updates_per_rollout(self) -> float:
        """Number of optimizer steps per rollout; below 1 if an update needs several rollouts."""
        return self.passes_per_rollout / self.accumulation

    @property
    def completions_per_update(self) -> int:
        """Number of completions per optimizer step, over all processes."""
        return self.micro_batch * self.accumulation * self.world_size

    @property
    def left_out(self) -> int:
        """Number of prompts of an epoch that do not fill a whole rollout."""
        return self.prompts - self.rollouts_per_epoch * self.prompts_per_rollout

    @property
    def incomplete_micro_batches(self) -> int:
        """Number of micro-batches in an incomplete last update of an epoch; 0 if it is complete."""
        return self.rollouts_per_epoch * self.passes_per_rollout % self.accumulation

    @property
    def updates_per_epoch(self) -> int:
        """Number of optimizer steps per epoch, an incomplete last one included."""
        return -(-self.rollouts_per_epoch * self.passes_per_rollout // self.accumulation)

    @property
    def rollouts(self) -> int:
        """Number of rollouts of the run; the last one may be used in part."""
        epochs, extra_updates = divmod(self.updates, self.updates_per_epoch)
        passes = min(
            extra_updates * self.accumulation, self.rollouts_per_epoch * self.passes_per_rollout
        )
        return epochs * self.rollouts_per_epoch + -(-passes // self.passes_per_rollout)

    @property
    def sampled_tokens(self) -> int:
        """Largest number of completion tokens that the run can sample."""
        sampled = self.rollouts * self.draws * self.completions_per_rollout
        return sampled * self.max_completion_length

    @property
    def trained_tokens(self) -> int:
        """Largest number of completion tokens that the loss reads, each repetition counted."""
        return self.updates * self.completions_per_update * self.max_completion_length

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        lines = [
            "Batch plan",
            f"  one rollout    {_n(self.prompts_per_rollout, 'prompt')} x"
            f" {_n(self.completions_per_prompt, 'completion')} each"
            f" = {_n(self.completions_per_rollout, 'completion')} in"
            f" {_n(self.prompts_per_rollout, 'group')}",
            f"  one pass       {_n(self.micro_batch, 'completion')} (a micro-batch) on"
            f" {'one process' if self.world_size == 1 else f'each of {self.world_size} processes'}",
            f"  one update     {_n(self.accumulation, 'micro-batch', 'micro-batches')}"
            f" = {_n(self.completions_per_update, 'completion')}",
            f"  per rollout    {_n(self.micro_batches_per_rollout, 'micro-batch', 'micro-batches')}"
            f" used {_times(self.iterations)}: {_number(self.updates_per_rollout)} "
            f"{'update' if self.updates_per_rollout == 1 else 'updates'}",
            f"  one epoch      {_n(self.prompts, 'prompt')}:"
            f" {_n(self.rollouts_per_epoch, 'rollout')}, {_n(self.updates_per_epoch, 'update')}",
            f"  the run        {_n(self.updates, 'update')}, {_n(self.rollouts, 'rollout')},"
            f" at most {self.sampled_tokens:,} tokens sampled"
            f" and {self.trained_tokens:,} trained on"
            f" ({self.max_completion_length:,} per completion, prompts not counted)",
        ]
        return lines + [f"  note           {note}" for note in self._notes()]

    def _notes(self) -> list[str]:
        notes = []
        if self.left_out:
            notes.append(
                f"{_n(self.left_out, 'prompt')} of each epoch"
                f" {'fills' if self.left_out == 1 else 'fill'} no whole rollout and"
                f" {'is' if self.left_out == 1 else 'are'} not used in it"
            )
        if self.draws > 1:
            notes.append(
                f"prompts are drawn up to {_times(self.draws)} for a rollout, until it is full:"
                " an epoch of updates may visit them more than once"
            )
        if self.incomplete_micro_batches:
            notes.append(
                f"the last update of each epoch has {self.incomplete_micro_batches} of"
                f" {self.accumulation} micro-batches"
            )
        if self.updates_per_rollout > 1:
            note = "later updates of a rollout train on samples of an older policy"
            effect = ": the ratio leaves 1 and the clip acts" if self.has_ratio else ""
            notes.append(note + effect)
        return notes


def batch_plan(args: BatchArguments, n_prompts: int, world_size: int = 1) -> BatchPlan:
    """Return the batch plan of a configuration for a dataset of `n_prompts` prompts.

    Raises:
        BadValue: the dataset does not fill a rollout, or a rollout does not split into groups
            and micro-batches.
    """
    micro_batch = args.per_device_train_batch_size * args.completions_per_row
    per_pass = micro_batch * world_size
    steps = args.steps_per_generation or args.gradient_accumulation_steps
    completions = args.generation_batch_size or per_pass * steps
    if completions % args.num_generations or completions % per_pass:
        raise BadValue(
            f"a rollout of {completions} completions does not split evenly into micro-batches of"
            f" {per_pass} and groups of {args.num_generations}: change"
            " per_device_train_batch_size, steps_per_generation or num_generations"
        )
    prompts = completions // args.num_generations
    if n_prompts < prompts:
        raise BadValue(
            f"{n_prompts} prompts do not fill one rollout of {prompts} prompts: add prompts, or"
            " lower per_device_train_batch_size or steps_per_generation"
        )
    rollouts = n_prompts // prompts
    passes = rollouts * (completions // per_pass) * args.num_iterations
    per_epoch = -(-passes // args.gradient_accumulation_steps)
    updates = args.max_steps if args.max_steps > 0 else ceil(args.num_train_epochs * per_epoch)
    return BatchPlan(
        prompts=n_prompts,
        completions_per_prompt=args.num_generations,
        prompts_per_rollout=prompts,
        rollouts_per_epoch=rollouts,
        micro_batch=micro_batch,
        micro_batches_per_rollout=completions // per_pass,
        iterations=args.num_iterations,
        accumulation=args.gradient_accumulation_steps,
        world_size=world_size,
        updates=updates,
        max_completion_length=args.max_completion_length or 0,
        draws=args.rollout_draws,
        has_ratio=args.has_ratio,
    )


def _n(count: int, singular: str, plural: str | None = None) -> str:
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _number(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:.2f}"
