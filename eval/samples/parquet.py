"""Storage of sets of graded samples in one Parquet file, readable by `pandas.read_parquet`."""

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, groupby
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eval.errors import BadValue, DamagedFile, MissingFile
from eval.samples.store import ADVICE, TYPES, Sample, Sealed, Weighed, boxed_answer
from eval.whole_files import write_whole

TEXT, COUNT = pa.string(), pa.int32()
FORM = pa.list_(pa.field("element", COUNT, nullable=False))
SCHEMA = pa.schema(
    [
        pa.field("set", TEXT, nullable=False),
        pa.field("benchmark", TEXT, nullable=False),
        pa.field("id", TEXT, nullable=False),
        pa.field("sample", COUNT, nullable=False),
        pa.field("output", TEXT),  # null where the text is not stored: `extracted` in a box
        pa.field("tokens", COUNT, nullable=False),
        pa.field("truncated", pa.bool_()),
        pa.field("extracted", TEXT),
        pa.field("correct", pa.bool_()),
        pa.field("rule", TEXT, nullable=False),
        pa.field("reason", TEXT, nullable=False),
        pa.field("form", FORM),  # of sealed samples
    ]
)
LOGP = pa.field("logp", pa.float64())  # of weighed samples; only files of such have this column
WITH_LOGP = SCHEMA.append(LOGP)
FIELDS = WITH_LOGP.names[1:]  # of a sample
LINE = (  # the canonical JSON of a sample: its fields in the order of their names
    '{"benchmark":%s,"correct":%s,"extracted":%s,%s"id":%s,%s"output":%s,"reason":%s,"rule":%s,'
    '"sample":%s,"tokens":%s,"truncated":%s}\n'
)
# Encodings that Brotli compresses best: a column of few distinct texts in no order as a dictionary.
DICTIONARIES = ["reason"]
ENCODINGS = {
    "set": "PLAIN",
    "benchmark": "PLAIN",
    "id": "DELTA_BYTE_ARRAY",
    "sample": "BYTE_STREAM_SPLIT",
    "output": "PLAIN",
    "tokens": "BYTE_STREAM_SPLIT",
    "extracted": "DELTA_LENGTH_BYTE_ARRAY",
    "rule": "PLAIN",
    "form.list.element": "BYTE_STREAM_SPLIT",
    "logp": "BYTE_STREAM_SPLIT",  # of single precision: half of the bytes are 0
}
LEVEL = 11  # of Brotli
PAGE = 1 << 24  # bytes, so that a column is one page: each page is compressed on its own


@dataclass(frozen=True)
class SampleColumns:
    """The rows of a file of samples as one list per column, and the rows of each set."""

    columns: Mapping[str, list[Any]]  # Any: texts, counts, truth values and lists of counts
    sets: Mapping[str, slice]

    def rows(self, name: str) -> dict[str, list[Any]]:  # Any: as above
        """Return the columns of the samples of one set."""
        return {column: self.columns[column][self.sets[name]] for column in FIELDS}

    def samples(self, name: str) -> list[Sample]:
        """Return the samples of a set in their order."""
        columns = self.rows(name)
        forms, logps = columns.pop("form"), columns.pop("logp")
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        return [
            Weighed(**row, logp=logp)
            if logp is not None
            else Sample(**row)
            if form is None
            else Sealed(**row, form=form)
            for row, form, logp in zip(rows, forms, logps, strict=True)
        ]

    def digest(self, name: str) -> str:
        """Return the SHA-256 of the canonical lines of a set, that of `store.digest_of`."""
        return hashlib.sha256("".join(self.lines(name)).encode()).hexdigest()

    def lines(self, name: str) -> Iterator[str]:
        """Return the canonical JSON line of each sample of a set, as `store.to_lines` writes it."""
        columns = self.rows(name)
        values = (
            map(AS_JSON[WITH_LOGP.field(field).type], columns[field]) for field in sorted(FIELDS)
        )
        return map(LINE.__mod__, zip(*values, strict=True))


def text_as_json(text: str | None) -> str:
    """Return a text as JSON, not escaped to ASCII."""
    return "null" if text is None else encode_basestring(text)


def form_as_json(form: Sequence[int] | None) -> str:
    """Return the field `form` of a JSON line with its comma, e.g. `"form":[1,2],`; "" for None."""
    return "" if form is None else f'"form":[{",".join(map(str, form))}],'


def logp_as_json(logp: float | None) -> str:
    """Return the field `logp` of a JSON line with its comma, e.g. `"logp":-1.5,`; "" for None."""
    return "" if logp is None else f'"logp":{logp!r},'


AS_JSON: dict[pa.DataType, Callable[[Any], str]] = {  # Any: values of that type
    TEXT: text_as_json,
    COUNT: str,
    pa.bool_(): {True: "true", False: "false", None: "null"}.__getitem__,
    FORM: form_as_json,
    LOGP.type: logp_as_json,
}


