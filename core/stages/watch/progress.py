"""Progress display of a training: a live bar on a terminal, plain lines elsewhere."""

from collections.abc import Mapping, Sequence
from time import monotonic

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from core.stages.watch.meter import Meter


class ProgressCallback(TrainerCallback):
    """Callback that shows the step, the family's numbers, tokens per second and the time left.

    `numbers` are logged metrics, each with its title and format.
    """

    def __init__(self, name: str, numbers: Sequence[tuple[str, str, str]]):
        self.name = name
        self.numbers = numbers
        self.shown: dict[str, str] = {}
        self.began = monotonic()
        self.tokens = self.first_tokens = 0.0
        self.meter: Meter | None = None

    def on_train_begin(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        **_: object,
    ) -> None:
        """Start the clock, and the meter of the first process."""
        self.began = monotonic()
        if state.is_world_process_zero:
            self.meter = Meter(self.name, first=state.global_step)

    def on_log(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        logs: Mapping[str, float | None] | None = None,
        **_: object,
    ) -> None:
        """Show the newest numbers."""
        if not logs or "train_runtime" in logs or self.meter is None:
            return
        for key, title, form in self.numbers:
            if key in logs:
                self.shown[title] = "-" if logs[key] is None else form.format(logs[key])
        tokens = float(logs.get("num_tokens") or self.tokens)
        self.first_tokens = self.first_tokens or tokens
        self.tokens = tokens
        numbers = [f"{title} {value}" for title, value in self.shown.items()]
        if self.tokens > self.first_tokens:
            numbers.append(f"{self.rate():.0f} tokens/s")
        step, last = state.global_step, state.max_steps
        self.meter.show(step, last, "  ".join(numbers), now=step in (0, last))

    def on_train_end(self, *_: object, **__: object) -> None:
        """Stop the bar; its last state stays on the screen."""
        if self.meter is not None:
            self.meter.close()
            self.meter = None

    def rate(self) -> float:
        """Return the tokens per second since this process began."""
        return (self.tokens - self.first_tokens) / max(monotonic() - self.began, 1e-9)
