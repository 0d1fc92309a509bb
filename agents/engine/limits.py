"""The limits of a run: turns, tokens, cost and wall time. Each ends it with a clear reason."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from agents.engine.errors import StopReason
from agents.engine.session import Session


def limit_reached(session: Session) -> tuple[str, str] | None:
    """The (code, message) of a limit that forbids another model call, or None."""
    spec = session.spec
    if session.turn >= spec.max_turns:
        return "limit_turns", f"The run reached its limit of {spec.max_turns} turns."
    if spec.max_tokens is not None and session.tokens >= spec.max_tokens:
        return (
            "limit_tokens",
            f"The run used {session.tokens:,} tokens and may use {spec.max_tokens:,}.",
        )
    if spec.max_cost is not None and session.cost_microusd >= spec.max_cost * 1_000_000:
        used = session.cost_microusd / 1_000_000
        return "limit_cost", f"The run cost ${used:.4f} and may cost ${spec.max_cost:.4f}."
    return None


@contextmanager
def wall_seconds_left(session: Session) -> Iterator[None]:
    """Stop the driver when the run's wall time is over, whatever it waits for."""
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
