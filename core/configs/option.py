"""Fields of settings with their help, as `HfArgumentParser` reads them."""

from dataclasses import field
from typing import Any


def option(default: Any, doc: str, **more: Any) -> Any:  # Any: the annotation has the type
    """Declare a dataclass field with its one-sentence help and what else argparse should know."""
    return field(default=default, metadata={"help": doc, **more})
