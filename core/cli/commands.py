"""The group of all commands: how it lists them, and how each begins and ends."""

import os
from itertools import groupby
from typing import Any

from typer.core import TyperGroup

from core.cli.endings import ending_in_a_line, ignore_empty_terminal


class Commands(TyperGroup):
    """Commands that are listed by section, and end as `ending_in_a_line` says.

    The section of a command is its `rich_help_panel`; those of one section stand together.
    """

    def make_context(self, *arguments: Any, **options: Any) -> Any:  # Any: as typer passes them
        """Read the arguments."""
        ignore_empty_terminal()
        with ending_in_a_line():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:  # Any: typer's
        """Run the command; in a working directory, without which libraries of torch end it."""
        with ending_in_a_line():
            os.getcwd()
            return super().invoke(ctx)

    def format_commands(
        self,
        ctx: Any,  # noqa: ARG002 - the caller's signature
        formatter: Any,
    ) -> None:
        """Write a list of the commands of each section."""
        shown: list[Any] = [one for one in self.commands.values() if not one.hidden]
        width = max(len(one.name) for one in shown)
        for section, some in groupby(shown, lambda one: one.rich_help_panel):
            limit = formatter.width - 6 - width
            with formatter.section(section):
                formatter.write_dl(
                    [(one.name.ljust(width), one.get_short_help_str(limit)) for one in some]
                )
