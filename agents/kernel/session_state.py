"""Data of features in the state of a session, which a Python program stores and restores.

A feature lists it in its `session_state.SESSION_STATES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.kernel.features import collect


@dataclass(frozen=True, slots=True)
class SessionAgent:
    """The agent of a session. `spec` is an `agents.spec.AgentSpec`, and `agent_id` may be new."""

    agent_id: str
    spec: Any
    skill_directories: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SessionState:
    """A feature's part of the state. Its fields are also in the stream mode `values`."""

    name: str
    """The key of the part in the state."""
    empty: Mapping[str, Any]
    """The part of a session that has not used the feature."""
    read: Callable[[str], dict[str, Any]]
    """Return the part for the thread with this id, as JSON."""
    check: Callable[[Any, SessionAgent], dict[str, Any]]
    """Return a part as `read` will return it. Raises `ValueError` for one that cannot be restored.
    """
    write: Callable[[str, dict[str, Any]], None]
    """Make a checked part the only content of the thread, which has no active run."""


def session_states() -> list[SessionState]:
    return [state for _, state in collect("session_state", "SESSION_STATES")]
