"""The registry of papers: finds those of all distributions by the entry points `repro.papers`.

An entry point is either `slug = "package.module"`, one paper, or `name = "package"`, a package of
which each module is a paper named like its slug. A module is imported only when its paper is
loaded. Plug-in files (`eval.plugins`) need no entry point: their `PAPER` is found directly.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from inspect import getdoc
from pkgutil import iter_modules

from core.paper.page import Paper
from eval.errors import ReproError, UnknownName, error_line
from eval.plugins import modules, use
from eval.registered import group_entry_points

GROUP = "repro.papers"


class UnknownPaper(UnknownName):
    """A slug that no installed distribution provides."""

    def __init__(self, slug: str, known: Iterable[str]):
        super().__init__("paper", slug, known, "repro list")


class BrokenPaper(ReproError, ImportError):
    """A paper that is registered wrongly, cannot be imported, or is no paper."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A registered paper: its slug, its module and the distribution that provides it.

    `problem` is what is wrong with the registration; loading such a paper raises it.
    """

    slug: str
    module: str
    distribution: str
    problem: str = ""

    def load(self) -> Paper:
        """Import the module and return its `PAPER`.

        Raises:
            BrokenPaper: the entry has a problem, the import fails, or `PAPER` is no `Paper`.
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
        """Return the module's docstring: the paper in a sentence, and its caveats.

        Raises:
            BrokenPaper: see `load`.
        """
        self.load()
        return getdoc(import_module(self.module)) or ""


def entries() -> dict[str, Entry]:
    """Return all papers by slug, sorted; an entry has a `problem` if two modules share its slug."""
    by_slug: dict[str, Entry] = {}
    for group in (*map(_expand, group_entry_points(GROUP)), _of_plugins()):
        for entry in group:
            first = by_slug.setdefault(entry.slug, entry)
            if first.module != entry.module:
                problem = (
                    f"{entry.slug} is provided twice: by {first.distribution} ({first.module}) and "
                    f"by {entry.distribution} ({entry.module}); uninstall one of them"
                )
                by_slug[entry.slug] = replace(first, problem=problem)
    return dict(sorted(by_slug.items()))


def find_entry(slug: str) -> Entry:
    """Return the entry of one paper, by its slug or by the path of a plug-in, FILE.py.

    Raises:
        UnknownPaper: no paper has that slug.
        BrokenPaper: the plug-in holds no paper.
        MissingFile, BadValue: the plug-in cannot be imported.
    """
    if slug.endswith(".py"):
        paper = getattr(use(slug), "PAPER", None)
        if not isinstance(paper, Paper):
            raise BrokenPaper(f"{slug} holds no paper: expected PAPER = core.paper.Paper(...)")
        slug = paper.slug
    by_slug = entries()
    if slug not in by_slug:
        raise UnknownPaper(slug, by_slug)
    return by_slug[slug]


def whole_papers() -> list[Paper]:
    """Load and return all papers, leaving out the broken ones without an error."""
    papers: list[Paper] = []
    for entry in entries().values():
        with suppress(BrokenPaper):
            papers.append(entry.load())
    return papers


def find_paper(slug: str) -> Paper:
    """Return the paper of a slug; errors are those of `find_entry` and `Entry.load`."""
    return find_entry(slug).load()


def lineage(paper: Paper, find: Callable[[str], Paper] = find_paper) -> list[Paper]:
    """Return a paper after the papers it is based on, the root first.

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
    """Return one entry for a module, and one per public module for a package."""
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
    """Return the entries of the papers in plug-in files."""
    return [
        Entry(slug=paper.slug, module=module.__name__, distribution=str(module.__file__))
        for module in modules()
        if isinstance(paper := getattr(module, "PAPER", None), Paper)
    ]
