"""What custom middleware remembers of a session: reading and storing it."""

from __future__ import annotations

from typing import Any

from agents.models import MiddlewareState, Thread


def session_thread(thread_id: str) -> str:
    """The thread that a person began: its subagents' threads have its state."""
    root = Thread.objects.values_list("root_id", flat=True).get(pk=thread_id)
    return root or thread_id


def read_state(thread_id: str, name: str) -> dict[str, Any] | None:
    """None where nothing has been stored."""
    rows = MiddlewareState.objects.filter(thread_id=thread_id, name=name)
    found: dict[str, Any] | None = rows.values_list("state", flat=True).first()
    return found


def store_state(thread_id: str, name: str, state: dict[str, Any]) -> None:
    """Within the transaction of what has changed the state."""
    MiddlewareState.objects.update_or_create(
        thread_id=thread_id, name=name, defaults={"state": state}
    )


def states_of(thread_id: str) -> dict[str, dict[str, Any]]:
    """All of a session, by the middleware's name."""
    rows = MiddlewareState.objects.filter(thread_id=thread_id)
    return dict(rows.values_list("name", "state"))
