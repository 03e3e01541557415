"""Plug-in files: Python files whose rows are registered without being installed.

The environment variable REPRO_PLUGINS lists their paths, separated by colons, so that every process
of a run imports them.
"""

import os
import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from eval.errors import BadValue, MissingFile, error_line

VARIABLE = "REPRO_PLUGINS"
PREFIX = "plugin_"  # of module names, to avoid those of installed modules

Row = TypeVar("Row")


def use(path: str | Path) -> ModuleType:
    """Import a plug-in file and register it for this process and the processes it starts.

    Raises:
        MissingFile, BadValue: see `load`.
    """
    place = Path(path).resolve()
    module = load(place)
    paths = [*plugin_paths(), str(place)]
    os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys(paths))
    return module


def plugin_paths() -> list[str]:
    """Return the paths of the registered plug-ins."""
    return [path for path in os.environ.get(VARIABLE, "").split(os.pathsep) if path]


def modules() -> list[ModuleType]:
    """Return the modules of the registered plug-ins, imported once.

    Raises:
        MissingFile, BadValue: see `load`.
    """
    return [load(Path(path).resolve()) for path in plugin_paths()]


def rows(name: str, kind: type[Row]) -> dict[str, Row]:
    """Return the rows of type `kind` and this name in plug-ins, by the path of the plug-in."""
    return {
        str(module.__file__): row
        for module in modules()
        for row in vars(module).values()
        if isinstance(row, kind) and getattr(row, "name", None) == name
    }


def names(kind: type[object]) -> list[str]:
    """Return the distinct names of all rows of type `kind` that plug-ins define."""
    members = [member for module in modules() for member in vars(module).values()]
    named_rows = [member for member in members if isinstance(member, kind)]
    return list(dict.fromkeys(str(getattr(row, "name", "")) for row in named_rows))


@cache
def load(path: Path) -> ModuleType:
    """Import a plug-in file; repeated calls return the same module.

    Raises:
        MissingFile: the file does not exist.
        BadValue: the import fails, the file is not a Python file, or another plug-in has its name.
    """
    if not path.is_file():
        raise MissingFile(f"plug-in {path}: no such file")
    name = PREFIX + path.stem
    if name in sys.modules:
        raise BadValue(f"plug-in {path}: {sys.modules[name].__file__} has the name, too: rename it")
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadValue(f"plug-in {path}: expected a Python file, FILE.py")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # foreign code can raise anything
        del sys.modules[name]
        raise BadValue(f"plug-in {path}: import failed with {error_line(error)}") from error
    return module
