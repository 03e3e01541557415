"""What a training shows while it runs: a live bar on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Sequence
from time import monotonic
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from core.run.stages.stage import say

LINE_S = 10.0  # seconds between two plain lines


class ProgressCallback(TrainerCallback):
    """Step, the family's numbers, tokens per second and the time left.

    `numbers` are logged metrics, each with its title and format.
    """

    def __init__(self, name: str, numbers: Sequence[tuple[str, str, str]]):
        self.name = name
        self.numbers = numbers
        self.shown: dict[str, str] = {}
        self.began = self.last_line = monotonic()
        self.first_step = self.tokens = self.first_tokens = 0.0
        self.bar: Progress | None = None

    def on_train_begin(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        **_: object,
    ) -> None:
        """Start the clock, and the bar if someone is looking."""
        self.began, self.first_step = monotonic(), state.global_step
        if sys.stderr.isatty() and state.is_world_process_zero:
            self.bar = Progress(
                TextColumn(self.name),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[numbers]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self.bar.add_task("train", total=state.max_steps, numbers="")
            self.bar.start()

    def on_log(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        logs: dict[str, Any] | None = None,
        **_: object,
    ) -> None:
        """Show the newest numbers."""
        if not logs or "train_runtime" in logs or not state.is_world_process_zero:
            return
        self.shown |= {
            title: "-" if logs[key] is None else form.format(logs[key])
            for key, title, form in self.numbers
            if key in logs
        }
        tokens = float(logs.get("num_tokens", self.tokens))
        self.first_tokens = self.first_tokens or tokens
        self.tokens = tokens
        numbers = "  ".join(f"{title} {value}" for title, value in self.shown.items())
        if self.bar is not None:
            rate = f"  {self.rate():.0f} tokens/s" if self.tokens else ""
            self.bar.update(
                self.bar.task_ids[0], completed=state.global_step, numbers=numbers + rate
            )
        elif monotonic() - self.last_line > LINE_S or state.global_step in (0, state.max_steps):
            self.last_line = monotonic()
            step = f"{self.name}: step {state.global_step}/{state.max_steps}"
            say(f"{step}  {numbers}{self.ending(state)}")

    def on_train_end(self, *_: object, **__: object) -> None:
        """Leave the last state of the bar on the screen."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def rate(self) -> float:
        """Tokens a second since this process began."""
        return (self.tokens - self.first_tokens) / max(monotonic() - self.began, 1e-9)

    def ending(self, state: TrainerState) -> str:
        """Tokens per second and the time left, once a step has been timed."""
        steps = state.global_step - self.first_step
        if steps < 1:
            return ""
        left = (monotonic() - self.began) / steps * (state.max_steps - state.global_step)
        return f"  {self.rate():.0f} tokens/s  {left:.0f} s left"
