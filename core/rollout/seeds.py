"""Seeds of random streams."""

from hashlib import blake2b


def seed_of(*parts: object) -> int:
    """Return a 63-bit seed: a hash of the `repr` of all parts."""
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=8).digest()) >> 1
