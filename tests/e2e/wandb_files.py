"""Reads what W&B wrote offline."""

import json
import struct

from wandb.proto.wandb_internal_pb2 import Record

HEADER = 7  # bytes of the file's header, and of each chunk's: checksum, length, kind
BLOCK = 32768
WHOLE, LAST = 1, 4


def records(path):
    """The records of a .wandb file: chunks in blocks, as in a LevelDB log."""
    content = path.read_bytes()
    assert content[:4] == b":W&B"
    place, parts = HEADER, b""
    while place + HEADER <= len(content):
        if BLOCK - place % BLOCK < HEADER:  # too little left in this block for a chunk
            place += BLOCK - place % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", content, place)
        place += HEADER
        parts += content[place : place + length]
        place += length
        if kind in (WHOLE, LAST):
            record = Record()
            record.ParseFromString(parts)
            yield record
            parts = b""


def rows(path):
    """The logged rows in their order, names to values."""
    for record in records(path):
        items = record.history.item
        if items:
            yield {
                item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items
            }
