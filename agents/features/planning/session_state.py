"""The to-do list in the state of a Python program's session."""

from __future__ import annotations

from typing import Any

from agents.features.planning.todos import (
    check_todos,
    drafts_from,
    read_todos,
    store_todos,
    todos_as_data,
)
from agents.kernel.session_state import SessionState


def read(thread_id: str) -> dict[str, Any]:
    return {"todos": todos_as_data(read_todos(thread_id))}


def write(thread_id: str, state: dict[str, Any]) -> None:
    """Replace the list. Raises `TodoError`."""
    store_todos(thread_id, check_todos(drafts_from(state["todos"])))


SESSION_STATES = [SessionState("planning", read, write)]
