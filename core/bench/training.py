"""CPU seconds of the training half of a GRPO step: both sides learn from the same completions."""
# pyright: basic
# (strictly, every call into trl and transformers is partially unknown)

from collections.abc import Sequence
from time import process_time
from typing import Any

import torch

from core.bench.measure import Measure, in_turn
from core.bench.step import ROUNDS, peer, step_times
from core.configs.grpo import GRPOConfig
from core.trainers.grpo import GRPOTrainer


def bench_training() -> list[Measure]:
    """Rewards, reference, forward, backward and optimizer of the pocket step, without sampling.

    Raises:
        BadValue: TRL is not installed.
    """
    theirs = peer()
    torch.set_num_threads(1)
    played = Played()
    step_times(recorder(played), GRPOConfig)

    def times(trainer_class: Any, config_class: Any) -> Sequence[float]:
        played.seconds.clear()
        steps = step_times(trainer_class, config_class, rollout_func=played)
        return [step - played_s for step, played_s in zip(steps, played.seconds[1:], strict=True)]

    return [
        in_turn(
            lambda: times(GRPOTrainer, GRPOConfig),
            lambda: times(theirs.GRPOTrainer, theirs.GRPOConfig),
            ROUNDS,
            name="training step",
            unit="CPU s",
            peer="TRL",
            at_least=1.8,
        )
    ]


def recorder(played: "Played") -> type[GRPOTrainer]:
    """Our trainer, which samples what will be played."""

    class Recorder(GRPOTrainer):
        def generate(self, prompts: list[Any]) -> Any:
            generated = super().generate(prompts)
            played.kept[repr(prompts)] = {
                "prompt_ids": generated.prompt_ids,
                "completion_ids": generated.completion_ids,
                "logprobs": None,
            }
            return generated

    return Recorder


class Played:
    """A rollout function that gives what was recorded for its prompts, and notes its seconds."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Any]] = {}
        self.seconds: list[float] = []

    def __call__(self, prompts: list[Any], trainer: object) -> dict[str, Any]:  # noqa: ARG002 - the caller's signature
        """The completions kept for these prompts."""
        start = process_time()
        found = dict(self.kept[repr(prompts)])
        self.seconds.append(process_time() - start)
        return found
