"""CPU seconds of the training half of a GRPO step, with the same completions on both sides.

There are two workloads: completions as the pocket policy samples them, of nearly one length, and
the same completions cut or repeated to lengths drawn between 1 and the longest allowed.
"""
# pyright: basic
# (strictly, every call into trl and transformers is partially unknown)

from collections.abc import Sequence
from itertools import cycle, islice
from random import Random
from time import process_time
from typing import TypedDict

import torch

from core.bench.measure import Measure, in_turn
from core.bench.step import ROUNDS, ConfigClass, TrainerClass, peer, step_settings, step_times
from core.collect.generation import Generated
from core.configs.grpo import GRPOConfig
from core.rewards.completions import Completion
from core.trainers.grpo import GRPOTrainer

SEED = 7  # of the unequal lengths


def bench_training() -> list[Measure]:
    """Measure rewards, reference, forward, backward and optimizer of the pocket step.

    Torch is limited to one thread from then on.

    Raises:
        BadValue: TRL is not installed.
    """
    theirs = peer()
    torch.set_num_threads(1)
    recorded = RecordedRollouts()
    step_times(recorder(recorded), GRPOConfig)

    def times(
        rollouts: RecordedRollouts, trainer_class: TrainerClass, config_class: ConfigClass
    ) -> Sequence[float]:
        rollouts.seconds.clear()
        steps = step_times(trainer_class, config_class, rollout_func=rollouts)
        return [step - replay for step, replay in zip(steps, rollouts.seconds[1:], strict=True)]

    return [
        in_turn(
            lambda rollouts=rollouts: times(rollouts, GRPOTrainer, GRPOConfig),
            lambda rollouts=rollouts: times(rollouts, theirs.GRPOTrainer, theirs.GRPOConfig),
            ROUNDS,
            name=f"training step, {lengths} lengths",
            unit="CPU s",
            peer="TRL",
            at_least=5.0,
        )
        for lengths, rollouts in {
            "equal": recorded,
            "unequal": recorded.with_unequal_lengths(step_settings()["max_completion_length"]),
        }.items()
    ]


def recorder(rollouts: "RecordedRollouts") -> type[GRPOTrainer]:
    """Return a trainer class that keeps the completions it samples in `rollouts`."""

    class Recorder(GRPOTrainer):
        def generate(self, prompts: list[Completion]) -> Generated:
            generated = super().generate(prompts)
            rollouts.completions[repr(prompts)] = {
                "prompt_ids": generated.prompt_ids,
                "completion_ids": generated.completion_ids,
                "logprobs": None,
            }
            return generated

    return Recorder


class RecordedRollout(TypedDict):
    """A result of a rollout function."""

    prompt_ids: Sequence[Sequence[int]]
    completion_ids: Sequence[Sequence[int]]
    logprobs: None


class RecordedRollouts:
    """A rollout function that replays recorded completions by their prompts.

    Attributes:
        completions: Results of the rollout function by the repr of their prompts.
        seconds: CPU seconds of each call.
    """

    def __init__(self, completions: dict[str, RecordedRollout] | None = None) -> None:
        self.completions = {} if completions is None else completions
        self.seconds: list[float] = []

    def __call__(self, prompts: list[Completion], trainer: object) -> RecordedRollout:  # noqa: ARG002 - the caller's signature
        """Return the completions recorded for these prompts."""
        start = process_time()
        completions = self.completions[repr(prompts)].copy()
        self.seconds.append(process_time() - start)
        return completions

    def with_unequal_lengths(self, longest: int) -> "RecordedRollouts":
        """Return the same rollouts, each completion cut or repeated to a length in [1, longest]."""
        lengths = Random(SEED)
        return RecordedRollouts(
            {
                prompts: {
                    **rollout,
                    "completion_ids": [
                        list(islice(cycle(ids), lengths.randint(1, longest)))
                        for ids in rollout["completion_ids"]
                    ],
                }
                for prompts, rollout in self.completions.items()
            }
        )
