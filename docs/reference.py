"""Writes the reference of commands and settings as Markdown, from the code that reads them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

import typer

from core import A2POConfig, GRPOConfig, PPOConfig, RLOOConfig, SFTConfig
from core.cli.main import app
from core.settings.run_settings import RunSettings

CONFIGS = (SFTConfig, GRPOConfig, RLOOConfig, PPOConfig, A2POConfig)
SUPPORTED = "`transformers.TrainingArguments`"


def write_reference(folder: Path) -> None:
    """Write both pages; a page that is as it was stays untouched, so that nothing is built anew."""
    folder.mkdir(exist_ok=True)
    for name, lines in (("commands", commands()), ("settings", settings())):
        path, text = folder / f"{name}.md", "\n".join(lines) + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def commands() -> Iterator[str]:
    """Each command with its usage, its help, and a table of its arguments and options."""
    group: Any = typer.main.get_command(app)
    yield "# Commands\n"
    yield "What may stand before a command:\n"
    yield from options(group.params)
    for name, command in sorted(group.commands.items()):
        if command.hidden:
            continue
        yield f"\n## repro {name}\n"
        yield prose(command.help)
        yield f"\n```sh\n{command.epilog.removeprefix('Example: ')}\n```\n"
        yield from options(command.params)


def options(parameters: Sequence[Any]) -> Iterator[str]:
    """A table of what a command takes."""
    yield "| name | meaning | default |"
    yield "| --- | --- | --- |"
    for one in parameters:
        argument = one.param_type_name == "argument"
        metavar = one.metavar or (one.name.upper() if argument else "")
        names = [metavar] if argument else [*one.opts, *one.secondary_opts]
        if metavar and not argument:
            names[-1] += f" {metavar}"
        default = "" if one.default in (None, False, (), []) else f"`{one.default}`"
        yield row(", ".join(f"`{name}`" for name in names), one.help or "", default)


def settings() -> Iterator[str]:
    """The settings of a run, then those of each trainer that no trainer before has so."""
    yield "# Settings\n"
    yield (
        "Any of them is `name=value` of `repro run` and `repro plan`, or a key of the file that "
        "`--config` names; those of trainers are also the fields of the config of that name in "
        "Python. A setting that cannot act is refused.\n"
    )
    yield "## Of a run\n"
    yield prose(RunSettings.__doc__)
    yield ""
    yield from table(fields(RunSettings), meaning=False)
    seen: dict[str, object] = {}
    for config in CONFIGS:
        own = [field for field in fields(config) if seen.get(field.name, field) != told(field)]
        own = [
            field for field in own if field.metadata.get("help") and declared(config, field.name)
        ]
        seen |= {field.name: told(field) for field in own}
        yield f"\n## {config.__name__}\n"
        yield prose(config.__doc__)
        yield ""
        yield from table(own, meaning=True)
    yield f"\nThe other fields are those of {SUPPORTED}, with its defaults."


def declared(config: type, name: str) -> bool:
    """Whether a class of ours declares a field, not transformers alone."""
    return any(
        name in vars(base).get("__annotations__", {})
        for base in config.__mro__
        if base.__module__.split(".")[0] == "core"
    )


def told(field: Field[Any]) -> object:
    """What the table says of a field."""
    return field.type, default_of(field), field.metadata.get("help")


def table(shown: Sequence[Field[Any]], *, meaning: bool) -> Iterator[str]:
    """Fields with their types, defaults, and what they mean where that is said of each."""
    yield "| name | type | default |" + (" meaning |" if meaning else "")
    yield "| --- | --- | --- |" + (" --- |" if meaning else "")
    for field in sorted(shown, key=lambda one: one.name):
        more = [prose(field.metadata["help"])] if meaning else []
        yield row(f"`{field.name}`", f"`{type_of(field)}`", f"`{default_of(field)}`", *more)


def type_of(field: Field[Any]) -> str:
    """The annotation as it is written."""
    found = field.type
    return found if isinstance(found, str) else getattr(found, "__name__", None) or str(found)


def default_of(field: Field[Any]) -> object:  # of any type
    """The default, or what a factory makes; `required` if there is none."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return "required" if field.default is MISSING else repr(field.default)


def row(*cells: str) -> str:
    """A row of a table, in which no text ends a cell."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def prose(text: str | None) -> str:
    """A docstring without its indentation."""
    lines = (text or "").strip().splitlines()
    return (
        "\n".join([lines[0], *(re.sub("^    ", "", line) for line in lines[1:])]) if lines else ""
    )
