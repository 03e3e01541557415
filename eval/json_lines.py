"""Reads JSON lines, plain or gzipped, and the answers in them."""

import gzip
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias, cast

from eval.errors import DamagedFile, MissingFile

GZIP = b"\x1f\x8b"  # the first bytes of a gzip file
SHOWN = 60  # characters of a line in an error
JsonObject: TypeAlias = dict[str, Any]  # Any: values of JSON have no common static type
JsonFields: TypeAlias = Mapping[str, Any]  # a JSON object that is only read


def json_lines(path: Path) -> Iterator[tuple[int, JsonObject]]:
    """Yield the line number, counted from 1, and the JSON object of each line of a file.

    The file is UTF-8, plain or gzipped, with or without a byte order mark. A line ends at the
    newline character, also after a carriage return; blank lines are skipped.

    Raises:
        MissingFile: the file does not exist.
        DamagedFile: the file is not UTF-8 text, or a line is not a JSON object.
    """
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            yield number, json_object(line, f"{path}, line {number}")


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, plain or gzipped, without its byte order mark.

    Raises:
        MissingFile: the file does not exist.
        DamagedFile: the file is not UTF-8 text, or its gzip stream is cut off or altered.
    """
    try:
        content = path.read_bytes()
        return (gzip.decompress(content) if content[:2] == GZIP else content).decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFile(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DamagedFile(f"{path}: a folder, expected a file of JSON lines") from None
    except UnicodeDecodeError as error:
        raise DamagedFile(f"{path}: not UTF-8 at byte {error.start}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DamagedFile(f"{path}: not a whole gzip file ({error})") from None


def json_object(line: str, where: str) -> JsonObject:
    """Parse one line as a JSON object.

    Raises:
        DamagedFile: the line is not a JSON object; the message begins with `where`.
    """
    try:
        row: object = json.loads(line, object_pairs_hook=distinct_fields)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{where}: not JSON ({error}), expected a JSON object") from None
    if not isinstance(row, dict):
        raise DamagedFile(f"{where}: no JSON object but {line.strip()[:SHOWN]!r}")
    return cast(JsonObject, row)


def distinct_fields(fields: list[tuple[str, Any]]) -> JsonObject:  # Any: JSON values
    """Return the fields of a JSON object as a dictionary.

    Raises:
        ValueError: two fields have the same name.
    """
    row = dict(fields)
    if len(row) < len(fields):
        names = [name for name, _ in fields]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"field {twice!r} occurs twice")
    return row


def answer_text(value: object, where: str) -> str:
    """Return an answer as text; see `as_answer`.

    Raises:
        DamagedFile: `value` is not an answer; the message begins with `where`.
    """
    text = as_answer(value)
    if text is None:
        actual = "nothing" if value is None else f"{value!r:.{SHOWN}}"
        raise DamagedFile(
            f"{where}: 'answer': expected a non-empty string or a finite number, got {actual}"
        )
    return text


def as_answer(value: object) -> str | None:
    """Return a non-blank text unchanged, a finite number in decimal digits, else None.

    7.0 becomes "7". Booleans are not answers.
    """
    to_python = getattr(value, "item", None)  # of numpy and torch scalars
    number = value if to_python is None else to_python()
    if isinstance(number, str):
        return number if number.strip() else None
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    if isinstance(number, float) and not math.isfinite(number):
        return None
    return f"{Decimal(repr(int(number) if number == int(number) else number)):f}"
