"""The data stage, which writes the rows to train on and to hold out for the family's trainer."""

import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from core.data.data_set import ANSWER, DataSet
from core.data.prompts import Prompts
from core.data.sources import File, Row
from core.families.family import Family
from core.records.files import file_digest
from core.settings.bounds import check_held_out
from core.settings.run_settings import ONE_IN
from core.stages.sources import rows_version
from core.stages.stage import Stage
from eval.errors import BadValue, DamagedFile
from eval.json_lines import answer_text, as_answer, json_lines
from eval.terminal import say

ROWS = "rows.jsonl"
TRAIN, VALID = "train", "valid"  # what is trained on, and what is held out


@dataclass(frozen=True)
class Data(Stage):
    """The rows of data sets with the columns that a run reads.

    Rows are held out of the data sets' own splits if all of them have one. Rows that a stage of
    `row_stages` makes come with the held-out rows of its prompts if these have the columns that the
    family needs. So a filter of prompts changes what is trained on and not what is measured.
    """

    name = "data"
    sets: tuple[DataSet, ...]
    family: Family
    row_stages: "Mapping[str, MadeRows]" = field(default_factory=dict[str, "MadeRows"])
    prompts: Prompts = field(default_factory=Prompts)
    reads: tuple[str, ...] | None = None

    @property
    def inputs(self) -> Mapping[str, object]:
        """The data sets, the versions of their sources, and the family's name and columns."""
        keys = {
            data_set.name: self.row_stages[data_set.name].key
            for data_set in self.sets
            if data_set.name in self.row_stages
        }
        return {
            "data": "+".join(keys.get(data_set.name, data_set.name) for data_set in self.sets),
            "sources": {
                data_set.name: rows_version(data_set)
                for data_set in self.sets
                if data_set.name not in keys
            },
            "family": self.family.name,
            "columns": self.family.columns,
            **({"prompts": self.prompts.wording} if self.prompts.act else {}),
            **({"held_out": "of the prompts"} if self.row_stages and self.holds_out else {}),
        }

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that every row must have: those of the run, or else those of its family."""
        return self.family.columns if self.reads is None else self.reads

    @property
    def subject(self) -> str:
        """The names of the data sets, joined by "+"."""
        return "+".join(data_set.name for data_set in self.sets)

    def work(self, folder: Path) -> Mapping[str, object]:
        """Write the rows to the folder; return the data's name, row count and digest.

        Raises:
            BadValue: there are no rows, or a column is missing.
            MissingFile, DamagedFile: the rows cannot be read.
        """
        from core.data.load import join_parts
        from core.data.load import rows as rows_of

        valid = join_parts(map(self.held_out, self.sets)) if self.holds_out else None
        rows = join_parts(
            (
                self.with_prompts(data_set, rows_of(self.with_place(data_set), TRAIN, None))
                for data_set in self.sets
            ),
            self.columns,
        )
        count = write_rows(rows, valid, self.columns, folder)
        say(f"data: {count} rows of {self.subject}")
        return {"name": self.subject, "rows": count, "digest": file_digest(folder / ROWS)}

    @property
    def holds_out(self) -> bool:
        """True if every data set has rows of its own to hold out."""
        return all(
            data_set.source.holds_out
            if (stage := self.row_stages.get(data_set.name)) is None
            else stage.data.holds_out
            and not set(stage.gives).intersection(self.family.held_out_columns)
            for data_set in self.sets
        )

    def held_out(self, data_set: DataSet) -> list[Row]:
        """Return the held-out rows of a data set."""
        stage = self.row_stages.get(data_set.name)
        if stage is None:
            from core.data.load import rows as rows_of

            return self.with_prompts(data_set, rows_of(data_set, VALID, None))
        return [without_split(row) for row in read_rows(stage.data.folder) if row["split"] == VALID]

    def with_prompts(self, data_set: DataSet, rows: list[Row]) -> list[Row]:
        """Return rows with the prompts of the run's settings.

        Rows that a preparation made keep their prompts, and pairs may have theirs in both answers.

        Raises:
            DamagedFile: a row lacks a value that the training reads.
        """
        columns = {*self.columns, *(rows[0] if rows else ())}
        applies = self.prompts.act_on(own=data_set.own, columns=columns)
        if data_set.name in self.row_stages or not applies:
            return rows
        prompted = [
            self.prompts.with_prompt(data_set.name, place, row) for place, row in enumerate(rows)
        ]
        for place, row in enumerate(prompted):
            self.check_values(data_set, place, row)
        return prompted

    def check_values(self, data_set: DataSet, place: int, row: Row) -> None:
        """Check that a row has every value that the training reads.

        Raises:
            DamagedFile: an answer is neither text nor a finite number, or another value is missing;
                the message names the line.
        """
        trained_on = (*self.family.columns, *self.family.other_columns)
        for name in set(self.columns).intersection(trained_on):
            value = row.get(name)
            if (as_answer(value) if name == ANSWER else value) is None:
                where = data_set.source.place(data_set.name, place)
                if name == ANSWER:
                    answer_text(value, where)
                raise DamagedFile(f"{where}: {name!r}: expected a value, got nothing")

    def with_place(self, data_set: DataSet) -> DataSet:
        """Return a data set that reads the file of the stage that made it, if a stage did."""
        stage = self.row_stages.get(data_set.name)
        return data_set if stage is None else replace(data_set, source=File(stage.folder / ROWS))


class MadeRows(Stage):
    """A stage that adds columns to the rows of another stage."""

    data: Data

    @property
    @abstractmethod
    def gives(self) -> tuple[str, ...]:
        """The columns that the stage adds."""


def write_rows(rows: Any, valid: Any, columns: tuple[str, ...], folder: Path) -> int:
    """Write training and held-out rows as JSON lines; return the number of training rows.

    Raises:
        BadValue: there are no rows, or a column is missing.
    """
    missing = [column for column in columns if column not in rows.column_names]
    if missing:
        raise BadValue(
            f"the training data has no column {', '.join(missing)}; it has "
            f"{', '.join(rows.column_names)}"
        )
    if not len(rows):
        raise BadValue("the training data has no rows")
    splits: dict[str, list[Row]] = {TRAIN: rows.to_list(), VALID: valid.to_list() if valid else []}
    with (folder / ROWS).open("w", encoding="utf-8") as file:
        for split, of_split in splits.items():  # lists: a dataset takes ten times as long
            for row in of_split:
                file.write(json.dumps({"split": split, **row}, ensure_ascii=False) + "\n")
    return len(rows)


def read_rows(folder: Path) -> list[Row]:
    """Return the rows of the data stage.

    Raises:
        MissingFile, DamagedFile: the file is gone or altered; names the line and what to do.
    """
    try:
        return [row for _, row in json_lines(folder / ROWS)]
    except DamagedFile as error:
        raise DamagedFile(f"{error.args[0]}; delete {folder}") from error


def without_split(row: Row) -> Row:
    """Return a row without the name of its split."""
    return {name: value for name, value in row.items() if name != "split"}


def split_rows(
    rows: list[Row], heldout: int, *, given: bool = False
) -> tuple[list[Row], list[Row]]:
    """Return training rows and `heldout` held-out rows.

    They are taken from the data's own held-out rows if there are some, else from the training rows.
    One row is drawn of each of `heldout` equal stretches, so every part of the data is represented
    even if its parts alternate. If the rows are too few and the number is not `given`, all of the
    data's own held-out rows are used, or a fifth of the training rows.

    Raises:
        BadValue: a given number of rows cannot be held out.
    """
    train, valid = (
        [without_split(row) for row in rows if row["split"] == split] for split in (TRAIN, VALID)
    )
    source = valid or train
    count = held_out_count(heldout, len(train), len(valid), given=given)
    places = draw_places(len(source), count)
    held_out = [source[place] for place in places]
    if valid or not held_out:
        return train, held_out
    chosen = {*places}
    return [row for place, row in enumerate(train) if place not in chosen], held_out


def held_out_count(heldout: int, train: int, valid: int, *, given: bool) -> int:
    """Return the number of rows to hold out: of the data's own held-out rows, or of training rows.

    Raises:
        BadValue: a given number of rows cannot be held out.
    """
    if given:
        check_held_out(heldout, valid or train, of_their_own=bool(valid))
        return heldout
    if valid:
        return min(heldout, valid)
    return heldout if heldout < train else train // ONE_IN


def draw_places(rows: int, count: int) -> list[int]:
    """Draw one place at random of each of `count` equal stretches of rows; empty if too few."""
    random, width = Random(0), rows // max(1, count)
    return [n * rows // count + random.randrange(width) for n in range(count if width else 0)]
