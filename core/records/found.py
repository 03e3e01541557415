"""Recorded runs, found by what one remembers of them."""

from pathlib import Path
from typing import Any

from core.records.index import listed_runs
from core.records.notes import read_note
from core.records.places import DONE, MODEL, record_files, root
from core.records.record import current, read_record, read_records
from core.records.schema import RunRecord, runs_of
from eval.errors import BadValue, MissingFile, UnknownName


def find_runs(
    paper: str | None = None,
    *,
    arm: str | None = None,
    scale: str | None = None,
    seed: int | None = None,
) -> list[RunRecord]:
    """The runs that stand today and match all that is given, the newest last.

    Raises:
        DamagedFile: a record is not what was written.
    """
    return [
        run
        for run in runs_of(current(read_records(paper)), scale)
        if arm in (None, run["arm"]) and seed in (None, run["seed"])
    ]


def list_runs(
    paper: str | None = None,
    *,
    arm: str | None = None,
    scale: str | None = None,
    seed: int | None = None,
) -> list[dict[str, Any]]:
    """Return what `repro runs` shows of the runs that match, as `find_runs` finds them.

    Raises:
        DamagedFile: a record is not what was written.
    """
    with listed_runs() as index:
        known = [run for run in index.shown(paper) if run is not None]
    superseded = {run["supersedes"] for run in known}
    asked = {"arm": arm, "scale": scale, "seed": seed}
    found = [
        run
        for run in known
        if run["digest"] not in superseded
        and all(value in (None, run[name]) for name, value in asked.items())
    ]
    return sorted(found, key=lambda run: (run["created"], run["digest"]))


def find_run(name: str) -> RunRecord:
    """The run of a record, by its path, its digest, or the first characters of that.

    Raises:
        UnknownName: there is no such record.
        BadValue: several begin like that, or it is the record of something else.
        DamagedFile: it is not what was written.
    """
    path = Path(name)
    known = record_files()
    fits = [path] if path.is_file() else [p for p in known if p.stem.startswith(name)]
    if not fits:
        raise UnknownName("run", name, [p.stem for p in known], "repro runs")
    if len(fits) > 1:
        some = ", ".join(p.stem for p in fits[:3])
        raise BadValue(f"run {name}: {len(fits)} records begin like that ({some}): give more of it")
    found = runs_of([read_record(fits[0])])
    if not found:
        raise BadValue(f"{fits[0]} is no record of a run: `repro runs` lists those")
    return found[0]


def models_here() -> dict[str, Path]:
    """The folders of the models that were trained on this machine, by the digest of the weights."""
    found: dict[str, Path] = {}
    for note in sorted((root() / "runs").glob(f"train-*/{DONE}")):
        weights = read_note(note, f"delete {note.parent}")["outputs"].get("weights")
        found.setdefault(weights, note.parent / MODEL)
    return found


def model_of(run: RunRecord) -> Path:
    """The folder of the model that a run trained, on this machine.

    Raises:
        MissingFile: it was trained elsewhere, or its stage was deleted.
    """
    if (folder := models_here().get(run["train"]["weights"])) is not None:
        return folder
    arm, seed, scale = run["arm"], run["seed"], run["scale"]
    raise MissingFile(
        f"the model of {run['paper']}, {arm} seed {seed} at {scale} ({run['digest']}) is not in "
        f"{root() / 'runs'}: train it there with `repro run {run['paper']} --arm {arm} "
        f"--seed {seed} --at {scale}` and its own settings"
    )
