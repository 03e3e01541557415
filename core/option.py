"""Dataclass fields of settings with their help text, as `HfArgumentParser` reads them."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Protocol


class Row(Protocol):
    """Row of a table that a setting selects from."""

    @property
    def doc(self) -> str:
        """Short description of the row."""
        ...


def option(
    default: object, doc: str, **metadata: object
) -> Any:  # Any: the annotation has the type
    """Declare a dataclass field with a one-sentence help text and further metadata for argparse."""
    return field(default=default, metadata={"help": doc, **metadata})


def choice(default: str | None, table: Mapping[str, Row], doc: str) -> Any:  # Any: as above
    """Declare a field that names a row of a table; its help describes each row."""
    rows = "; ".join(f"'{name}', {row.doc}" for name, row in table.items())
    return option(default, f"{doc}: {rows}.")
