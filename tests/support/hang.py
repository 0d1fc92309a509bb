"""The time limit of tests for an event that always happens, and the intervals of polling."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

HANG = 300.0
"""Seconds. No event takes as long, even on a busy machine: after that time the code hangs.

It is less than pytest's own limit (`timeout` in pyproject.toml), so that the failure can name the
event. A long test sets its own limit to a multiple.
"""

_SHORTEST, _USUAL, _LONGEST = 0.005, 0.05, 0.5
"""Seconds between two checks."""


def poll(condition: Callable[[], T], limit: float = HANG) -> T | None:
    """Return the first true value of `condition`, or None after `limit` seconds.

    The pauses grow with the elapsed time and with the time of a check. So a waiting test leaves the
    processor to the code that it waits for.
    """
    begin = time.monotonic()
    while True:
        before = time.monotonic()
        if value := condition():
            return value
        now = time.monotonic()
        if now - begin > limit:
            return None
        pause = min(max((now - begin) / 20, _SHORTEST), _USUAL)
        time.sleep(max(pause, min(4 * (now - before), _LONGEST)))
