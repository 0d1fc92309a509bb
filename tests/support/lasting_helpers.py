"""Keep the helper processes of databases between tests: a start costs 0.2 to 1 CPU s.

A helper serves one kind of database. In Vel it also serves one target only; here the idle ones of
all targets are shared. A helper that a test closes, kills or wears out is not kept.
"""

from __future__ import annotations

import sys
from typing import Any

from tests.support import process_guard

_CLIENT = "agents.features.databases.drivers.helper.client"
_KEPT_OF_A_KIND = 2

Kind = tuple[Any, ...]
"""The dialect, and the environment that a helper inherits from this process."""

_kinds: dict[int, Kind] = {}
"""The kind of each helper that `_start` has started, by process ID."""
_idle: dict[Kind, list[Any]] = {}


def release() -> None:
    """Take the idle helpers out of the pools, for the next test, and close the other connections.

    Does nothing in a process that has not used a database.
    """
    if client := sys.modules.get(_CLIENT):
        from agents.features.databases.drivers import pools

        client.Helper = _start  # type: ignore[attr-defined]
        with pools._lock:
            for key, pool in pools._pools.items():
                if key[0] == "helper":
                    _take_idle(pool)
        pools.close_idle(older_than=0)


def end() -> None:
    """End the helpers that are kept, and their connections."""
    for helper in [helper for kept in _idle.values() for helper in kept]:
        _kinds.pop(helper.pid, None)
        helper.close()
    _idle.clear()


def _take_idle(pool: Any) -> None:
    from agents.features.databases.drivers.pools import _has_something_to_say

    with pool._free:
        idle, pool._idle = pool._idle, []
    for _, helper in idle:
        kind = _kinds.get(helper.pid)
        kept = _idle.setdefault(kind, []) if kind else []
        usable = not helper.closed and not _has_something_to_say(helper)
        if kind and usable and len(kept) < _KEPT_OF_A_KIND:
            process_guard.share(helper.pid)
            kept.append(helper)
        else:
            _kinds.pop(helper.pid, None)
            helper.close()


def _start(dialect: str) -> Any:
    """Return a helper that was kept, or start one."""
    from agents.features.databases.drivers.helper import process

    kind = (dialect, *sorted(process._environment().items()), *sys.path)
    kept = _idle.get(kind, [])
    while kept:
        helper = kept.pop()
        if not helper.closed:
            return helper
        helper.close()
    helper = process.Helper(dialect)
    _kinds[helper.pid] = kind
    return helper
