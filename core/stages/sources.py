"""Versions of the models, benchmarks and data sets that a run reads, by their content."""

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from core.claims.needs import PREPARED
from core.data.data_set import DataSet
from core.models.builds import untrained_seed
from core.models.folders import check_model
from core.models.packaged import PACKAGED, packaged_version
from core.records.files import folder_files, known_digest
from core.settings.canonical import digest_of
from core.settings.run_settings import RunSettings
from core.stages.stage import CARD
from eval.nano import NANO_VERSION
from eval.sets.benchmarks import Benchmark, find_benchmark
from eval.sets.problem import Problem


def source_of(name: str, mode: str = "cot") -> dict[str, object]:
    """Return the version of a benchmark's problems, its prompt in a mode, and its grading options.

    The version is that of the problems' generator, the digest of their local files, or "hub".
    """
    benchmark = find_benchmark(name)
    empty = Problem(id="", question="", answer="", language=benchmark.language)
    asked = {"asked": benchmark.prompt(empty, mode)}
    if begun := benchmark.beginning(mode):
        asked["begun"] = begun
    return {"version": _version(benchmark), **asked, **benchmark.grading_overrides}


def _version(benchmark: Benchmark) -> str:
    """Return the version of a benchmark's problems."""
    folder = os.environ.get("REPRO_DATA")
    if benchmark.generator is not None:
        return f"generator {benchmark.generator.version}"
    if benchmark.folder is None and not folder:
        return "hub"
    place = benchmark.folder or Path(folder or ".") / (benchmark.part_of or benchmark.name)
    return digest_of({p.name: known_digest(p) for p in sorted(place.glob("*")) if p.is_file()})


def rows_version(data_set: DataSet) -> dict[str, object]:
    """Return the version of a data set's rows, and of the benchmarks that they are made from."""
    parts = {name: source_of(name) for name in data_set.source.benchmarks}
    return {"version": data_set.source.version(data_set.name), **parts}


def model_folder(name: str) -> Path | None:
    """Return the folder of a shipped or local model; None for a model of the hub."""
    spec = find_spec("core.models")
    places = list(spec.submodule_search_locations or ()) if spec else []
    shipped = [Path(place) / "checkpoints" / name for place in places]
    return next((folder for folder in (*shipped, Path(name)) if folder.is_dir()), None)


def check_models(run: RunSettings) -> None:
    """Check the models of a run that are not prepared by it, see `check_model`.

    Raises:
        UnknownName, MissingFile, DamagedFile: a model does not exist, or a local one is damaged.
    """
    for name in run.models:
        if not name.startswith(PREPARED):
            check_model(name)


def model_version(name: str) -> str:
    """Return the digest of a model's files without its card, or its name on the hub.

    That of a packaged model is the digest of the file that is converted. Random weights are a
    matter of the name and of the initialisation.
    """
    if untrained_seed(name) is not None:
        return f"random weights, {NANO_VERSION}"
    if name in PACKAGED:
        return packaged_version(name)
    folder = model_folder(name)
    if folder is None:
        return f"hub {name}"
    return digest_of(
        {name: digest for name, digest in folder_files(folder).items() if name != CARD}
    )


@cache
def version_here(name: str) -> str:
    """Return the version of a model, read once per process."""
    return model_version(name)
