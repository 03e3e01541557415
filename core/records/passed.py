"""Cache of passed checks: a check of unchanged records, files and code is not repeated."""

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
    """The digests of the inputs of all checks that passed.

    The file lies beside the runs of this machine and never beside the records. If it is missing,
    as in a fresh checkout, or cannot be written, everything is checked.

    Args:
        ask_again: Ignore the checks that passed before.
    """

    def __init__(self, *, ask_again: bool = False):
        self.path = root() / "runs" / FILE
        self._before = set[str]() if ask_again else read_keys(self.path)
        self._now = set[str]()

    def problems(self, inputs: Mapping[str, object], work: Iterable[str]) -> list[str]:
        """Return the problems that `work` yields; none if the same inputs passed before."""
        key = digest_of(inputs)[:SHORT]
        problems = [] if key in self._before else list(work)
        if not problems:
            self._now.add(key)
        return problems

    @property
    def found(self) -> frozenset[str]:
        """The digests of the checks that passed in this process."""
        return frozenset(self._now)

    def add(self, found: frozenset[str]) -> None:
        """Add the digests of checks that passed in another process."""
        self._now |= found

    def save(self, *, whole: bool) -> None:
        """Store the passed checks; after a check of the `whole` collection, drop all older ones."""
        keys = sorted(self._now if whole else self._now | read_keys(self.path))
        if keys and keys != sorted(read_keys(self.path)):
            with suppress(OSError):  # then the next check asks again
                write_atomic(self.path, json.dumps(keys, indent=0) + "\n")


def read_keys(path: Path) -> set[str]:
    """Return the digests in a file; empty if the file is missing or damaged."""
    try:
        return set(map(str, json.loads(path.read_text(encoding="utf-8"))))
    except (OSError, ValueError, TypeError):
        return set()


@cache
def code_digest(packages: tuple[str, ...], distributions: tuple[str, ...]) -> str:
    """Return a digest of the source files of packages and the versions of distributions.

    A package that cannot be found has no files. The digest is computed once per process.

    Raises:
        PackageNotFoundError: a distribution is not installed.
    """
    sources: dict[str, dict[str, str]] = {}
    for name in packages:
        spec = find_spec(name)
        folders = spec.submodule_search_locations if spec else None
        for folder in folders or ():
            files = folder_files(Path(folder))
            sources[name] = {k: v for k, v in files.items() if k.endswith(SUFFIXES)}
    return digest_of({"sources": sources, "versions": {d: version(d) for d in distributions}})
