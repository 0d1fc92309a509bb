"""Sessions with a MySQL or MariaDB server: start, reset and stop."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.mysql.connection import (
    MysqlSession,
    connect,
    cut_after,
    driver,
)
from agents.features.databases.drivers.pools import Pool, pool_for
from agents.features.databases.drivers.stopping import CANCEL_SECONDS, ended_in_time
from agents.features.databases.drivers.target import DatabaseTarget
from sandbox.cancellation import Cancellation

_CONNECT_SECONDS = 10
_STOPPED = frozenset({1205, 1317, 1969, 3024})
"""Lock wait, KILL QUERY, `max_statement_time` and `max_execution_time`."""
_AWAY = frozenset({1040, 1053, 1129, 1152, 1203, 1226, 1927, 2003, 2006, 2013, 2026})
_SYNTAX = 1064


def pool_of(target: DatabaseTarget) -> Pool[MysqlSession]:
    """Return the target's pool. Its key has the name and the URL, which are used together.

    A session keeps the global privileges of its start, so a privileged session is not used for
    targets without `allow_privileged`.
    """
    return pool_for(
        (target.name, target.url, str(target.statement_seconds), str(target.allow_privileged)),
        lambda: Pool(lambda: _begin(target), lambda session: _clean(session, target)),
    )


def stoppable(
    session: MysqlSession, target: DatabaseTarget, cancel: Cancellation
) -> AbstractContextManager[None]:
    """Stop the session's statement when the call is cancelled or its time is over.

    A second connection kills the statement; if that fails, the session's socket is shut down.
    """

    def ask() -> None:
        with suppress(QueryFailed), told_by_mysql(target):
            second = connect(target, CANCEL_SECONDS)
            try:
                second.execute(f"KILL QUERY {session.number}")
            finally:
                second.close()

    return ended_in_time(target, cancel, ask, session.cut)


@contextmanager
def told_by_mysql(target: DatabaseTarget) -> Iterator[None]:
    """Turn errors of the server or PyMySQL into QueryFailed."""
    errors = driver().err
    try:
        yield
    except errors.Error as problem:
        number = problem.args[0] if problem.args and isinstance(problem.args[0], int) else 0
        text = str(problem.args[-1]) if problem.args else ""
        if number in _STOPPED:
            raise QueryFailed(
                f"The statement was stopped: {text} ({target.statement_seconds:g} s at most).",
                "timeout",
            ) from None
        if number == _SYNTAX:
            text += "\nOne SELECT, VALUES, TABLE or WITH … SELECT is possible, nothing else."
        raise QueryFailed(
            text or "The connection is closed.", "connection" if number in _AWAY else "database"
        ) from None
    except (OSError, RuntimeError) as problem:
        # PyMySQL raises RuntimeError if a server requests a file of this host.
        raise QueryFailed(f"The server cannot be used: {problem}", "connection") from None


def _begin(target: DatabaseTarget) -> MysqlSession:
    session = connect(target, _CONNECT_SECONDS)
    try:
        with cut_after(_CONNECT_SECONDS, session):
            session.number = session.execute("SELECT CONNECTION_ID()")[0][0]
            _settle(session, target)
    except BaseException:
        session.close()
        raise
    return session


def _settle(session: MysqlSession, target: DatabaseTarget) -> None:
    # Without active roles, the session has only the account's own privileges.
    session.execute("SET ROLE NONE")
    session.execute("SET NAMES utf8mb4")
    session.execute("SET SESSION TRANSACTION READ ONLY")
    seconds = target.statement_seconds
    limit = f"max_execution_time = {max(1, int(seconds * 1000))}"
    if "mariadb" in str(session.execute("SELECT VERSION()")[0][0]).lower():
        limit = f"max_statement_time = {seconds:.3f}"
    waits = max(1, math.ceil(seconds))
    session.execute(
        f"SET SESSION {limit}, lock_wait_timeout = {waits}, innodb_lock_wait_timeout = {waits}"
    )


def _clean(session: MysqlSession, target: DatabaseTarget) -> None:
    session.reset()
    _settle(session, target)
