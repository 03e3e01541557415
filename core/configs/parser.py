"""Settings from the command line and a YAML file, as TRL's scripts read them."""

import os
import sys
from argparse import Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import yaml
from transformers import HfArgumentParser

from eval.errors import BadValue, MissingFile

NOTHING = ("none", "null")


class TrlParser(HfArgumentParser):
    """`HfArgumentParser` with `--config file.yaml`, whose values the command line overrides.

    The file's mapping `env` goes to the environment. `none` is None for numbers that may be unset.
    """

    def __init__(self, dataclass_types: Any = None, **keywords: Any):  # Any: transformers' own
        given = [] if dataclass_types is None else dataclass_types
        kinds = list(given) if isinstance(given, Iterable) else [given]
        hints = {name: hint for kind in kinds for name, hint in get_type_hints(kind).items()}
        if "config" in hints:
            raise BadValue("a field is named config, which is the option for the YAML file")
        self.may_be_none = {name for name, hint in hints.items() if is_optional_number(hint)}
        super().__init__(kinds, **keywords)

    def _get_value(self, action: Action, arg_string: str) -> Any:  # Any: of the field's type
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
        """Objects of all classes, from the file that `--config` names and the command line.

        Raises:
            MissingFile: there is no such file.
            BadValue: it is no mapping, or has a name that no class has and this is to fail.
        """
        words = list(sys.argv[1:] if args is None else args)
        config: dict[str, Any] = {}  # Any: of any field
        if "--config" in words:
            at = words.index("--config")
            config = read_config(words[at + 1 : at + 2])
            words = words[:at] + words[at + 2 :]
        self.set_defaults_with_config(**self.other_defaults(words, config.get("semantics")))
        unknown = self.set_defaults_with_config(**config)
        parsed = self.parse_args_into_dataclasses(words, return_remaining_strings)
        if return_remaining_strings:
            *objects, rest = parsed
            ends = (unknown, rest) if separate_remaining_strings else (unknown + rest,)
            return (*objects, *ends)
        if unknown and fail_with_unknown_args:
            raise BadValue(f"unknown in the config file: {' '.join(unknown)}; leave it out")
        return parsed

    def other_defaults(self, words: list[str], named: str | None) -> Mapping[str, object]:
        """The defaults of the semantics that the command line, or else the file, names."""
        asked = ArgumentParser(add_help=False, allow_abbrev=False)
        asked.add_argument("--semantics", default=named)
        chosen = asked.parse_known_args(words)[0].semantics
        known = [kind.SEMANTICS for kind in self.dataclass_types if hasattr(kind, "SEMANTICS")]
        return next((rows[chosen] for rows in known if chosen in rows), {})

    def set_defaults_with_config(self, **values: Any) -> list[str]:  # Any: of any field
        """Make these the defaults; returns those that no field has, as words."""
        known = [action for action in actions(self) if action.dest in values]
        for action in known:
            action.default, action.required = values[action.dest], False
        unknown = values.keys() - {action.dest for action in known}
        return [
            word for name in values if name in unknown for word in (f"--{name}", str(values[name]))
        ]


def read_config(name: list[str]) -> dict[str, Any]:  # Any: of any field
    """The mapping of a YAML file, whose `env` goes to the environment."""
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
    """The options of a parser and of all its subcommands."""
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for parser_of_command in action.choices.values():
                yield from actions(parser_of_command)
        else:
            yield action


def is_optional_number(hint: Any) -> bool:  # Any: an annotation
    """Whether None can be said in a word: `int | None`, but no text, truth value or list."""
    kinds = set(get_args(hint))
    lists = any(get_origin(kind) is list for kind in kinds)
    return NoneType in kinds and not lists and not kinds & {str, bool}
