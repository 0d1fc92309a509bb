"""The tail's interface to a database: pages of a run's log, and notifications of news."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from agents.events.read import Page

PAGE_EVENTS = 200
"""Events in a watcher's memory; the rest of a backlog stays in the database."""
PAGE_BYTES = 2_000_000
"""A page ends with the event that reaches this size: the text of one reply may have megabytes."""


class EventSource(Protocol):
    """A separate connection, opened once and used by one thread.

    Only `interrupt` may be called from another thread, at any time before `close`.
    """

    errors: tuple[type[Exception], ...]
    """Exceptions for a lost connection, after which the tail creates a new source."""

    def open(self) -> None:
        """Connect. No later commit is missed."""

    def close(self) -> None:
        """Release all resources. It may be called for a closed or broken connection."""

    def wait(self, watched: Collection[str]) -> Collection[str]:
        """Block until some of the `watched` runs have news, or `interrupt` is called.

        Returns the runs that may have new events since the last call.
        """

    def interrupt(self) -> None:
        """Make the current or the next `wait` return immediately."""

    def read_page(self, run_id: str, after: int) -> Page | None:
        """Return up to PAGE_EVENTS events, or PAGE_BYTES, with a seq above `after`.

        Return None if there is no such run.
        """
