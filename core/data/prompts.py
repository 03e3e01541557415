"""Prompts of data rows: a column or a Jinja template of columns, with a system message.

The resulting rows are conversations; a plain text becomes a user message.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import cast

from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import SandboxedEnvironment

from eval.errors import BadValue, error_line
from eval.json_lines import SHOWN, JsonFields
from eval.sets.loading import Row
from eval.sets.prompts import with_request

PROMPT = "prompt"
PAIR, GOLD = ("chosen", "rejected"), "reference"  # which is a message beside a pair alone


@dataclass(frozen=True)
class Prompts:
    """Source of prompts: a column, or a Jinja template of columns that is run in a sandbox.

    Raises:
        BadValue: both are given, or the template has a syntax error.
    """

    column: str | None = None
    template: str | None = None
    system: str | None = None

    def __post_init__(self) -> None:
        if self.column is not None and self.template is not None:
            raise BadValue("prompt_column and prompt_template are both given: leave one out")
        if self.template is not None:
            _ = self.parsed_template

    @property
    def act(self) -> bool:
        """True if any field is set."""
        return self != Prompts()

    def act_on(self, *, own: bool, columns: Collection[str]) -> bool:
        """Return whether the rows of a data set get their prompts from these fields.

        If a field is set, those of every data set do. If none is set, those of the user's own data
        do, which turns texts into messages. Own pairs without a column of prompts stay as they are:
        both answers begin with the prompt.

        Args:
            own: whether it is the user's own data.
            columns: columns that the rows have, or that the run reads.
        """
        return self.act or (own and PROMPT in columns)

    @cached_property
    def environment(self) -> SandboxedEnvironment:
        """Jinja sandbox without escaping, in which an undefined name is an error.

        Its filter `with_request` adds the instruction of the benchmarks to a question.
        """
        sandbox = SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
        sandbox.filters["with_request"] = with_request
        return sandbox

    @property
    def wording(self) -> dict[str, object]:
        """Fields that determine the prompts, with the texts of `with_request` if it is used."""
        uses_request = "with_request" in (self.template or "")
        requests = [with_request("", language) for language in ("en", "zh")]
        return {**asdict(self), **({"requests": requests} if uses_request else {})}

    @cached_property
    def parsed_template(self) -> Template:
        """The template as Jinja parsed it; an empty one if there is none.

        Raises:
            BadValue: the template has a syntax error.
        """
        try:
            return self.environment.from_string(self.template or "")
        except TemplateError as error:
            raise BadValue(f"prompt_template={self.template!r}: {error_line(error)}") from error

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that a prompt is made of."""
        if self.template is None:
            return (self.column or PROMPT,)
        return tuple(sorted(find_undeclared_variables(self.environment.parse(self.template))))

    def with_prompt(self, name: str, index: int, row: Row) -> dict[str, object]:
        """Return a copy of a row with its prompt as a list of messages.

        The system prompt comes first if there is one. A text in the columns `completion`, `chosen`
        and `rejected`, and in `reference` beside these two, becomes a list of one assistant
        message. A row without an `id` gets `{name}-{index}`.

        Args:
            name: name of the data set.
            index: index of the row.
            row: the row.

        Raises:
            BadValue: the column is missing or empty or holds no conversation with a user's message,
                or the template fails.
        """
        where = f"{name}, row {index + 1}"
        prompt = self.prompt_value(where, row)
        if prompt in ("", []) or (isinstance(prompt, str) and not prompt.strip()):
            raise BadValue(f"{where}: the prompt is empty: expected a text or messages")
        conversation = messages(prompt, "user", where)
        asked = [m for m in conversation if m["role"] == "user"]
        if not any(str(message.get("content") or "").strip() for message in asked):
            raise BadValue(
                f"{where}: {prompt!r:.{SHOWN}}: expected a message of role user with text"
            )
        if self.system is not None:
            conversation = [{"role": "system", "content": self.system}, *conversation]
        answers = (*PAIR, GOLD) if all(name in row for name in PAIR) else PAIR
        completions = {
            column: messages(row[column], "assistant", f"{where}: {column}")
            for column in ("completion", *answers)
            if row.get(column) is not None
        }
        return {"id": f"{name}-{index}", **row, PROMPT: conversation, **completions}

    def prompt_value(self, where: str, row: Row) -> object:
        """Return the value of the column, or the text that the template renders.

        Raises:
            BadValue: the column is missing or has no value, or the template fails; `where` names
                the row.
        """
        if self.template is None:
            column = self.column or PROMPT
            if column not in row:
                raise BadValue(f"{where}: no column {column}; there are {', '.join(row)}")
            if row[column] is None or row[column] != row[column]:  # nothing, or NaN
                raise BadValue(f"{where}: {column}={row[column]}: expected a text or messages")
            return row[column]
        try:
            return self.parsed_template.render(**row)
        except Exception as error:  # a template raises whatever its expressions raise
            raise BadValue(f"{where}: prompt_template fails with {error_line(error)}") from error


def messages(value: object, role: str, where: str) -> list[Row]:
    """Return a text as a message of this role; a list of messages is returned unchanged.

    Raises:
        BadValue: the value is neither a text or number nor a list of messages; the text begins
            with `where`.
    """
    if isinstance(value, list) and all(map(is_message, value)):
        return value
    if isinstance(value, list | Mapping):
        raise BadValue(
            f"{where}: {value!r:.{SHOWN}}: expected a text, or a list of messages with role and "
            "content"
        )
    return [{"role": role, "content": str(value)}]


def is_message(value: object) -> bool:
    """Return whether a value is a message: an object with a role and content or tool calls."""
    if not isinstance(value, Mapping):
        return False
    message = cast(JsonFields, value)
    is_spoken = isinstance(message.get("content"), str | list) or message.get("tool_calls")
    return bool(message.get("role") and isinstance(message["role"], str) and is_spoken)
