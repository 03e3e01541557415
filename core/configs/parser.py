"""Settings from the command line and a YAML file, as TRL's scripts read them."""

import os
import sys
from argparse import Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import yaml
from transformers import HfArgumentParser

from eval.errors import BadValue, MissingFile

NOTHING = ("none", "null")


class TrlParser(HfArgumentParser):
    """`HfArgumentParser` with `--config file.yaml`, whose values the command line overrides.

    The mapping `env` of the file sets environment variables. `none` is None for optional numbers.
    """

    def __init__(self, dataclass_types: Any = None, **keywords: Any):
        classes = [] if dataclass_types is None else dataclass_types
        kinds = list(classes) if isinstance(classes, Iterable) else [classes]
        hints = {name: hint for kind in kinds for name, hint in get_type_hints(kind).items()}
        if "config" in hints:
            raise BadValue("a field is named config, which is the option for the YAML file")
        self.may_be_none = {name for name, hint in hints.items() if is_optional_number(hint)}
        super().__init__(kinds, **keywords)
        defaults = {field.name: field.default for kind in kinds for field in fields(kind)}
        for action in actions(self):  # transformers leaves out that of a number or a list of them
            default = defaults.get(action.dest)
            if action.default is None and isinstance(default, float):
                action.default = default

    def _get_value(self, action: Action, arg_string: str) -> object:
        if action.dest in self.may_be_none and arg_string.lower() in NOTHING:
            return None
        return super()._get_value(action, arg_string)  # pyright: ignore[reportAttributeAccessIssue] - argparse's, untyped

    def parse_args_and_config(
        self,
        args: Iterable[str] | None = None,
        return_remaining_strings: bool = False,
        fail_with_unknown_args: bool = True,
        separate_remaining_strings: bool = False,
    ) -> tuple[Any, ...]:  # Any: one object of each class, then perhaps unknown words
        """Return one object per class, from the file of `--config` and the command line.

        Raises:
            MissingFile: the file does not exist.
            BadValue: it is no mapping, or has an unknown name and `fail_with_unknown_args` is set.
        """
        arguments = list(sys.argv[1:] if args is None else args)
        config: dict[str, object] = {}
        if "--config" in arguments:
            position = arguments.index("--config")
            config = read_config(arguments[position + 1 : position + 2])
            arguments = arguments[:position] + arguments[position + 2 :]
        self.set_defaults_with_config(**self.other_defaults(arguments, config.get("semantics")))
        unknown = self.set_defaults_with_config(**config)
        parsed = self.parse_args_into_dataclasses(arguments, return_remaining_strings)
        if return_remaining_strings:
            *objects, remaining = parsed
            ends = (unknown, remaining) if separate_remaining_strings else (unknown + remaining,)
            return (*objects, *ends)
        if unknown and fail_with_unknown_args:
            raise BadValue(f"unknown in the config file: {' '.join(unknown)}; leave it out")
        return parsed

    def other_defaults(self, arguments: list[str], default: object) -> Mapping[str, object]:
        """Return the defaults of the semantics named on the command line, or else in the file.

        Empty if none is named or the name is unknown; the config itself refuses such a name.
        """
        parser = ArgumentParser(add_help=False, allow_abbrev=False)
        parser.add_argument("--semantics", default=default)
        chosen = parser.parse_known_args(arguments)[0].semantics
        tables = [kind.SEMANTICS for kind in self.dataclass_types if hasattr(kind, "SEMANTICS")]
        return next((rows[chosen] for rows in tables if chosen in rows), {})

    def set_defaults_with_config(self, **values: object) -> list[str]:
        """Set defaults of options; return those without an option as words of a command line."""
        matching = [action for action in actions(self) if action.dest in values]
        for action in matching:
            action.default, action.required = values[action.dest], False
        unknown = values.keys() - {action.dest for action in matching}
        return [
            word for name in values if name in unknown for word in (f"--{name}", str(values[name]))
        ]


def read_config(name: list[str]) -> dict[str, object]:
    """Return the mapping of a YAML file; its `env` sets environment variables.

    Raises:
        MissingFile: the file does not exist.
        BadValue: the file or its `env` is no mapping.
    """
    path = Path(*name)
    if not name or not path.is_file():
        raise MissingFile(f"--config {' '.join(name)}: expected the name of a YAML file")
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    variables = content.pop("env", {}) if isinstance(content, dict) else None
    if not isinstance(variables, dict):
        raise BadValue(f"{path}: expected a mapping of names to values, and one in env")
    os.environ.update({key: str(value) for key, value in variables.items()})
    return content


def actions(parser: ArgumentParser) -> Iterator[Action]:
    """Yield the options of a parser and of all its subcommands."""
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for parser_of_command in action.choices.values():
                yield from actions(parser_of_command)
        else:
            yield action


def is_optional_number(hint: object) -> bool:
    """Return whether an annotation is of an optional number: no string, boolean or list."""
    kinds = set(get_args(hint))
    lists = any(get_origin(kind) is list for kind in kinds)
    return NoneType in kinds and not lists and not kinds & {str, bool}
