"""The completions behind the latest log: a parquet file each time, and a table on the screen."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table

from core.configs.grpo import GRPOConfig
from core.rewards.completions import Completion, completion_text


class CompletionLog:
    """Keeps the last rollout's prompts, completions, rewards and advantages."""

    def __init__(self, size: int):
        self.size = size
        self.columns: dict[str, deque[Any]] = defaultdict(lambda: deque(maxlen=size))
        self.rewards: list[str] = []

    def add(
        self,
        prompts: Sequence[Completion],
        completions: Sequence[Completion],
        rewards: dict[str, Sequence[float]],
        extra: dict[str, Sequence[Any]],
        advantages: Sequence[Any],
    ) -> None:
        """Append the rows of a rollout; the oldest fall out."""
        self.rewards = list(rewards)
        rows = {"prompt": prompts, "completion": completions, **rewards, **extra}
        for name, values in {**rows, "advantage": advantages}.items():
            self.columns[name].extend(values)

    def state(self) -> dict[str, Any]:
        """The rows as plain values, for a checkpoint."""
        columns = {name: [plain(v) for v in values] for name, values in self.columns.items()}
        return {"columns": columns, "rewards": self.rewards}

    def take_state(self, state: Mapping[str, Any]) -> None:
        """Go on with the rows that `state` gave."""
        self.rewards = state["rewards"]
        for name, values in state["columns"].items():
            self.columns[name].extend(values)

    def frame(self, step: int) -> pd.DataFrame:
        """Rows as TRL writes them: step, prompt, completion, rewards, extra columns, advantage."""
        columns = {name: list(values) for name, values in self.columns.items()}
        return pd.DataFrame({"step": [step] * len(columns.get("prompt", [])), **columns})

    def write(self, folder: Path, step: int) -> pd.DataFrame:
        """Write `completions_<step>.parquet`."""
        folder.mkdir(parents=True, exist_ok=True)
        frame = self.frame(step)
        frame.to_parquet(folder / f"completions_{step:05d}.parquet")
        return frame

    def show(self, step: int, rows: int | None) -> None:
        """Print the first `rows` completions, all of them if None."""
        table = Table(title=f"completions at step {step}", show_lines=True)
        for name in ("prompt", "completion", *self.rewards, "advantage"):
            table.add_column(name)
        for row in (
            self.frame(step).head(rows if rows is not None else self.size).to_dict("records")
        ):
            texts = (completion_text(row["prompt"]), completion_text(row["completion"]))
            numbers = (shown(row[name]) for name in (*self.rewards, "advantage"))
            table.add_row(*texts, *numbers)
        Console(stderr=True).print(table)


def plain(value: Any) -> Any:
    """Turn a number of numpy or torch into Python's."""
    return value.item() if hasattr(value, "item") else value


def shown(value: Any) -> str:
    """One number, or the first and last of a completion's token advantages."""
    if isinstance(value, Sequence):
        return f"{value[0]:.2f} .. {value[-1]:.2f}" if value else ""
    return f"{value:.2f}"


def report_completions(log: CompletionLog, args: GRPOConfig, step: int) -> None:
    """Write the completions, print them, and send them to W&B if a run is open there."""
    frame = log.write(Path(str(args.output_dir)) / "completions", step)
    log.show(step, args.num_completions_to_print)
    if "wandb" not in (args.report_to or []):
        return
    import wandb  # only there with the extra of the same name

    if wandb.run is not None:
        repeated = frame["prompt"].astype(str).duplicated()
        rows = frame.loc[~repeated] if args.log_unique_prompts else frame
        table = wandb.Table(dataframe=pd.DataFrame(rows))
        wandb.log({"completions": table}, commit=False)  # in one row with the numbers of this log
