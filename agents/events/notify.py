"""Notify watchers of this database's event log."""

from __future__ import annotations

from django.db import connection

CHANNEL = "vel_events"
"""The PostgreSQL notification channel; its payload is a run's id."""


def notify_watchers(run_id: str) -> None:
    """Notify PostgreSQL's listeners, on commit, that `run_id` has new events.

    SQLite has no notifications: its watchers see the change of the file's data version.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, run_id])