def write_sets(path: Path, sets: Mapping[str, Sequence[Sample]]) -> None:
    """Write sets of samples, by their names, to one file, whole or not at all.

    Raises:
        BadValue: a text holds half of a surrogate pair, which UTF-8 has no bytes for.
        OSError: the disk is full or not writable; an older file of that name is untouched.
    """
    samples = list(chain.from_iterable(sets.values()))
    columns: dict[str, list[Any]] = {  # Any: texts, counts, truth values and lists of counts
        "set": [name for name, set_samples in sets.items() for _ in set_samples],
        **{column: [getattr(sample, column) for sample in samples] for column in TYPES},
        "output": list(map(stored_text, samples)),
        "form": [sample.form if isinstance(sample, Sealed) else None for sample in samples],
        "logp": [sample.logp if isinstance(sample, Weighed) else None for sample in samples],
    }
    schema = SCHEMA if all(logp is None for logp in columns["logp"]) else WITH_LOGP
    try:
        table = pa.table({name: columns[name] for name in schema.names}, schema=schema)
    except (UnicodeEncodeError, pa.ArrowInvalid) as error:
        raise BadValue(f"{path}: samples cannot be stored as Parquet ({error})") from None
    buffer = io.BytesIO()
    pq.write_table(
        table,
        buffer,
        compression="brotli",
        compression_level=LEVEL,
        use_dictionary=DICTIONARIES,  # pyright: ignore[reportArgumentType] - or names of columns
        column_encoding={n: e for n, e in ENCODINGS.items() if n != LOGP.name or n in schema.names},
        dictionary_pagesize_limit=PAGE,
        data_page_size=PAGE,
        row_group_size=max(1, len(samples)),
        write_statistics=False,
        store_schema=False,
    )
    write_whole(path, buffer.getvalue())


def stored_text(sample: Sample) -> str | None:
    """Return the value of column `output`: None for a sealed sample that is only its answer."""
    sealed = isinstance(sample, Sealed) and sample.output == boxed_answer(sample.extracted)
    return None if sealed else sample.output


def read_set(path: Path, name: str, digest: str) -> list[Sample]:
    """Return the samples of a set of a file.

    Raises:
        MissingFile: there is no such file.
        DamagedFile: the file is not whole, lacks the set, or the set has another digest.
    """
    columns = read_columns(path)
    if problem := set_problem(columns, name, digest):
        raise DamagedFile(f"{path}: {problem}; {ADVICE}")
    return columns.samples(name)


def sets_problem(columns: SampleColumns, sets: Mapping[str, str]) -> str:
    """Return how the sets of a file differ from these digests; empty if all agree."""
    if columns.sets.keys() != sets.keys():
        actual, expected = (", ".join(sorted(names)) or "none" for names in (columns.sets, sets))
        return f"the sets {actual}, expected {expected}"
    problems = (set_problem(columns, name, digest) for name, digest in sets.items())
    return "; ".join(filter(None, problems))


def set_problem(columns: SampleColumns, name: str, digest: str) -> str:
    """Return how a set differs from this digest; empty if the digests agree."""
    if name not in columns.sets:
        return f"no set {name}, only {', '.join(columns.sets) or 'none'}"
    actual = columns.digest(name)
    return "" if actual == digest else f"{name} has the digest {actual}, expected {digest}"


def read_columns(path: Path) -> SampleColumns:
    """Return the rows of a file of samples; a file that has not changed is read once.

    Raises:
        MissingFile: there is no such file.
        DamagedFile: the file is not a whole Parquet file with the columns of samples.
    """
    try:
        state = path.stat()
    except FileNotFoundError:
        raise MissingFile(f"{path}: no such samples file; {ADVICE}") from None
    return _read_columns(path, state.st_ino, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=2)
def _read_columns(path: Path, *_state: int) -> SampleColumns:
    # the state tells a file from what it was
    try:
        file = pq.ParquetFile(pa.BufferReader(path.read_bytes()))
        if not any(map(file.schema_arrow.equals, (SCHEMA, WITH_LOGP))):
            raise DamagedFile(
                f"{path}: expected the columns {', '.join(SCHEMA.names)} of samples, got "
                f"{', '.join(file.schema_arrow.names)}; {ADVICE}"
            )
        columns = {
            name: as_list(column)
            for name, column in zip(
                file.schema_arrow.names, file.read(use_threads=False).columns, strict=True
            )
        }
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, DamagedFile):
            raise
        raise DamagedFile(f"{path}: not a whole Parquet file ({error}); {ADVICE}") from None
    columns["output"] = [
        boxed_answer(answer) if output is None else output
        for output, answer in zip(columns["output"], columns["extracted"], strict=True)
    ]
    columns.setdefault(LOGP.name, [None] * len(columns["set"]))
    sets: dict[str, slice] = {}
    start = 0
    for name, rows in groupby(columns["set"]):
        stop = start + sum(1 for _ in rows)
        sets[name], start = slice(start, stop), stop
    return SampleColumns(columns, sets)


def as_list(column: Any) -> list[Any]:  # Any: pyarrow has no types; the values of a column
    """Return the values of a column as a list."""
    if pa.types.is_list(column.type) or pa.types.is_floating(column.type):  # None stays None
        return column.to_pylist()
    return column.to_numpy().tolist()
