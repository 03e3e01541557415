"""Caches generated problems on disk, one file for each suite, split and draw."""

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


def cached_pocket_problems(suite: str, split: str, draw: int) -> tuple[Problem, ...]:
    """Return `pocket_problems`, generated once on this machine for each version of the generator.

    The problems are generated again if the cache cannot be written or its file is damaged.
    """
    path = user_cache_path("repro-papers") / "pocket" / version() / f"{suite}-{split}-{draw}"
    problems = read_cache(path)
    if problems is None:
        problems = tuple(pocket_problems(suite, split, draw=draw))
        rows = json.dumps([asdict(problem) for problem in problems]).encode()
        with suppress(OSError):
            write_whole(path, hashlib.sha256(rows).hexdigest().encode() + b"\n" + rows)
    return problems


def read_cache(path: Path) -> tuple[Problem, ...] | None:
    """Return the problems of a cache file; None if it is missing or damaged.

    The first line of the file is the SHA-256 digest of the lines after it.
    """
    try:
        digest, _, rows = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if digest != hashlib.sha256(rows).hexdigest().encode():
        return None
    return tuple(Problem(**row) for row in json.loads(rows))


@cache
def version() -> str:
    """Return the SHA-256 of the sources of the generator and of the `Problem` class."""
    files_of_version = [*files("eval.pocket").iterdir(), files("eval.sets").joinpath("problem.py")]
    sources = [file.read_bytes() for file in files_of_version if file.name.endswith(".py")]
    return hashlib.sha256(b"\0".join(sorted(sources))).hexdigest()
