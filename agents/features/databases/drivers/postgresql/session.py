"""Sessions with a PostgreSQL server: start, reset and stop."""

from __future__ import annotations

import os
import socket
from contextlib import AbstractContextManager, suppress
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from agents.features.databases.drivers.address import parsed
from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.pools import Pool, pool_for
from agents.features.databases.drivers.stopping import CANCEL_SECONDS, ended_in_time
from agents.features.databases.drivers.target import DatabaseTarget
from sandbox.cancellation import Cancellation

Connection = psycopg.Connection[Any]

_CONNECT_SECONDS = 10

_NETWORK = {
    "connect_timeout": _CONNECT_SECONDS,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


def pool_of(target: DatabaseTarget) -> Pool[Connection]:
    """Return the target's pool. Its key has the name and the URL, which are used together."""
    return pool_for(
        (target.name, target.url, str(target.statement_seconds)),
        lambda: Pool(lambda: _connect(target), lambda connection: _clean(connection, target)),
    )


def _connect(target: DatabaseTarget) -> Connection:
    url = parsed(target)
    if not url.username or not (url.host or "host" in url.query):
        # libpq would use the account and the password of the user that runs Vel.
        raise QueryFailed(f"The URL of {target.name} must name a host and a user.", "configuration")
    given: dict[str, Any] = {
        "host": url.host, "port": url.port, "user": url.username, "password": url.password,
        "dbname": url.database or url.username,
    }  # fmt: skip
    given = {name: value for name, value in given.items() if value is not None}
    # libpq interprets the URL; no part of it becomes an argument of psycopg.
    where = make_conninfo(**{**_NETWORK, "application_name": "vel", **url.query, **given})
    connection = psycopg.connect(where, autocommit=True, prepare_threshold=None)
    try:
        _settle(connection, target)
    except BaseException:
        connection.close()
        raise
    return connection


def _settle(connection: Connection, target: DatabaseTarget) -> None:
    milliseconds = int(target.statement_seconds * 1000)
    connection.execute(
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY;"
        f"SET statement_timeout = {milliseconds};"
        f"SET lock_timeout = {milliseconds};"
        f"SET idle_in_transaction_session_timeout = {milliseconds + 30_000};"
        "SET client_encoding = 'UTF8'; SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'postgres';"
        "SET bytea_output = 'hex'; SET extra_float_digits = 1"
    )


def _clean(connection: Connection, target: DatabaseTarget) -> None:
    """Reset settings, role, temporary tables, locks and prepared statements for the next use."""
    connection.execute("ROLLBACK")
    connection.execute("DISCARD ALL")
    _settle(connection, target)


def stoppable(
    connection: Connection, target: DatabaseTarget, cancel: Cancellation
) -> AbstractContextManager[None]:
    """Stop the connection's statement when the call is cancelled or its time is over.

    It cancels on the server; if that fails, the socket is shut down.
    """

    def ask() -> None:
        with suppress(psycopg.Error):
            connection.cancel_safe(timeout=CANCEL_SECONDS)

    return ended_in_time(target, cancel, ask, lambda: _cut(connection))


def _cut(connection: Connection) -> None:
    with (
        suppress(OSError, psycopg.Error),
        socket.socket(fileno=os.dup(connection.fileno())) as same,
    ):
        same.shutdown(socket.SHUT_RDWR)
