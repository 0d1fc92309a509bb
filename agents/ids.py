"""Ids of rows: 26 characters, opaque, not guessable, sorted by creation time.

Also names of processes, and markers of sandboxes, which are derived from the ids of runs.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import threading
import time
from datetime import datetime

ID_LENGTH = 26
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_TIME_SHIFT = 80
_STEP_BITS = 64

_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """Return 48 bits of milliseconds and 79 random bits in Crockford's base 32 (a lower-case ULID).

    Ids of one process increase, even within a millisecond or if the clock is set back: in these
    cases the id is the previous one plus a random step of 64 bits.
    """
    global _last
    # The highest random bit is 0, to leave room for steps in the same millisecond.
    number = (time.time_ns() // 1_000_000) << _TIME_SHIFT | secrets.randbits(_TIME_SHIFT - 1)
    with _lock:
        if number >> _TIME_SHIFT <= _last >> _TIME_SHIFT:
            number = _last + 1 + secrets.randbits(_STEP_BITS)
        _last = number
    return _written(number)


def first_id_at(moment: datetime) -> str:
    """Return an id that sorts before ids created from `moment` on, and after earlier ones."""
    return _written(int(moment.timestamp() * 1_000) << _TIME_SHIFT)


def _written(number: int) -> str:
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))


def own_executor(suffix: str = "") -> str:
    """Return a name for this process, as a lease or a run stores it.

    `suffix` must be unique in the process. An empty one is replaced by a random one.
    """
    return f"{socket.gethostname()[:40]}:{os.getpid()}:{suffix or secrets.token_hex(4)}"


def run_marker(run_id: str) -> str:
    """Return the token that marks a run's sandboxes for the reaper. It does not show the id."""
    return hashlib.sha256(b"vel-sandbox:" + run_id.encode()).hexdigest()[:32]
