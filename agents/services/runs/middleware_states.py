"""The stored state of custom middleware in a session: a root thread and its subagents' threads.

The state belongs to the root thread. `thread_id` is its id, except in `session_thread`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.models import MiddlewareState, Thread


def session_thread(thread_id: str) -> str:
    """Return the id of the root thread of any thread."""
    root = Thread.objects.values_list("root_id", flat=True).get(pk=thread_id)
    return root or thread_id


def read_state(thread_id: str, name: str) -> dict[str, Any] | None:
    """Return the stored state of the middleware `name`, or None."""
    rows = MiddlewareState.objects.filter(thread_id=thread_id, name=name)
    found: dict[str, Any] | None = rows.values_list("state", flat=True).first()
    return found


def store_state(thread_id: str, name: str, state: dict[str, Any]) -> None:
    """Store the state of the middleware `name`, in the caller's transaction."""
    MiddlewareState.objects.update_or_create(
        thread_id=thread_id, name=name, defaults={"state": state}
    )


def replace_states(thread_id: str, states: Mapping[str, dict[str, Any]]) -> None:
    """Replace all states of a session by `states`, which maps names of middleware to states."""
    MiddlewareState.objects.filter(thread_id=thread_id).exclude(name__in=states).delete()
    for name, state in states.items():
        store_state(thread_id, name, state)


def states_of(thread_id: str) -> dict[str, dict[str, Any]]:
    """Return all states of a session: a dictionary of the middleware's names to states."""
    rows = MiddlewareState.objects.filter(thread_id=thread_id)
    return dict(rows.values_list("name", "state"))
