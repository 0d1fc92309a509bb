"""Who speaks in a conversation, and the person whose `me/` a run reads."""

from __future__ import annotations

from agents.models import Run

OWN_DOORS = frozenset({"admin", "api", "chat", "cli", "python", "web"})
"""`Run.source` of runs whose messages come from their owner. A copy in a fork has the source of its
original.

Others get their messages from elsewhere: schedules and webhooks act without the person, MCP clients
are other programs, and agents write the tasks of subagents.
"""

OWN_WORDS = OWN_DOORS | {"schedule"}
"""The same, and schedules: their owner has written the message."""


def has_own_messages_only(run: Run) -> bool:
    """Return whether the owner of the conversation has written all its messages.

    False if a webhook, an MCP client or a test of a draft has started a run of it, of the
    conversation of its parent, or of the part that it has copied as a fork.
    """
    runs = Run.every.filter(thread=run.thread.root_id or run.thread_id)
    return not runs.exclude(source__in=OWN_WORDS).exists()


def personal_reader(run: Run) -> int | None:
    """Return the id of the owner of `run`, or None if the run must not read the owner's `me/`.

    All runs of the thread count, because the prompt and the messages of the thread stay. So do
    those that it has copied as a fork.
    """
    thread = run.thread
    if run.parent_id is not None or thread.root_id is not None or run.trigger is not None:
        return None
    if thread.owner_id != run.owner_id:
        return None
    if Run.every.filter(thread=thread.pk).exclude(source__in=OWN_DOORS).exists():
        return None
    return run.owner_id
