"""Checks that passed here: one whose record, files and code are the same need not be made again."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from core.records.files import folder_files, write_atomic
from core.records.places import root
from core.settings.canonical import SHORT, digest_of

FILE = "passed.json"
SUFFIXES = (".py", ".j2", ".css", ".js", ".json", ".txt")


class Passed:
    """The digests of all that passed checks depended on.

    They lie beside the runs of this machine and never beside the records: where they are missing,
    as in a fresh checkout, or cannot be written, everything is checked.
    """

    def __init__(self, *, ask_again: bool = False):
        self.path = root() / "runs" / FILE
        self._before = set[str]() if ask_again else read(self.path)
        self._now = set[str]()

    def problems(self, inputs: Mapping[str, object], work: Iterable[str]) -> list[str]:
        """What `work` finds; it is not asked if it found nothing with the same inputs before."""
        key = digest_of(inputs)[:SHORT]
        found = [] if key in self._before else list(work)
        if not found:
            self._now.add(key)
        return found

    def save(self, *, whole: bool) -> None:
        """Keep what passed; after a check of the `whole` collection nothing else."""
        keys = sorted(self._now if whole else self._now | read(self.path))
        if keys and keys != sorted(read(self.path)):
            with suppress(OSError):  # then the next check asks again
                write_atomic(self.path, json.dumps(keys, indent=0) + "\n")


def read(path: Path) -> set[str]:
    """The digests in a file; none if there is no such file or it is damaged."""
    try:
        return set(map(str, json.loads(path.read_text(encoding="utf-8"))))
    except (OSError, ValueError, TypeError):
        return set()


@cache
def code_digest(packages: tuple[str, ...], distributions: tuple[str, ...]) -> str:
    """A digest of the source files of packages, and of the versions of distributions."""
    sources: dict[str, dict[str, str]] = {}
    for name in packages:
        spec = find_spec(name)
        folders = spec.submodule_search_locations if spec else None
        for folder in folders or ():
            files = folder_files(Path(folder))
            sources[name] = {k: v for k, v in files.items() if k.endswith(SUFFIXES)}
    return digest_of({"sources": sources, "versions": {d: version(d) for d in distributions}})
