"""What the tail needs of a database: pages of a run's log, and word that there is news."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from agents.events.read import Page

PAGE_EVENTS = 200
"""How many events a watcher holds at once; the rest of a backlog stays in the database."""
PAGE_BYTES = 2_000_000
"""A page ends with the event that reaches this size: the text of one reply may have megabytes."""


class EventSource(Protocol):
    """One connection of its own, opened once and used by one thread.

    Only `interrupt` may be called from elsewhere, at any time before `close`.
    """

    errors: tuple[type[Exception], ...]
    """What means that the connection is lost: the tail makes a new source."""

    def open(self) -> None:
        """Connect. From here on no commit goes unnoticed."""

    def close(self) -> None:
        """Give everything back. Harmless when the connection is not open, or broken."""

    def wait(self, watched: Collection[str]) -> Collection[str]:
        """Block until some of the `watched` runs have news, or `interrupt` is called.

        Returns the runs that may have events which were not there at the last look.
        """

    def interrupt(self) -> None:
        """Make the `wait` under way, else the next one, return at once."""

    def read_page(self, run_id: str, after: int) -> Page | None:
        """Up to PAGE_EVENTS events, or PAGE_BYTES, with a seq above `after`.

        None where there is no such run.
        """
