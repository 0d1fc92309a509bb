"""Data of features in the state of a session, which a Python program stores and restores.

A feature lists its parts of the state in its `session_state.SESSION_STATES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.kernel.features import collect


@dataclass(frozen=True, slots=True)
class SessionAgent:
    """The agent of a session. `spec` is an `agents.spec.AgentSpec`. The agent may not exist yet."""

    agent_id: str
    spec: Any
    skill_directories: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SessionState:
    """A feature's part of the state. The stream mode `values` contains its fields too."""

    name: str
    """The key of the part in the state."""
    empty: Mapping[str, Any]
    """The part in the state of a session that has not used the feature."""
    read: Callable[[str], dict[str, Any]]
    """Returns the part for the thread with this id, as JSON data."""
    check: Callable[[Any, SessionAgent], dict[str, Any]]
    """Returns a part as `read` will return it. Raises `ValueError` if it cannot be restored."""
    write: Callable[[str, dict[str, Any]], None]
    """Replaces the part of a thread with a checked one. The thread has no active run."""


def session_states() -> list[SessionState]:
    return [state for _, state in collect("session_state", "SESSION_STATES")]
