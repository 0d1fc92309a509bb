"""One kind of id: 26 characters, opaque, unguessable, sorted roughly by the time of making."""

from __future__ import annotations

import secrets
import time

ID_LENGTH = 26
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id() -> str:
    """48 bits of milliseconds and 80 random bits in Crockford's base 32 (a ULID in lower case)."""
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))
