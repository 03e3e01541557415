"""An index of the records for `repro list`: of each file its kind and scale, read once.

It is made again wherever a file is new or has changed, and no number is ever taken from it: what
checks, judges or draws reads the records themselves.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias, cast

from core.run.files import write_atomic
from core.run.places import record_files, root
from eval.errors import DamagedFile

FILE = "index.json"
Line: TypeAlias = tuple[int, int, str, str]  # size, time of change, kind and scale


class Index:
    """The index, read when it is opened; when it is closed, what was asked for is written.

    It lies beside the runs of this machine; where it cannot be written it is made each time.
    """

    def __enter__(self) -> Self:
        self.path = root() / "runs" / FILE
        self._before = read(self.path)
        self._now: dict[str, Line] = {}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._now != self._before:
            with suppress(OSError):
                write_atomic(self.path, json.dumps(self._now) + "\n")

    def kinds_and_scales(self, slug: str) -> Iterator[tuple[str, str]]:
        """The kind and the scale of every record of a paper.

        Raises:
            DamagedFile: a record is no JSON object.
        """
        for path in record_files(slug):
            name, now = f"{slug}/{path.name}", path.stat()
            line = self._before.get(name)
            if line is None or line[:2] != (now.st_size, now.st_mtime_ns):
                line = (now.st_size, now.st_mtime_ns, *kind_and_scale(path))
            self._now[name] = line
            yield line[2], line[3]


def read(path: Path) -> dict[str, Line]:
    """The lines of an index by the file's name; none if there is no index, or it is damaged."""
    try:
        lines = json.loads(path.read_text(encoding="utf-8")).items()
        return {
            name: cast(Line, (size, time, kind, scale)) for name, (size, time, kind, scale) in lines
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def kind_and_scale(path: Path) -> tuple[str, str]:
    """What a record's file says of itself.

    Raises:
        DamagedFile: it is no JSON object.
    """
    try:
        record = dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedFile(f"{path}: not a JSON record ({error}); see `repro check`") from error
    return str(record.get("kind")), str(record.get("scale"))
