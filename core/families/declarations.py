"""Declarations of all configs without torch, for commands that construct no config."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from core.families.table import ROWS

LIBRARY = "transformers"
HEAVY = ("torch", "accelerate", "peft")
OURS = ("core.losses", "core.shapes")  # with tables that configs declare choices by
OPTIMIZER = "adamw_torch_fused"  # the default of TrainingArguments with torch 2.8 or later


def declare_configs() -> None:
    """Import the config class of every family without torch: names, types and defaults of fields.

    No config can be constructed in this process afterwards. The function has no effect where torch
    or transformers is imported already.
    """
    if LIBRARY in sys.modules or "torch" in sys.modules:
        return
    with without_torch():
        arguments: Any = import_module(f"{LIBRARY}.training_args").TrainingArguments
        arguments.__dataclass_fields__["optim"].default = OPTIMIZER
        arguments.__post_init__ = refuse_construction
        sys.modules["torch"] = placeholder_torch()
        for family in ROWS:
            family.config_class()


@contextmanager
def without_torch() -> Generator[None]:
    """Import transformers as on a machine without torch, and drop these modules at the end.

    The `__init__` of transformers, which reads the files of all architectures, is not run. Later
    imports of the dropped modules are complete.
    """
    spec = find_spec(LIBRARY)
    package = ModuleType(LIBRARY)
    package.__spec__, package.__path__ = (
        spec,
        list((spec and spec.submodule_search_locations) or ()),
    )
    vars(package)["__version__"] = version(LIBRARY)
    modules: dict[str, Any] = sys.modules  # Any: None stands for a module that is not found
    before = set(modules)
    modules.update({LIBRARY: package, **dict[str, Any].fromkeys(HEAVY)})
    try:
        yield
    finally:
        incomplete = tuple(f"{package}." for package in (LIBRARY, *HEAVY, *OURS))
        for name in modules.keys() - before:
            if f"{name}.".startswith(incomplete):
                del modules[name]


def placeholder_torch() -> ModuleType:
    """Return a module with a class for every name of torch, as annotations need."""
    torch = ModuleType("torch")
    vars(torch).update(__getattr__=lambda name: type(name, (), {}), no_grad=unchanged_by)
    return torch


def unchanged_by() -> Callable[[object], object]:
    """Return a decorator that returns its function."""
    return lambda function: function


def refuse_construction(config: object) -> None:
    """Raise, as the checks of a config need torch.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError(f"{type(config).__name__}: only its declaration is loaded, without torch")
