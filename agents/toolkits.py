"""Threads with tools that exist only in this process.

A program that defines an agent with its own functions binds each of its sessions to them. The
values are of `agents.middleware.custom.toolkit.Toolkit`; this module does not use their contents.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

ENDS_MARK = "."
"""In the fingerprint of a toolkit whose program is notified when its runs end."""
FILES_MARK = "/"
"""In the fingerprint of a toolkit whose program has separate files for the agent."""
_lock = threading.RLock()  # reentrant: garbage collection can unbind an agent at any place
_bound: dict[str, Any] = {}


def bind(thread_id: str, toolkit: Any) -> None:
    """Give the toolkit's tools to future runs of this thread and of its subagents."""
    with _lock:
        _bound[thread_id] = toolkit


def unbind(toolkit: Any) -> None:
    """Remove a toolkit from all threads, because its agent is closed."""
    with _lock:
        for thread_id in [key for key, value in _bound.items() if value is toolkit]:
            del _bound[thread_id]


def bound(thread_id: str) -> Any:
    """Return the toolkit of a root thread. None if this process has none for it."""
    with _lock:
        return _bound.get(thread_id)


def all_bound() -> list[Any]:
    """Return all toolkits of this process, once for each thread."""
    with _lock:
        return list(_bound.values())


def threads_with(wanted: Callable[[Any], bool]) -> list[str]:
    """Return the threads with a toolkit that `wanted` accepts."""
    with _lock:
        return [thread_id for thread_id, toolkit in _bound.items() if wanted(toolkit)]
