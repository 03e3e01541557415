"""Loading of configs before a command resolves settings, without torch where that is enough."""

from collections.abc import Iterable

from core.cli.output import say_loading
from core.families.declarations import declare_configs
from core.paper import Paper
from core.paper.registry import lineage


def load_configs(papers: Iterable[Paper], arguments: Iterable[str] = ()) -> None:
    """Declare all configs without torch if the settings allow it; else report that torch loads.

    Args:
        papers: The papers whose settings a command resolves.
        arguments: Settings of the command line as `name=value`.
    """
    names = {name for paper in papers for link in lineage(paper) for name in link.names_of_settings}
    names |= {argument.partition("=")[0].strip() for argument in arguments}
    if not declare_configs(names):
        say_loading()
