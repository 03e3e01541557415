"""Plug-ins that are files: what a Python file holds is registered without being installed.

Their paths stand in the environment variable REPRO_PLUGINS, between colons, so that every process
of a run knows them.
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
PREFIX = "plugin_"  # of the modules' names, which no installed module has

Row = TypeVar("Row")


def use(path: str | Path) -> ModuleType:
    """Register what a file holds, in this process and in those that it starts.

    Raises:
        MissingFile, BadValue: as of `load`.
    """
    place = Path(path).resolve()
    module = load(place)
    paths = [*given(), str(place)]
    os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys(paths))
    return module


def given() -> list[str]:
    """The paths of the plug-ins that are registered."""
    return [path for path in os.environ.get(VARIABLE, "").split(os.pathsep) if path]


def modules() -> list[ModuleType]:
    """The plug-ins that are registered, imported."""
    return [load(Path(path).resolve()) for path in given()]


def rows(name: str, made: type[Row]) -> dict[str, Row]:
    """The rows of a table that plug-ins hold under a name, by where they stand."""
    return {
        str(module.__file__): row
        for module in modules()
        for row in vars(module).values()
        if isinstance(row, made) and getattr(row, "name", None) == name
    }


def names(made: type[object]) -> list[str]:
    """The names of all rows of a table that plug-ins hold."""
    held = [row for module in modules() for row in vars(module).values() if isinstance(row, made)]
    return list(dict.fromkeys(str(getattr(row, "name", "")) for row in held))


@cache
def load(path: Path) -> ModuleType:
    """Import a file once.

    Raises:
        MissingFile: there is none.
        BadValue: its import fails, or another plug-in has its file name.
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
    except (Exception, SystemExit) as error:  # anybody's module: what it raises is named
        del sys.modules[name]
        raise BadValue(f"plug-in {path}: import failed with {error_line(error)}") from error
    return module
