"""News from PostgreSQL: every append sends a notification when it commits."""

from __future__ import annotations

import select
import socket
from collections.abc import Collection, Mapping
from typing import Any

import psycopg

from agents.events.append import CHANNEL
from agents.events.read import Page, stored_events
from agents.events.sqlite import PAGE_BYTES, PAGE_EVENTS
from agents.states import ENDED_RUNS

SILENCE_SECONDS = 15.0
"""After this time without news, every watcher reads: this detects dead connections and deleted
runs.
"""
CONNECT_SECONDS = 5
APPLICATION_NAME = "vel tail"
"""The name of the connection in pg_stat_activity."""
_PAGE = """
    SELECT seq, type, data, created_at, size FROM (
        SELECT *, (sum(octet_length(data)) OVER (ORDER BY seq))::bigint AS size FROM (
            SELECT seq, type, data, created_at FROM agents_runevent
            WHERE run_id = %s AND seq > %s ORDER BY seq LIMIT %s
        ) AS page
    ) AS sized
    WHERE size - octet_length(data) < %s ORDER BY seq
"""
"""The limit of bytes is in SQL, since the client would load all rows before it could stop."""


class PostgresSource:
    """A connection that listens on the channel of `agents.events.append`.

    `parameters` are keyword arguments of `psycopg.connect`; a URL goes as `conninfo`.
    """

    errors: tuple[type[Exception], ...] = (psycopg.OperationalError,)

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._parameters = {
            "connect_timeout": CONNECT_SECONDS,
            "application_name": APPLICATION_NAME,
            **parameters,
        }
        self._connection: psycopg.Connection[Any] | None = None
        # A byte in it ends a `wait`, which waits for it and for the connection.
        self._bell, self._bell_push = socket.socketpair()
        self._bell.setblocking(False)
        self._bell_push.setblocking(False)

    def open(self) -> None:
        self._connection = psycopg.connect(**self._parameters, autocommit=True)
        self._connection.execute(f"LISTEN {CHANNEL}")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._bell.close()
        self._bell_push.close()

    def wait(self, watched: Collection[str]) -> Collection[str]:
        connection = self._opened()
        # Notifications that arrived with another statement's answer are already here.
        notified = _notified_runs(connection)
        while not notified:
            bell = self._bell.fileno()
            ready, _, _ = select.select([connection.fileno(), bell], [], [], SILENCE_SECONDS)
            if bell in ready:
                self._silence_bell()
                return ()
            if not ready:
                return watched
            notified = _notified_runs(connection)
        return notified.intersection(watched)

    def interrupt(self) -> None:
        try:
            self._bell_push.send(b"!")
        except BlockingIOError:
            pass  # a byte is already waiting

    def read_page(self, run_id: str, after: int) -> Page | None:
        connection = self._opened()
        # The status first: if the run has ended by then, the rows read later are complete.
        status = connection.execute(
            "SELECT status FROM agents_run WHERE id = %s", [run_id]
        ).fetchone()
        if status is None:
            return None
        rows = connection.execute(_PAGE, [run_id, after, PAGE_EVENTS, PAGE_BYTES]).fetchall()
        more = len(rows) == PAGE_EVENTS or (bool(rows) and rows[-1][4] >= PAGE_BYTES)
        events = stored_events(run_id, (row[:4] for row in rows))
        return Page(events, more, status[0] in ENDED_RUNS)

    def _silence_bell(self) -> None:
        try:
            while self._bell.recv(4096):
                pass
        except BlockingIOError:
            pass

    def _opened(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            raise psycopg.ProgrammingError("The source is not open.")
        return self._connection


def _notified_runs(connection: psycopg.Connection[Any]) -> set[str]:
    return {notify.payload for notify in connection.notifies(timeout=0)}
