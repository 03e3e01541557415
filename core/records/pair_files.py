"""Files of numbers of pairs, solutions, samples or tokens by two models."""
# pyright: basic
# (pyarrow has no types)

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

import pyarrow as pa
import pyarrow.parquet as pq

from core.families.family import SEEN
from core.records.files import write_atomic
from core.records.places import stored_file
from core.records.schema import RunRecord, place_of
from core.settings.canonical import digest_of
from eval.errors import DamagedFile, MissingFile, ReproError
from eval.samples.store import ADVICE

NUMBER, COUNT = pa.float32(), pa.int32()
LOGPS = pa.schema(
    [
        pa.field("set", pa.string(), nullable=False),
        *(
            pa.field(f"{model}_{answer}", NUMBER, nullable=False)
            for model in ("start", "policy")
            for answer in ("chosen", "rejected", "log_weight")
        ),
        # of the gold answers, for pairs that have one
        *(pa.field(f"{model}_gold", NUMBER) for model in ("start", "policy")),
        pa.field("chosen_tokens", COUNT, nullable=False),
        pa.field("rejected_tokens", COUNT, nullable=False),
        pa.field("flipped", COUNT, nullable=False),  # 1 for labels the wrong way round
    ]
)
REWARDS = pa.schema(
    [
        pa.field("set", pa.string(), nullable=False),
        *(
            pa.field(f"{model}_{answer}", NUMBER, nullable=False)
            for model in ("start", "trained")
            for answer in ("chosen", "rejected")
        ),
        pa.field("grade", COUNT),  # how clear the preference is, for data that says so
    ]
)
SCORES = pa.schema(
    [
        pa.field("set", pa.string(), nullable=False),
        *(
            pa.field(name, COUNT, nullable=False)
            for name in ("problem", "answer", "is_answered", "is_sound", "steps", "differing")
        ),
        *(
            pa.field(f"{model}_{name}", kind, nullable=False)
            for model in ("start", "trained")
            for name, kind in (("score", NUMBER), ("as_steps", COUNT), ("as_outcome", COUNT))
        ),
    ]
)
DIVERGENCES = pa.schema(
    [
        pa.field("set", pa.string(), nullable=False),
        *(
            pa.field(name, COUNT, nullable=False)
            for name in ("problem", "tokens", "first_tokens", "gone_tokens")
        ),
        *(
            pa.field(name, NUMBER, nullable=False)
            for name in ("reverse_kl", "reverse_kl_first", "reverse_kl_gone", "forward_kl")
        ),
    ]
)
TOKENS = pa.schema(
    [
        pa.field("set", pa.string(), nullable=False),
        *(
            pa.field(name, COUNT, nullable=False)
            for name in ("problem", "answer", "position", "token")
        ),
        pa.field("is_gone", pa.bool_(), nullable=False),
        *(
            pa.field(name, NUMBER, nullable=False)
            for name in (
                *("logp", "teacher_logp", "reverse_kl", "forward_kl"),
                *("entropy", "teacher_entropy", "unlikely_mass"),
            )
        ),
    ]
)
SCHEMAS = (REWARDS, LOGPS, SCORES, DIVERGENCES, TOKENS)
# Numbers of N pairs, solutions, samples or tokens as columns of N numbers, by the name of the set.
PairSets: TypeAlias = Mapping[str, Mapping[str, Sequence[float]]]


def set_of(quantity: str) -> str:
    """Return the name of the set of pairs that a quantity is of: held-out ones or of training."""
    return "training" if quantity.endswith(SEEN) else "held_out"


def write_pairs(path: Path, sets: PairSets) -> None:
    """Write sets of pairs to a file, whole or not at all; their numbers in single precision."""
    schema = schema_of(sets)
    rows = {"set": [name for name, columns in sets.items() for _ in range(length(columns))]}
    values = {
        name: [x for columns in sets.values() for x in columns.get(name, missing(columns))]
        for name in schema.names[1:]
    }
    buffer = io.BytesIO()
    table = pa.table({**rows, **values}, schema=schema)
    pq.write_table(table, buffer, compression="brotli", store_schema=False, write_statistics=False)
    write_atomic(path, buffer.getvalue())


def missing(columns: Mapping[str, Sequence[float]]) -> Sequence[None]:
    """Return a column without numbers, as long as the other ones."""
    return [None] * length(columns)


def length(columns: Mapping[str, Sequence[float]]) -> int:
    """Return the number of pairs or solutions that columns have."""
    return len(next(iter(columns.values())))


def schema_of(sets: PairSets) -> pa.Schema:
    """Return the schema of a file of these sets."""
    names = {name for columns in sets.values() for name in columns}
    return next(schema for schema in SCHEMAS if names <= {*schema.names})


def read_pairs(path: Path) -> PairSets:
    """Return the sets of pairs of a file.

    Raises:
        MissingFile: there is no such file.
        DamagedFile: the file is not a whole Parquet file with the columns of pairs.
    """
    try:
        table = pq.read_table(pa.BufferReader(path.read_bytes()))
    except FileNotFoundError:
        raise MissingFile(f"{path}: no such file of pairs; {ADVICE}") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DamagedFile(f"{path}: not a whole Parquet file ({error}); {ADVICE}") from None
    if not any(map(table.schema.equals, SCHEMAS)):
        names = ", ".join(table.schema.names)
        expected = " or ".join(", ".join(schema.names) for schema in SCHEMAS)
        raise DamagedFile(
            f"{path}: expected the columns {expected} of pairs, got {names}; {ADVICE}"
        )
    columns = cast(dict[str, list[Any]], table.to_pydict())  # Any: texts and numbers
    places = {
        name: [i for i, s in enumerate(columns["set"]) if s == name]
        for name in dict.fromkeys(columns["set"])
    }
    return {
        name: {
            column: [columns[column][i] for i in rows]
            for column in table.schema.names[1:]
            if columns[column][rows[0]] is not None
        }
        for name, rows in places.items()
    }


def pairs_digest(sets: PairSets) -> str:
    """Return the SHA-256 of the rows of a file of pairs."""
    return digest_of(sets)


def read_run_pairs(run: RunRecord) -> PairSets:
    """Return the pairs that a run was measured on; empty for records without them.

    Raises:
        MissingFile: there is no such file.
        DamagedFile: the file is not what was written.
    """
    if "pairs" not in run:
        return {}
    path = stored_file(run["pairs"])
    sets = read_pairs(path)
    if (digest := pairs_digest(sets)) != run["pairs"]:
        raise DamagedFile(f"{path}: its pairs have the digest {digest}: altered; {ADVICE}")
    return sets


def damaged_pairs(run: RunRecord) -> Iterator[str]:
    """Yield a line if the file of a run's pairs is missing or not what was written."""
    try:
        read_run_pairs(run)
    except ReproError as error:
        yield f"{place_of(run)}: {error}"
