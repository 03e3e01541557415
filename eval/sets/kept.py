"""Generated problems in the user's cache: a process need not make again what another has made."""

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from pathlib import Path

from platformdirs import user_cache_path

from eval.pocket.suites import pocket_problems
from eval.sets.problem import Problem
from eval.whole_files import write_whole


def kept_problems(suite: str, split: str, draw: int) -> tuple[Problem, ...]:
    """`pocket_problems`, made once for each version of the generator on this machine.

    Where nothing can be kept, or what was kept is damaged, they are made here.
    """
    path = user_cache_path("repro-papers") / "pocket" / version() / f"{suite}-{split}-{draw}"
    found = read_kept(path)
    if found is None:
        found = tuple(pocket_problems(suite, split, draw=draw))
        rows = json.dumps([asdict(problem) for problem in found]).encode()
        with suppress(OSError):
            write_whole(path, hashlib.sha256(rows).hexdigest().encode() + b"\n" + rows)
    return found


def read_kept(path: Path) -> tuple[Problem, ...] | None:
    """The problems of a file whose first line is the digest of the rest; None if it is not that."""
    try:
        digest, _, rows = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if digest != hashlib.sha256(rows).hexdigest().encode():
        return None
    return tuple(Problem(**row) for row in json.loads(rows))


@cache
def version() -> str:
    """Digest of the sources that decide which problems there are, and what a problem is."""
    sources = [*files("eval.pocket").iterdir(), files("eval.sets").joinpath("problem.py")]
    texts = [one.read_bytes() for one in sources if one.name.endswith(".py")]
    return hashlib.sha256(b"\0".join(sorted(texts))).hexdigest()
