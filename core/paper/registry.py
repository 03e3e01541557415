"""Finds papers through the entry-point group `repro.papers`: ours and anybody else's, the same way.

An entry is either `slug = "package.module"`, one paper, or `name = "package"`, whose every module
is a paper named like its slug. Nothing is imported before it is asked for, but plug-ins that are
files (`eval.plugins`): their `PAPER` is registered by being there.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from inspect import getdoc
from pkgutil import iter_modules

from core.paper.page import Paper
from eval.errors import ReproError, UnknownName, error_line
from eval.plugins import modules, use

GROUP = "repro.papers"


class UnknownPaper(UnknownName):
    """A slug that no installed distribution provides."""

    def __init__(self, slug: str, known: Iterable[str]):
        super().__init__("paper", slug, known, "repro list")


class BrokenPaper(ReproError, ImportError):
    """A paper that is registered wrongly, cannot be imported, or is no paper."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Where a paper comes from: its slug, its module, the distribution that provides it.

    `problem` says what is wrong with that, such that this paper alone is broken.
    """

    slug: str
    module: str
    distribution: str
    problem: str = ""

    def load(self) -> Paper:
        """Import the module and return its `PAPER`.

        Raises:
            BrokenPaper: it has a problem, its import fails, or `PAPER` is missing or no `Paper`.
        """
        if self.problem:
            raise BrokenPaper(self.problem)
        try:
            paper = getattr(import_module(self.module), "PAPER", None)
        except (Exception, SystemExit) as error:  # anybody's module: what it raises is named
            raise BrokenPaper(
                f"{self.slug} ({self.module} of {self.distribution}): import failed with "
                f"{error_line(error)}"
            ) from error
        if not isinstance(paper, Paper):
            raise BrokenPaper(
                f"{self.slug} ({self.module} of {self.distribution}): expected PAPER to be a "
                f"core.paper.Paper, got {type(paper).__name__}"
            )
        return paper

    def text(self) -> str:
        """The module's docstring: the paper in a sentence, and its caveats."""
        self.load()
        return getdoc(import_module(self.module)) or ""


def entries() -> dict[str, Entry]:
    """All papers by slug, in order of their slugs; a slug of two modules is broken."""
    found: dict[str, Entry] = {}
    for entries_of in (*map(_expand, entry_points(group=GROUP)), _of_plugins()):
        for entry in entries_of:
            other = found.get(entry.slug, entry)
            twice = (
                f"{entry.slug} is provided twice: by {other.distribution} ({other.module}) and by "
                f"{entry.distribution} ({entry.module}); uninstall one of them"
            )
            same = other.module == entry.module
            found[entry.slug] = other if same else replace(other, problem=twice)
    return dict(sorted(found.items()))


def find_entry(slug: str) -> Entry:
    """The entry of one paper, by its slug or by the path of a plug-in, FILE.py.

    Raises:
        UnknownPaper: there is none of that slug.
        BrokenPaper: the plug-in holds no paper.
    """
    if slug.endswith(".py"):
        paper = getattr(use(slug), "PAPER", None)
        if not isinstance(paper, Paper):
            raise BrokenPaper(f"{slug} holds no paper: expected PAPER = core.paper.Paper(...)")
        slug = paper.slug
    known = entries()
    if slug not in known:
        raise UnknownPaper(slug, known)
    return known[slug]


def whole_papers() -> list[Paper]:
    """All papers but the broken ones, of which whatever loads each by itself tells."""
    found: list[Paper] = []
    for entry in entries().values():
        with suppress(BrokenPaper):
            found.append(entry.load())
    return found


def find_paper(slug: str) -> Paper:
    """The paper of a slug."""
    return find_entry(slug).load()


def lineage(paper: Paper, find: Callable[[str], Paper] = find_paper) -> list[Paper]:
    """The paper after the papers it is based on, the root first.

    Raises:
        BrokenPaper: the bases form a circle.
    """
    chain = [paper]
    while (base := chain[0].base) is not None:
        if base in {link.slug for link in chain}:
            raise BrokenPaper(f"{paper.slug}: its bases form a circle at {base}")
        chain.insert(0, find(base))
    return chain


def _expand(point: EntryPoint) -> list[Entry]:
    """One entry for a module, one for each public module of a package."""
    distribution = point.dist.name if point.dist else "(unknown)"
    alone = Entry(slug=point.name, module=point.value, distribution=distribution)
    try:
        spec, why = find_spec(point.value), "which is not there"
    except (Exception, SystemExit) as error:  # of the packages above it, which are imported
        spec, why = None, f"which cannot be found ({type(error).__name__}: {error})"
    if spec is None:
        problem = (
            f"{point.name}: {distribution} registers the module {point.value!r}, {why}; reinstall "
            "or uninstall it"
        )
        return [replace(alone, problem=problem)]
    if spec.submodule_search_locations is None:
        return [alone]
    names = [info.name for info in iter_modules(spec.submodule_search_locations)]
    return [
        Entry(
            slug=name.replace("_", "-"), module=f"{point.value}.{name}", distribution=distribution
        )
        for name in names
        if not name.startswith("_")
    ]


def _of_plugins() -> list[Entry]:
    """The papers of the plug-ins that are files."""
    return [
        Entry(slug=paper.slug, module=module.__name__, distribution=str(module.__file__))
        for module in modules()
        if isinstance(paper := getattr(module, "PAPER", None), Paper)
    ]
