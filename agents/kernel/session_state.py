"""Data of features in the state of a session, which a Python program stores and restores.

A feature lists it in its `session_state.SESSION_STATES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents.kernel.features import collect


@dataclass(frozen=True, slots=True)
class SessionState:
    """A feature's part of the state. Its fields are also in the stream mode `values`."""

    name: str
    """The key of the part in the state."""
    read: Callable[[str], dict[str, Any]]
    """Return the part for the thread with this id, as JSON."""
    write: Callable[[str, dict[str, Any]], None]
    """Restore a result of `read` in the thread, which has no active run."""


def session_states() -> list[SessionState]:
    return [state for _, state in collect("session_state", "SESSION_STATES")]
