"""The steps of a thread: the states of its files around each call."""

from __future__ import annotations

from agents.models import WorkspaceSnapshot


def step_of(thread_id: str, typed: str | None) -> WorkspaceSnapshot | None:
    """Return the thread's step with the number in `typed`. None if it is invalid or missing."""
    # The longest number that fits the key in every database.
    if not (typed and typed.isascii() and typed.isdecimal() and len(typed) < 16):
        return None
    steps = WorkspaceSnapshot.objects.filter(thread=thread_id).select_related("run", "by")
    return steps.filter(pk=int(typed)).first()
