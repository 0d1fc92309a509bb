"""How long a test waits for something that always comes, and how often it asks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

HANG = 300.0
"""Seconds. Nothing takes so long, not even on a busy machine: at the end of it something hangs.

It is less than pytest's own limit (`timeout` in pyproject.toml), so that the test can say what it
waited for. A test that takes long sets its own limit to a multiple.
"""

_SHORTEST, _USUAL, _LONGEST = 0.005, 0.05, 0.5
"""Seconds between two looks."""


def poll(condition: Callable[[], T], limit: float = HANG) -> T | None:
    """Return the first true value of `condition`, or None after `limit` seconds.

    The pauses grow with the time that has passed and with the time that a look takes. So a test
    that waits leaves the processor to what it waits for.
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
