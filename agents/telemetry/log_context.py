"""The run of the current task, for all log lines of the task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_about: ContextVar[Mapping[str, str | int] | None] = ContextVar("vel_log_context", default=None)


def log_context() -> Mapping[str, str | int]:
    return _about.get() or {}


@contextmanager
def logged_about(**ids: str | int) -> Iterator[None]:
    """Add `ids` to the log lines of the block, in place of those of an outer block.

    Do not pass message content.
    """
    token = _about.set(ids)
    try:
        yield
    finally:
        _about.reset(token)
