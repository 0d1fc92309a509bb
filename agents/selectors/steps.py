"""The steps of a thread: the states of its files around each call."""

from __future__ import annotations

from agents.models import WorkspaceSnapshot


def step_of(thread_id: str, typed: str | None) -> WorkspaceSnapshot | None:
    """The step of the thread with the number that a page was asked for; None for anything else."""
    # The longest number that every database takes for a key.
    if not (typed and typed.isascii() and typed.isdecimal() and len(typed) < 16):
        return None
    steps = WorkspaceSnapshot.objects.filter(thread=thread_id).select_related("run", "by")
    return steps.filter(pk=int(typed)).first()
