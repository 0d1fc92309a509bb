"""Compactions that a person requests in a session at the terminal.

The session runs its tasks in the same process, so a request is in memory. It gets lost with the
process, and the conversation is then shortened when it is too long, as without a request.
"""

from __future__ import annotations

_requested: set[str] = set()


def request_compaction(thread_id: str) -> None:
    """Shorten the thread before the next model call of this process."""
    _requested.add(thread_id)


def take_request(thread_id: str) -> bool:
    """Return whether a compaction of the thread was requested, and forget the request."""
    try:
        _requested.remove(thread_id)
    except KeyError:
        return False
    return True
