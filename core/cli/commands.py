"""The group of all commands: its help listing, and the start and end of each command."""

import os
from itertools import groupby
from typing import Any

from typer.core import TyperGroup

from core.cli.endings import ending_in_a_line, ignore_empty_terminal


class Commands(TyperGroup):
    """Commands that are listed by section and end as described in `ending_in_a_line`.

    The section of a command is its `rich_help_panel`; commands of one section are adjacent.
    """

    def make_context(self, *arguments: Any, **options: Any) -> Any:  # Any: as typer passes them
        """Parse the arguments."""
        ignore_empty_terminal()
        with ending_in_a_line():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:  # Any: typer's
        """Run the command in an existing working directory, which libraries of torch need."""
        with ending_in_a_line():
            os.getcwd()
            return super().invoke(ctx)

    def format_commands(
        self,
        ctx: Any,  # noqa: ARG002 - the caller's signature
        formatter: Any,
    ) -> None:
        """Write the commands of each section with their short help."""
        visible: list[Any] = [command for command in self.commands.values() if not command.hidden]
        width = max(len(command.name) for command in visible)
        for section, members in groupby(visible, lambda command: command.rich_help_panel):
            limit = formatter.width - 6 - width
            with formatter.section(section):
                formatter.write_dl(
                    [
                        (command.name.ljust(width), command.get_short_help_str(limit))
                        for command in members
                    ]
                )
