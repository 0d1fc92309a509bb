"""News from SQLite: its data version changes whenever another connection commits."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from typing import Protocol

from agents.events.read import Page, stored_events
from agents.states import ENDED_RUNS

POLL_SECONDS = 0.03
"""A check takes about 5 µs; a watcher sees an event after 15 ms on average."""


class SqliteSource:
    """A read-only connection that polls the file's data version."""

    errors: tuple[type[Exception], ...] = (sqlite3.OperationalError,)

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._interrupted = threading.Event()
        self._data_version = 0
        self._last_seqs: dict[str, int] = {}

    def open(self) -> None:
        self._connection = sqlite3.connect(
            f"{Path(self._path).absolute().as_uri()}?mode=ro",
            uri=True,
            isolation_level=None,
            timeout=5,
        )
        self._data_version = self._read_data_version()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def wait(self, watched: Collection[str]) -> Collection[str]:
        interrupted = False
        while not interrupted:
            news = self._runs_with_news(watched)
            if news:
                return news
            interrupted = self._interrupted.wait(POLL_SECONDS)
        self._interrupted.clear()
        return ()

    def interrupt(self) -> None:
        self._interrupted.set()

    def read_page(self, run_id: str, after: int) -> Page | None:
        # The status first: if the run has ended by then, the rows read later are complete.
        status = self._execute("SELECT status FROM agents_run WHERE id = ?", run_id).fetchone()
        if status is None:
            return None
        found = self._execute(
            "SELECT seq, type, data, created_at FROM agents_runevent"
            " WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?",
            run_id,
            after,
            PAGE_EVENTS,
        )
        with closing(found):
            rows, size = [], 0
            for row in found:
                rows.append(row)
                size += len(row[2])
                if size >= PAGE_BYTES:
                    break
        more = len(rows) == PAGE_EVENTS or size >= PAGE_BYTES
        return Page(stored_events(run_id, rows), more, status[0] in ENDED_RUNS)

    def _runs_with_news(self, watched: Collection[str]) -> Collection[str]:
        # Before the rows: a commit in between is then found by the next check.
        version = self._read_data_version()
        if version == self._data_version:
            return ()
        rows = self._execute(
            "SELECT run_id, seq FROM agents_runclock"
            " WHERE run_id IN (SELECT value FROM json_each(?))",
            json.dumps(list(watched)),
        ).fetchall()
        self._data_version = version
        seqs = dict(rows)
        news = [run_id for run_id in watched if seqs.get(run_id) != self._last_seqs.get(run_id, 0)]
        self._last_seqs = seqs
        return news

    def _read_data_version(self) -> int:
        return int(self._execute("PRAGMA data_version").fetchone()[0])

    def _execute(self, sql: str, *parameters: str | int) -> sqlite3.Cursor:
        if self._connection is None:
            raise sqlite3.ProgrammingError("The source is not open.")
        return self._connection.execute(sql, parameters)


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
