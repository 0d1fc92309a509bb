"""The limits that end a run, with a clear reason: turns and wall time.

Limits of tokens and cost are not here: a feature parks the run and asks a person for more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from agents.engine.errors import StopReason
from agents.engine.session import Session


def limit_reached(session: Session) -> tuple[str, str] | None:
    """Return the (code, message) of a limit that forbids another model call, or None."""
    spec = session.spec
    if session.turn >= spec.max_turns:
        return "limit_turns", f"The run reached its limit of {spec.max_turns} turns."
    return None


@contextmanager
def wall_seconds_left(session: Session) -> Iterator[None]:
    """Stop the driver at the end of the run's wall time, whatever it waits for."""
    seconds = session.spec.max_seconds
    if seconds is None:
        yield
        return
    left = max(0.0, seconds - session.elapsed_seconds())
    timer = asyncio.get_running_loop().call_later(left, session.handle.stop, StopReason.WALL_TIME)
    try:
        yield
    finally:
        timer.cancel()
