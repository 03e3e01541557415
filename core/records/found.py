"""Searches for recorded runs and for their trained models."""

from pathlib import Path

from core.records.index import ListedRun, listed_runs
from core.records.notes import read_note
from core.records.places import DONE, MODELS, record_files, root
from core.records.record import current, read_record, read_records
from core.records.schema import Record, RunRecord, place_of, runs_of
from eval.errors import BadValue, MissingFile, UnknownName


def find_runs(
    paper: str | None = None,
    *,
    arm: str | None = None,
    scale: str | None = None,
    seed: int | None = None,
) -> list[RunRecord]:
    """Return the runs that are not superseded and match every given filter, oldest first.

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
) -> list[ListedRun]:
    """Return the fields that `repro runs` shows of each run that `find_runs` would return.

    Raises:
        DamagedFile: a record is not what was written.
    """
    with listed_runs() as index:
        runs = [run for run in index.entries(paper) if run is not None]
    superseded = {run["supersedes"] for run in runs}
    filters = {"arm": arm, "scale": scale, "seed": seed}
    matches = [
        run
        for run in runs
        if run["digest"] not in superseded
        and all(value in (None, run[name]) for name, value in filters.items())
    ]
    return sorted(matches, key=lambda run: (run["created"], run["digest"]))


def find_run(name: str) -> RunRecord:
    """Return a run by the path of its record, its digest, or the first characters of the digest.

    Raises:
        UnknownName, BadValue, DamagedFile: see `find_record`, or the record is not of a run.
    """
    record = find_record(name)
    if record["kind"] != "run":
        raise BadValue(f"{place_of(record)} is no record of a run: `repro runs` lists those")
    return runs_of([record])[0]


def find_record(name: str) -> Record:
    """Return a record by its path, its digest, or the first characters of the digest.

    Raises:
        UnknownName: no record has this name.
        BadValue: several digests begin like this.
        DamagedFile: the record is not what was written.
    """
    path = Path(name)
    record_paths = record_files()
    matches = [path] if path.is_file() else [p for p in record_paths if p.stem.startswith(name)]
    if not matches:
        raise UnknownName("run", name, [p.stem for p in record_paths], "repro runs")
    if len(matches) > 1:
        examples = ", ".join(p.stem for p in matches[:3])
        raise BadValue(
            f"run {name}: {len(matches)} records begin like that ({examples}): give more of it"
        )
    return read_record(matches[0])


def models_here() -> dict[str, Path]:
    """Return the folder of each model trained on this machine, by the digest of its weights."""
    folders: dict[str, Path] = {}
    for note in sorted((root() / "runs").glob(f"train-*/{DONE}")):
        outputs = read_note(note, f"delete {note.parent}")["outputs"]
        digests = {"live": outputs.get("weights"), **outputs.get("averages", {})}
        for weights, digest in digests.items():
            folders.setdefault(digest, note.parent / MODELS[weights])
    return folders


def model_of(run: RunRecord) -> Path:
    """Return the folder of the model that a run trained on this machine.

    Raises:
        MissingFile: the model was trained elsewhere, or its stage was deleted.
    """
    if (folder := models_here().get(run["train"]["weights"])) is not None:
        return folder
    arm, seed, scale = run["arm"], run["seed"], run["scale"]
    raise MissingFile(
        f"the model of {run['paper']}, {arm} seed {seed} at {scale} ({run['digest']}) is not in "
        f"{root() / 'runs'}: train it there with `repro run {run['paper']} --arm {arm} "
        f"--seed {seed} --at {scale}` and its own settings"
    )
