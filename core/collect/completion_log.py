"""The completions behind the latest log: a parquet file each time, and a table on the screen."""

from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from core.configs.rollout import RolloutConfig
from core.rewards.completions import Completion, completion_text
from eval.errors import BadValue
from eval.terminal import visible

OWN = ("step", "prompt", "completion", "advantage")  # columns that no reward gives


class RewardLogs:
    """What the reward functions log about a rollout: columns for its table, and metrics."""

    def __init__(self):
        self.columns: dict[str, list[Any]] = defaultdict(list)
        self.metrics: dict[str, list[float]] = defaultdict(list)

    def log_extra(self, column: str, values: Sequence[Any]) -> None:
        """Take one value per completion for a column of the table.

        Raises:
            BadValue: a checkpoint could not keep a value.
        """
        self.columns[column].extend(plain(value, column) for value in values)

    def log_metric(self, name: str, value: Any) -> None:
        """Take a number of this rollout, of which the log shows the mean.

        Raises:
            BadValue: it is no number.
        """
        try:
            self.metrics[name].append(float(value))
        except (TypeError, ValueError) as error:
            raise BadValue(f"log_metric({name!r}, {value!r}): expected a number") from error

    def column(self, name: str, n: int) -> list[Any]:
        """The values of a column for `n` completions: those given last, None if none are.

        Raises:
            BadValue: there is another number of them.
        """
        values = self.columns.get(name, [None] * n)
        if len(values) % n:
            raise BadValue(
                f"log_extra({name!r}, ...) got {len(values)} values for {n} completions: expected "
                "one for each"
            )
        return values[-n:]


def plain(value: Any, column: str) -> Any:
    """A value as texts, numbers, lists and mappings of them, which a checkpoint can keep.

    Raises:
        BadValue: it is something else.
    """
    if hasattr(value, "tolist"):  # of numpy or torch
        value = value.tolist()
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple):
        return [plain(part, column) for part in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain(part, column) for key, part in value.items()}
    raise BadValue(
        f"log_extra({column!r}, ...): a value of type {type(value).__name__} cannot be kept in a "
        "checkpoint: give text or numbers, such as str(value)"
    )


class CompletionLog:
    """The latest prompts, completions, rewards and advantages of the training or an evaluation.

    Args:
        size: How many rows are kept; all if None.
        name: The prefix of an evaluation's metrics, empty for the training.
    """

    def __init__(self, size: int | None, name: str = ""):
        self.name = name
        self.columns: dict[str, deque[Any]] = defaultdict(lambda: deque(maxlen=size))
        self.rewards: list[str] = []

    def add(
        self,
        prompts: Sequence[Completion],
        completions: Sequence[Completion],
        rewards: Mapping[str, Sequence[float]],
        extra: Mapping[str, Sequence[Any]],
        advantages: Sequence[Any],
    ) -> None:
        """Append the rows of a rollout, None where a column has nothing; the oldest fall out.

        A reward or an extra column that has the name of another column gets a prefix.
        """
        self.rewards = [beside(OWN, name, "reward/") for name in rewards]
        taken = (*OWN, *self.rewards)
        rows = {
            "prompt": prompts,
            "completion": completions,
            **dict(zip(self.rewards, rewards.values(), strict=True)),
            **{beside(taken, name, "extra/"): values for name, values in extra.items()},
            "advantage": advantages,
        }
        before, n = len(self.columns["prompt"]), len(prompts)
        for name in dict.fromkeys([*self.columns, *rows]):
            column = self.columns[name]
            column.extend([None] * (before - len(column)))
            column.extend(rows.get(name, [None] * n))

    def state(self) -> dict[str, Any]:
        """The rows as plain values, for a checkpoint."""
        columns = {name: list(values) for name, values in self.columns.items()}
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
        """Write `completions_<step>.parquet`, of an evaluation `completions_<name>_<step>`."""
        folder.mkdir(parents=True, exist_ok=True)
        frame = self.frame(step)
        of = f"{quote(self.name, safe='')}_" if self.name else ""
        frame.to_parquet(folder / f"completions_{of}{step:05d}.parquet")
        return frame

    def show(self, step: int, rows: int) -> None:
        """Print the first `rows` completions."""
        table = Table(title=f"{self.name} completions at step {step}".strip(), show_lines=True)
        for name in ("prompt", "completion", *self.rewards, "advantage"):
            table.add_column(name)
        for row in self.frame(step).head(rows).to_dict("records"):
            texts = (completion_text(row["prompt"]), completion_text(row["completion"]))
            numbers = (shown(row[name]) for name in (*self.rewards, "advantage"))
            # As texts: rich would read the brackets of a string as markup.
            table.add_row(*(Text(visible(cell)) for cell in (*texts, *numbers)))
        Console(stderr=True).print(table)


def beside(taken: Collection[str], name: str, prefix: str) -> str:
    """Return the name of a column, with the prefix if another column has the name."""
    return prefix + name if name in taken else name


def shown(value: Any) -> str:
    """One number, or the first and last of a completion's token advantages."""
    if isinstance(value, Sequence):
        return f"{value[0]:.2f} .. {value[-1]:.2f}" if value else ""
    return f"{value:.2f}"


def report_completions(log: CompletionLog, args: RolloutConfig, step: int) -> None:
    """Write the completions, print them, and send them to W&B if a run is open there."""
    frame = log.write(Path(str(args.output_dir)) / "completions", step)
    most = args.num_completions_to_print
    log.show(step, args.rollout_size if most is None else most)
    if "wandb" not in (args.report_to or []):
        return
    import wandb  # only there with the extra of the same name

    if wandb.run is not None:
        repeated = frame["prompt"].astype(str).duplicated()
        rows = frame.loc[~repeated] if args.log_unique_prompts else frame
        table = wandb.Table(dataframe=pd.DataFrame(rows))
        name = f"{log.name}/completions" if log.name else "completions"
        wandb.log({name: table}, commit=False)  # in one row with the numbers of this log
