"""Versions of the models, benchmarks and data sets that a run reads, by their content."""

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from core.data.sets import DataSet
from core.records.files import file_digest, folder_files
from core.settings.canonical import digest_of
from core.stages.stage import CARD
from eval.sets.benchmarks import Benchmark, find_benchmark
from eval.sets.problem import Problem

# Digests of sources that generate the same problems and solutions as older ones, and those.
EQUAL_GENERATORS = {
    "fbf8d46dc301a926c5d60d883b430ffb00a9f35ece2c50b2112a5f2c075d2f74": (
        "5ba8540d13d90bb6023a960458ea6c2efde7b64bd6cc856291223320681e14fb"
    ),
}


def source_of(name: str, mode: str = "cot") -> dict[str, object]:
    """Return the version of a benchmark's problems, its prompt in a mode, and its grading options.

    The version is the digest of the problems' generator or local files, or "hub".
    """
    benchmark = find_benchmark(name)
    empty = Problem(id="", question="", answer="", language=benchmark.language)
    asked = benchmark.prompt(empty, mode)
    return {"version": _version(benchmark), "asked": asked, **benchmark.grading_overrides}


def _version(benchmark: Benchmark) -> str:
    """Return the version of a benchmark's problems."""
    folder = os.environ.get("REPRO_DATA")
    if benchmark.folder is None and benchmark.hub is None:
        return f"generator {_generator()}"
    if benchmark.folder is None and not folder:
        return "hub"
    place = benchmark.folder or Path(folder or ".") / (benchmark.part_of or benchmark.name)
    return digest_of({p.name: file_digest(p) for p in sorted(place.glob("*")) if p.is_file()})


@cache
def _generator() -> str:
    """Return the digest of the sources that generate the pocket world, or of equal older ones."""
    spec = find_spec("eval.pocket")
    places = list(spec.submodule_search_locations or ()) if spec else []
    paths = [path for place in places for path in Path(place).glob("*.py")]
    digest = digest_of({path.name: file_digest(path) for path in paths})
    return EQUAL_GENERATORS.get(digest, digest)


def rows_version(one: DataSet) -> dict[str, object]:
    """Return the version of a data set's rows, and of the benchmarks that they are made from."""
    parts = {name: source_of(name) for name in one.source.benchmarks}
    return {"version": one.source.version(one.name), **parts}


def model_folder(name: str) -> Path | None:
    """Return the folder of a shipped or local model; None for a model of the hub."""
    spec = find_spec("core.models")
    places = list(spec.submodule_search_locations or ()) if spec else []
    shipped = [Path(place) / "checkpoints" / name for place in places]
    return next((folder for folder in (*shipped, Path(name)) if folder.is_dir()), None)


def model_version(name: str) -> str:
    """Return the digest of a model's files without its card, or its name on the hub."""
    folder = model_folder(name)
    if folder is None:
        return f"hub {name}"
    return digest_of({name: at for name, at in folder_files(folder).items() if name != CARD})


@cache
def version_here(name: str) -> str:
    """Return the version of a model, read once per process."""
    return model_version(name)
