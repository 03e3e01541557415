"""Timer of the phases of a run: seconds and share of each."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from eval.terminal import say

PHASES = ("rollout", "rewards", "reference", "forward", "backward", "optimizer")


class Phases:
    """Timer of nested phases; time inside an inner phase counts for the inner phase only.

    Used as `with phases("rollout"): ...`. `backward` may wrap a whole training step whose other
    parts have phases of their own. `synchronize` is called at each border, such as
    `torch.cuda.synchronize`, since kernels run asynchronously.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = perf_counter,
        synchronize: Callable[[], object] | None = None,
    ):
        self._clock = clock
        self._synchronize = synchronize
        self._open: list[str] = []
        self._began: float | None = None
        self._since = 0.0
        self.seconds: dict[str, float] = dict.fromkeys(PHASES, 0.0)
        self.calls: dict[str, int] = dict.fromkeys(PHASES, 0)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Count the time inside the block for a phase, less that of inner phases."""
        self.enter(name)
        try:
            yield
        finally:
            self.leave(name)

    def enter(self, name: str) -> None:
        """Open a phase where a `with` block does not fit; `leave` closes it."""
        self._turn()
        self._open.append(name)
        self.calls[name] = self.calls.get(name, 0) + 1

    def leave(self, name: str) -> None:
        """Close the innermost phase, which must be `name`.

        Raises:
            RuntimeError: another phase is open.

        """
        if not self._open or self._open[-1] != name:
            inner = self._open[-1] if self._open else "none"
            raise RuntimeError(
                f"phase {name!r} is closed while the innermost open one is {inner!r}"
            )
        self._turn()
        self._open.pop()

    @property
    def elapsed_s(self) -> float:
        """Seconds from the first border of a phase to the last one."""
        return 0.0 if self._began is None else self._since - self._began

    def summary(self) -> dict[str, float]:
        """Return the seconds of each phase that ran and of `other`; they sum to `elapsed_s`."""
        ran = {name: self.seconds[name] for name, calls in self.calls.items() if calls}
        return {**ran, "other": max(0.0, self.elapsed_s - sum(ran.values()))} if ran else {}

    def table(self) -> str:
        """Return a text table of the phases, with seconds and share of the elapsed time."""
        total = self.elapsed_s or 1.0
        rows = [
            (name, f"{s:.2f}", f"{100 * s / total:.1f} %") for name, s in self.summary().items()
        ]
        if not rows:
            return "no phase was timed"
        lines = [
            ("phase", "seconds", "share"),
            *rows,
            ("total", f"{self.elapsed_s:.2f}", "100.0 %"),
        ]
        return "\n".join(f"{name:<10}{seconds:>10}{share:>9}" for name, seconds, share in lines)

    def _turn(self) -> None:
        """Add the time since the last border to the phase that was running."""
        if self._synchronize is not None:
            self._synchronize()
        now = self._clock()
        if self._began is None:
            self._began = now
        elif self._open:
            self.seconds[self._open[-1]] = self.seconds.get(self._open[-1], 0.0) + now - self._since
        self._since = now


class PhaseCallback(TrainerCallback):
    """Callback that times the optimizer and prints the table at the end of training."""

    def __init__(self, phases: Phases):
        self.phases = phases

    def on_pre_optimizer_step(self, *_: object, **__: object) -> None:
        """Open the phase `optimizer`."""
        self.phases.enter("optimizer")

    def on_optimizer_step(self, *_: object, **__: object) -> None:
        """Close the phase `optimizer`."""
        self.phases.leave("optimizer")

    def on_train_end(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        **_: object,
    ) -> None:
        """Print the table on the main process."""
        if state.is_world_process_zero:
            say(self.phases.table())
