"""The interfaces from which the messages of a conversation came."""

from __future__ import annotations

from agents.models import Run, Thread

UNKNOWN = "unknown"
"""The source of the copied messages of a fork from an older version, whose origin was erased."""


def message_sources(thread: Thread) -> set[str]:
    """Return each `Run.source` of a thread, and of the threads from which it was forked.

    A fork contains their messages, also after they have been erased. So it stores their sources.
    """
    sources = set(Run.every.filter(thread=thread).values_list("source", flat=True).distinct())
    if thread.forked_turn is not None:
        sources.update([UNKNOWN] if thread.forked_sources is None else thread.forked_sources)
    return sources
