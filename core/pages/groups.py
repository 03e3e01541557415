"""Pages of all families and of groups of families, and which page a name has."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from core.families.preference_pairs import PREFERENCE
from core.families.table import FAMILIES, listed_families
from core.pages.families import FOLDER, family_files, stem
from core.pages.pair_losses import pair_losses_files
from core.paper import Paper
from core.paper.registry import whole_papers
from core.records.files import write_atomic
from core.records.places import Shelf

Maker: TypeAlias = Callable[[str, Sequence[Paper], str, Shelf], dict[str, str]]
GROUPS: Mapping[str, Maker] = {PREFERENCE: pair_losses_files}


def families_files(scale: str, shelf: Shelf) -> dict[str, str]:
    """Return the pages of all families and groups with papers, by their places in the reports."""
    all_papers = whole_papers()
    heads = [name for name, family in FAMILIES.items() if family.listed_with in ("", name)]
    papers = {
        name: [paper for paper in all_papers if paper.family in listed_families(name)]
        for name in (*heads, *GROUPS)
    }
    return {
        f"{FOLDER}/{file}": text
        for name, members in papers.items()
        if members
        for file, text in page_files(name, members, scale, shelf).items()
    }


def page_files(name: str, papers: Sequence[Paper], scale: str, shelf: Shelf) -> dict[str, str]:
    """Return the page of a family or of a group by file name."""
    return GROUPS.get(name, family_files)(name, papers, scale, shelf)


def write_family(name: str, papers: Sequence[Paper], scale: str) -> Path:
    """Write the page of a family or a group in every format; return that in Markdown."""
    folder = Shelf.HERE.reports / FOLDER
    for file, text in page_files(name, papers, scale, Shelf.HERE).items():
        write_atomic(folder / file, text)
    return folder / f"{stem(name, scale)}.md"
