"""Which threads have tools that only this process has.

A program that makes an agent with functions of its own binds each of its sessions to them. What
is bound is an `agents.middleware.custom.toolkit.Toolkit`; nothing here looks into it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

ENDS_MARK = "."
"""It is in the fingerprint of a toolkit whose program is notified of the ends of its runs."""
_lock = threading.RLock()  # a collected agent is unbound wherever that happens
_bound: dict[str, Any] = {}


def bind(thread_id: str, toolkit: Any) -> None:
    """From now on runs of this thread, and of its subagents, have the toolkit's tools."""
    with _lock:
        _bound[thread_id] = toolkit


def unbind(toolkit: Any) -> None:
    """Forget a toolkit wherever it is bound: its agent is closed."""
    with _lock:
        for thread_id in [key for key, value in _bound.items() if value is toolkit]:
            del _bound[thread_id]


def bound(thread_id: str) -> Any:
    """The toolkit of a thread that a person began; None if this process has none for it."""
    with _lock:
        return _bound.get(thread_id)


def all_bound() -> list[Any]:
    """Every toolkit of this process, once for each thread that has it."""
    with _lock:
        return list(_bound.values())


def threads_with(wanted: Callable[[Any], bool]) -> list[str]:
    """The threads whose toolkit is a wanted one."""
    with _lock:
        return [thread_id for thread_id, toolkit in _bound.items() if wanted(toolkit)]
