"""The pages about all papers together."""

from collections.abc import Callable, Mapping

from core.families.profiles import SCALES
from core.pages.claims import claims_files
from core.pages.differences import differences_files
from core.pages.groups import families_files
from core.pages.index import index_files
from core.pages.profiles import profiles_files
from core.pages.selection import selection_files
from core.pages.speed import speed_files
from core.records.places import Shelf, claims_table
from core.records.record import read_records


def collection_files(shelf: Shelf) -> dict[str, Callable[[], Mapping[str, str | bytes]]]:
    """Return a function for each page of no single paper; it gives the page's files by name.

    Without a checkout there are no pages of families, claims and differences to TRL.
    """
    checkout = claims_table().is_file()
    return {
        "families": lambda: families_files(SCALES[0], shelf) if checkout else {},
        "profile": lambda: profiles_files(shelf),
        "selection": lambda: selection_files(SCALES[0], shelf),
        "speed": lambda: speed_files(read_records("bench", shelf)),
        "claims": claims_files,
        "trl": differences_files,
        "index": lambda: index_files(shelf),
    }
