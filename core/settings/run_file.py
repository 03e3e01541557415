"""Runs as YAML files, which `repro plan --yaml` prints and `--config` reads."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, cast

import yaml

from core.paper.registry import find_paper
from core.settings.canonical import as_text, canonical
from core.settings.resolve import resolve
from core.settings.resolved import Resolved
from eval.errors import BadValue, MissingFile
from eval.json_lines import JsonObject

KINDS: Mapping[str, type] = {"paper": str, "arm": str, "at": str, "seed": int, "settings": dict}


@dataclass(frozen=True, kw_only=True)
class RunFile:
    """The run of a file, with its settings as `name=value`, as on the command line."""

    paper: str
    arm: str | None = None
    at: str = "cpu"
    seed: int = 0
    arguments: tuple[str, ...] = ()

    def without(self, replaced: Iterable[str]) -> Self:
        """Return the run without the settings that `replaced` names, each as `name=value`."""
        names = {name_of(argument) for argument in replaced}
        arguments = (argument for argument in self.arguments if name_of(argument) not in names)
        return replace(self, arguments=tuple(arguments))


def name_of(argument: str) -> str:
    """Return the name in a `name=value`."""
    return argument.partition("=")[0].strip()


def run_as_yaml(resolved: Resolved, seed: int) -> str:
    """Return a run with all its settings as YAML."""
    arm = {"arm": resolved.arm} if resolved.arm != resolved.paper.main_arm else {}
    values = {name: canonical(v.value) for name, v in sorted(resolved.values.items())}
    run = {"paper": resolved.paper.slug, **arm, "at": resolved.scale, "seed": seed}
    return yaml.safe_dump({**run, "settings": values}, sort_keys=False, allow_unicode=True)


def read_run_file(path: Path) -> RunFile:
    """Return the run of a file, without the settings that equal those of the paper.

    Raises:
        MissingFile: the file does not exist.
        BadValue: the file is no YAML, or no mapping of the known fields.
        UnknownName, BadOverride: see `resolve`.
    """
    if not path.is_file():
        raise MissingFile(f"--config {path}: no such file; `repro plan PAPER --yaml` prints one")
    try:
        content: object = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadValue(f"{path} is no YAML: {' '.join(str(error).split())}") from error
    names = ", ".join(KINDS)
    if not isinstance(content, dict) or "paper" not in content:
        raise BadValue(f"{path}: expected a mapping of {names}, of which paper is needed")
    fields = cast(JsonObject, content)
    for name, value in fields.items():
        if name not in KINDS:
            raise BadValue(f"{path}: {name} is none of {names}; settings stand below settings:")
        if not isinstance(value, KINDS[name]):
            expected = {str: "text", int: "a whole number", dict: "a mapping"}[KINDS[name]]
            raise BadValue(f"{path}: {name}: {value}: expected {expected}")
    settings = fields.pop("settings", {})
    arguments = tuple(as_argument(name, value) for name, value in settings.items())
    return without_defaults(RunFile(**fields, arguments=arguments))


def as_argument(name: str, value: object) -> str:
    """Return a setting of YAML as it is typed on the command line."""
    if name == "rewards" and isinstance(value, list):
        value = ",".join(map(str, cast(Sequence[object], value)))
    return f"{name}={value if isinstance(value, str) else as_text(value)}"


def without_defaults(run: RunFile) -> RunFile:
    """Return the run without the settings that do not change its resolved values."""
    paper = find_paper(run.paper)
    plain, changed = (
        resolve(paper, arm=run.arm, scale=run.at, arguments=arguments).values
        for arguments in ((), run.arguments)
    )

    def changes(argument: str) -> bool:
        name = name_of(argument)
        return name not in plain or canonical(changed[name].value) != canonical(plain[name].value)

    return replace(run, arguments=tuple(filter(changes, run.arguments)))
