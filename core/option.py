"""Fields of settings with their help, as `HfArgumentParser` reads them."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Protocol


class Row(Protocol):
    """A row of a table that a setting chooses from."""

    @property
    def doc(self) -> str:
        """What choosing it means, in a few words."""
        ...


def option(default: Any, doc: str, **more: Any) -> Any:  # Any: the annotation has the type
    """Declare a dataclass field with its one-sentence help and what else argparse should know."""
    return field(default=default, metadata={"help": doc, **more})


def choice(default: str | None, table: Mapping[str, Row], doc: str) -> Any:  # Any: as above
    """Declare a field that names a row of a table; its help says what each row is."""
    rows = "; ".join(f"'{name}', {row.doc}" for name, row in table.items())
    return option(default, f"{doc}: {rows}.")
