"""The completions behind the latest log, as a parquet file and as a table on the terminal."""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import SupportsFloat, TypedDict
from urllib.parse import quote

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from core.configs.rollout import RolloutConfig
from core.rewards.completions import Completion, completion_text
from eval.errors import BadValue
from eval.terminal import visible

OWN_COLUMNS = ("step", "prompt", "completion", "advantage")  # columns that no reward gives


class RewardLogs:
    """Values that reward functions log about a rollout: table columns and metrics."""

    def __init__(self):
        self.columns: dict[str, list[object]] = defaultdict(list)
        self.metrics: dict[str, list[float]] = defaultdict(list)

    def log_extra(self, column: str, values: Sequence[object]) -> None:
        """Add one value per completion to a column of the completion table.

        Raises:
            BadValue: a value cannot be stored in a checkpoint.
        """
        self.columns[column].extend(to_plain_value(value, column) for value in values)

    def log_metric(self, name: str, value: SupportsFloat) -> None:
        """Add a number to the metric `name`, of which the log shows the mean over the rollout.

        Raises:
            BadValue: `value` is no number.
        """
        try:
            self.metrics[name].append(float(value))
        except (TypeError, ValueError) as error:
            raise BadValue(f"log_metric({name!r}, {value!r}): expected a number") from error

    def column(self, name: str, count: int) -> list[object]:
        """Return the last `count` values of a column, one per completion; None if it has none.

        Raises:
            BadValue: the number of values is no multiple of `count`.
        """
        absent: list[object] = [None] * count
        values = self.columns.get(name, absent)
        if len(values) % count:
            raise BadValue(
                f"log_extra({name!r}, ...) got {len(values)} values for {count} completions: "
                "expected one for each"
            )
        return values[-count:]


def to_plain_value(value: object, column: str) -> object:
    """Convert a value to text, numbers, lists and mappings, which a checkpoint can store.

    Raises:
        BadValue: the value is of another type.
    """
    tolist: Callable[[], object] | None = getattr(value, "tolist", None)  # of numpy or torch
    value = value if tolist is None else tolist()
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple):
        return [to_plain_value(part, column) for part in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: to_plain_value(part, column) for key, part in value.items()}
    raise BadValue(
        f"log_extra({column!r}, ...): a value of type {type(value).__name__} cannot be kept in a "
        "checkpoint: give text or numbers, such as str(value)"
    )


class LogState(TypedDict):
    """The rows of a completion log in a checkpoint, and its columns that are rewards."""

    columns: dict[str, list[object]]
    rewards: list[str]


class CompletionLog:
    """Latest prompts, completions, rewards and advantages of the training or of an evaluation.

    Args:
        size: Number of rows that are kept; None keeps all.
        name: Prefix of an evaluation's metrics; empty for the training.
    """

    def __init__(self, size: int | None, name: str = ""):
        self.name = name
        self.columns: dict[str, deque[object]] = defaultdict(lambda: deque(maxlen=size))
        self.rewards: list[str] = []

    def add(
        self,
        prompts: Sequence[Completion],
        completions: Sequence[Completion],
        rewards: Mapping[str, Sequence[float]] = MappingProxyType({}),
        extra: Mapping[str, Sequence[object]] = MappingProxyType({}),
        advantages: Sequence[float] | Sequence[Sequence[float]] | None = None,
    ) -> None:
        """Append the rows of a rollout; the oldest rows beyond `size` are dropped.

        A column that lacks values gets None; without `advantages` there is no column of them. A
        reward or extra column with the name of another column gets a prefix.
        """
        self.rewards = [prefix_if_taken(OWN_COLUMNS, name, "reward/") for name in rewards]
        names_in_use = (*OWN_COLUMNS, *self.rewards)
        rows = {
            "prompt": prompts,
            "completion": completions,
            **dict(zip(self.rewards, rewards.values(), strict=True)),
            **{
                prefix_if_taken(names_in_use, name, "extra/"): values
                for name, values in extra.items()
            },
            **({} if advantages is None else {"advantage": advantages}),
        }
        before, n = len(self.columns["prompt"]), len(prompts)
        for name in dict.fromkeys([*self.columns, *rows]):
            column = self.columns[name]
            column.extend([None] * (before - len(column)))
            column.extend(rows.get(name, [None] * n))

    def state(self) -> LogState:
        """Return the rows as plain values, for a checkpoint."""
        columns = {name: list(values) for name, values in self.columns.items()}
        return {"columns": columns, "rewards": self.rewards}

    def take_state(self, state: LogState) -> None:
        """Restore the rows that `state` returned."""
        self.rewards = state["rewards"]
        for name, values in state["columns"].items():
            self.columns[name].extend(values)

    def frame(self, step: int) -> pd.DataFrame:
        """Return TRL's table: step, prompt, completion, rewards, extra columns, advantage."""
        columns = {name: list(values) for name, values in self.columns.items()}
        return pd.DataFrame({"step": [step] * len(columns.get("prompt", [])), **columns})

    def write(self, folder: Path, step: int) -> pd.DataFrame:
        """Write `completions_<step>.parquet` and return its table.

        The file of an evaluation is `completions_<name>_<step>.parquet`.
        """
        folder.mkdir(parents=True, exist_ok=True)
        frame = self.frame(step)
        prefix = f"{quote(self.name, safe='')}_" if self.name else ""
        frame.to_parquet(folder / f"completions_{prefix}{step:05d}.parquet")
        return frame

    def show(self, step: int, rows: int) -> None:
        """Print the first `rows` completions to stderr."""
        table = Table(title=f"{self.name} completions at step {step}".strip(), show_lines=True)
        numbered = [name for name in (*self.rewards, "advantage") if name in self.columns]
        for name in ("prompt", "completion", *numbered):
            table.add_column(name)
        for row in self.frame(step).head(rows).to_dict("records"):
            texts = (completion_text(row["prompt"]), completion_text(row["completion"]))
            numbers = (format_number(row[name]) for name in numbered)
            # As texts: rich would read the brackets of a string as markup.
            table.add_row(*(Text(visible(cell)) for cell in (*texts, *numbers)))
        Console(stderr=True).print(table)


def prefix_if_taken(names_in_use: Collection[str], name: str, prefix: str) -> str:
    """Return `name`, with the prefix if another column has that name."""
    return prefix + name if name in names_in_use else name


def format_number(value: float | Sequence[float]) -> str:
    """Format one number, or the first and last of a completion's token advantages."""
    if isinstance(value, Sequence):
        return f"{value[0]:.2f} .. {value[-1]:.2f}" if value else ""
    return f"{value:.2f}"


def report_completions(log: CompletionLog, args: RolloutConfig, step: int) -> None:
    """Write the completions, print them, and send them to W&B if a run is active there."""
    frame = log.write(Path(str(args.output_dir)) / "completions", step)
    limit = args.num_completions_to_print
    log.show(step, args.rollout_size if limit is None else limit)
    if "wandb" not in (args.report_to or []):
        return
    import wandb  # only there with the extra of the same name

    if wandb.run is not None:
        repeated = frame["prompt"].astype(str).duplicated()
        rows = frame.loc[~repeated] if args.log_unique_prompts else frame
        table = wandb.Table(dataframe=pd.DataFrame(rows))
        name = f"{log.name}/completions" if log.name else "completions"
        wandb.log({name: table}, commit=False)  # in one row with the numbers of this log
