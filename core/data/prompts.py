"""What a policy is asked of a row of data: a column or a template of columns, and a system's turn.

Such rows are conversations, as chat models are asked: a text becomes a user's turn.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, TypeAlias

from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import SandboxedEnvironment

from eval.errors import BadValue, error_line
from eval.sets.prompts import with_request

Row: TypeAlias = Mapping[str, Any]  # Any: columns of any type
PROMPT = "prompt"
SPOKEN = {"completion": "assistant"}  # columns beside the prompt that are turns, too


@dataclass(frozen=True)
class Prompts:
    """Where prompts are taken from: a column, or a Jinja template of columns, run in a sandbox.

    Raises:
        BadValue: both are given, or the template is none.
    """

    column: str | None = None
    template: str | None = None
    system: str | None = None

    def __post_init__(self) -> None:
        if self.column is not None and self.template is not None:
            raise BadValue("prompt_column and prompt_template are both given: leave one out")
        if self.template is not None:
            _ = self.compiled

    @property
    def act(self) -> bool:
        """Whether any of it is given."""
        return self != Prompts()

    @cached_property
    def environment(self) -> SandboxedEnvironment:
        """A sandbox in which an unknown name is an error; texts are for models and not escaped.

        The filter `with_request` asks as the benchmarks do.
        """
        sandbox = SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
        sandbox.filters["with_request"] = with_request
        return sandbox

    @property
    def wording(self) -> dict[str, Any]:
        """All that decides how a row is asked, the words of the benchmarks' requests too."""
        words = "with_request" in (self.template or "")
        requests = [with_request("", language) for language in ("en", "zh")]
        return asdict(self) | ({"requests": requests} if words else {})

    @cached_property
    def compiled(self) -> Template:
        """The template."""
        try:
            return self.environment.from_string(self.template or "")
        except TemplateError as error:
            raise BadValue(f"prompt_template={self.template!r}: {error_line(error)}") from error

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of which a prompt is made."""
        if self.template is None:
            return (self.column or PROMPT,)
        return tuple(sorted(find_undeclared_variables(self.environment.parse(self.template))))

    def of(self, name: str, place: int, row: Row) -> dict[str, Any]:
        """A row with its prompt as a conversation; one without an `id` gets its place as such.

        Raises:
            BadValue: it has no such column, or the template fails on it.
        """
        turns = messages(self.asked(f"{name}, row {place + 1}", row), "user")
        if self.system is not None:
            turns = [{"role": "system", "content": self.system}, *turns]
        others = {
            column: messages(row[column], role)
            for column, role in SPOKEN.items()
            if row.get(column) is not None
        }
        return {"id": f"{name}-{place}", **row, PROMPT: turns, **others}

    def asked(self, where: str, row: Row) -> Any:  # Any: a text or messages
        """What stands in the column, or what the template writes."""
        if self.template is None:
            column = self.column or PROMPT
            if column not in row:
                raise BadValue(f"{where}: no column {column}; there are {', '.join(row)}")
            if row[column] is None or row[column] != row[column]:  # nothing, or NaN
                raise BadValue(f"{where}: {column}={row[column]}: expected a text or messages")
            return row[column]
        try:
            return self.compiled.render(**row)
        except Exception as error:  # a template raises whatever its expressions raise
            raise BadValue(f"{where}: prompt_template fails with {error_line(error)}") from error


def messages(value: Any, role: str) -> list[dict[str, Any]]:  # Any: as above
    """A text as the turn of a role; messages as they are."""
    return value if isinstance(value, list) else [{"role": role, "content": str(value)}]
