"""Who speaks in a conversation, and the person whose `me/` a run reads."""

from __future__ import annotations

from agents.models import Run
from agents.services.runs.message_sources import message_sources

OWN_DOORS = frozenset({"admin", "api", "chat", "cli", "forked", "python", "web"})
"""`Run.source` of runs whose messages come from their owner, and of the runs in a fork.

Others get their messages from elsewhere: schedules and webhooks act without the person, MCP clients
are other programs, and agents write the tasks of subagents.
"""

OWN_WORDS = OWN_DOORS | {"schedule"}
"""The same, and schedules: their owner has written the message."""


def has_own_messages_only(run: Run) -> bool:
    """Return whether the owner of the conversation has written all its messages.

    False if a webhook, an MCP client or a test of a draft has started a run of it, of the
    conversation of its parent, or of the one from which it was forked.
    """
    return message_sources(run.thread.root or run.thread) <= OWN_WORDS


def personal_reader(run: Run) -> int | None:
    """Return the id of the owner of `run`, or None if the run must not read the owner's `me/`.

    All runs of the thread count, because the prompt and the messages of the thread stay. So do
    those of the thread from which it was forked.
    """
    thread = run.thread
    if run.parent_id is not None or thread.root_id is not None or run.trigger is not None:
        return None
    if thread.owner_id != run.owner_id:
        return None
    return run.owner_id if message_sources(thread) <= OWN_DOORS else None
