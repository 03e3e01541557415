"""Functions that write the reference of commands and settings as Markdown, from the code."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

import typer

from core import A2POConfig, GRPOConfig, PPOConfig, RLOOConfig, SFTConfig
from core.cli.main import app
from core.settings.run_settings import RunSettings

CONFIGS = (SFTConfig, GRPOConfig, RLOOConfig, PPOConfig, A2POConfig)


def write_reference(folder: Path) -> None:
    """Write both reference pages; leave an unchanged page untouched, so that Sphinx skips it."""
    folder.mkdir(exist_ok=True)
    for name, lines in (("commands", command_lines()), ("settings", setting_lines())):
        path, text = folder / f"{name}.md", "\n".join(lines) + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def command_lines() -> Iterator[str]:
    """Yield the page of commands: usage, help and options of each command."""
    group: Any = typer.main.get_command(app)  # Any: typer types it as a command without children
    yield "# Commands\n"
    yield "```sh\nrepro --help\n```\n"
    yield "Options before the name of a command:\n"
    yield from option_table(group.params)
    for name, command in sorted(group.commands.items()):
        if command.hidden:
            continue
        yield f"\n## repro {name}\n"
        yield f"```sh\n{command.epilog.removeprefix('Example: ')}\n```\n"
        yield dedent(command.help)
        yield ""
        yield from option_table(command.params)


def option_table(parameters: Iterable[Any]) -> Iterator[str]:  # Any: typer's copy of click's types
    """Yield the table of the arguments and options of a command."""
    yield "| name | meaning |"
    yield "| --- | --- |"
    for parameter in parameters:
        if getattr(parameter, "hidden", False):
            continue
        meaning = parameter.help or ""
        if parameter.default not in (None, False, (), []):
            meaning += f" Default: `{parameter.default}`."
        yield table_row(option_names(parameter), meaning)


def option_names(parameter: Any) -> str:  # Any: typer's copy of click's types
    """Return the names of an option with its metavar, or the metavar of an argument."""
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    names = [*parameter.opts, *parameter.secondary_opts]
    if parameter.metavar:
        names[-1] += f" {parameter.metavar}"
    return ", ".join(f"`{name}`" for name in names)


def setting_lines() -> Iterator[str]:
    """Yield the page of settings: those of a run, then the new or changed ones of each config."""
    yield "# Settings\n"
    yield "```sh\nrepro plan deepseekmath-grpo learning_rate=3e-4\n```\n"
    yield (
        "Each setting is an argument `name=value` of `repro run` and `repro plan`, or a key of the "
        "file given with `--config`. The settings of trainers are also fields of the config class "
        "in Python. A setting without effect is refused.\n"
    )
    yield "## Settings of a run\n"
    yield dedent(RunSettings.__doc__)
    yield ""
    yield from field_table(fields(RunSettings), has_help=False)
    documented: dict[str, object] = {}
    for config in CONFIGS:
        new_fields = [
            field
            for field in fields(config)
            if documented.get(field.name, field) != description(field)
            and field.metadata.get("help")
            and is_declared_in_core(config, field.name)
        ]
        documented |= {field.name: description(field) for field in new_fields}
        yield f"\n## {config.__name__}\n"
        yield dedent(config.__doc__)
        yield ""
        yield from field_table(new_fields, has_help=True)
    yield "\nThe other fields are those of `transformers.TrainingArguments`, with its defaults."


def is_declared_in_core(config: type, name: str) -> bool:
    """Return whether a class of `core` declares the field, and not only transformers."""
    return any(
        name in vars(base).get("__annotations__", {})
        for base in config.__mro__
        if base.__module__.split(".")[0] == "core"
    )


def description(field: Field[object]) -> object:
    """Return the type, default and help of a field, to compare fields of several configs."""
    return field.type, default_of(field), field.metadata.get("help")


def field_table(config_fields: Sequence[Field[object]], *, has_help: bool) -> Iterator[str]:
    """Yield the table of fields with their types, defaults and, with `has_help`, meanings."""
    yield "| name | type | default |" + (" meaning |" if has_help else "")
    yield "| --- | --- | --- |" + (" --- |" if has_help else "")
    for field in sorted(config_fields, key=lambda field: field.name):
        help_cells = [dedent(field.metadata["help"])] if has_help else []
        cells = f"`{field.name}`", f"`{type_name(field)}`", f"`{default_of(field)}`"
        yield table_row(*cells, *help_cells)


def type_name(field: Field[object]) -> str:
    """Return the annotation of a field as it is written in the source."""
    annotation = field.type
    if isinstance(annotation, str):
        return annotation
    return getattr(annotation, "__name__", None) or str(annotation)


def default_of(field: Field[object]) -> object:
    """Return the default of a field, or what its factory makes; "required" if it has none."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return "required" if field.default is MISSING else repr(field.default)


def table_row(*cells: str) -> str:
    """Return a row of a Markdown table, with the bars in the cells escaped."""
    escaped = [cell.replace("|", r"\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"


def dedent(docstring: str | None) -> str:
    """Return a docstring without the indentation of its later lines; empty if there is none."""
    lines = (docstring or "").strip().splitlines()
    return "\n".join([*lines[:1], *(re.sub("^    ", "", line) for line in lines[1:])])
