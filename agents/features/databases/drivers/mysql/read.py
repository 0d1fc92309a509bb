"""Read-only access to MySQL and MariaDB.

The server enforces three rules. The transaction is read-only and always rolled back. The statement
must be valid as a subquery, so only SELECT, VALUES, TABLE and WITH … SELECT, without INTO. And it
is prepared, which accepts one statement only.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from decimal import Decimal
from functools import partial
from typing import Any

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.mysql.connection import (
    MysqlSession,
    connect,
    cut_after,
    driver,
)
from agents.features.databases.drivers.params import marked
from agents.features.databases.drivers.pools import Pool, pool_for
from agents.features.databases.drivers.rows import RowsWithin
from agents.features.databases.drivers.stopping import CANCEL_SECONDS, ended_in_time
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget, is_hidden
from agents.features.databases.drivers.values import form_of, native_of, text_of
from sandbox.cancellation import Cancellation

_END = re.compile(r"[;\s]+\Z")


def query_mysql(
    target: DatabaseTarget, query: str, params: Mapping[str, Any] | None, cancel: Cancellation
) -> QueryResult:
    """Run one statement. Blocks. Raises QueryFailed if there is no result."""
    text, values = marked(query, params) if params else (query, [])
    with read_only_mysql(target, cancel) as session:
        _prepare(session, _END.sub("", text), values, target.max_rows)
        using = ", ".join(f"@vel_{number}" for number in range(len(values)))
        execute = "EXECUTE vel_rows" + (f" USING {using}" if using else "")
        with session.streamed(execute) as cursor:
            if cursor.description is None:
                return QueryResult()
            kept = RowsWithin(target, [str(column[0]) for column in cursor.description])
            forms = _forms(target, cursor.description)
            while (row := cursor.fetchone()) is not None:
                if not kept.add(tuple(form(value) for form, value in zip(forms, row, strict=True))):
                    break
            return kept.result()


def _forms(target: DatabaseTarget, columns: Sequence[Sequence[Any]]) -> list[Callable[[Any], Any]]:
    """Return for each column the function that gives its values the target's form."""
    usual = form_of(target)
    if not target.native:
        return [usual] * len(columns)
    kinds, convert = driver().constants.FIELD_TYPE, driver().converters
    readers: dict[int, Callable[[str], Any]] = {
        kinds.DECIMAL: Decimal, kinds.NEWDECIMAL: Decimal, kinds.JSON: json.loads,
        kinds.DATE: convert.convert_date, kinds.TIME: convert.convert_timedelta,
        kinds.DATETIME: convert.convert_datetime, kinds.TIMESTAMP: convert.convert_datetime,
    }  # fmt: skip
    return [
        partial(_read, readers[column[1]]) if column[1] in readers else usual for column in columns
    ]


def _read(reader: Callable[[str], Any], text: str | None) -> Any:
    """Return what `reader` makes of the server's text, or the text, as of the date 0000-00-00."""
    try:
        return None if text is None else native_of(reader(text))
    except (ArithmeticError, ValueError, RecursionError):
        return text_of(text)


@contextmanager
def read_only_mysql(target: DatabaseTarget, cancel: Cancellation) -> Iterator[MysqlSession]:
    """Yield a clean session in a read-only transaction, which is rolled back."""
    with (
        told_by_mysql(target),
        pool_of(target).connection(target.statement_seconds, cancel) as session,
        stoppable(session, target, cancel),
    ):
        session.execute("START TRANSACTION READ ONLY")
        check_account(session, target)
        begun = time.monotonic()
        yield session
        # Servers can return a partial result of a statement that they stopped, as with BENCHMARK().
        if cancel.cancelled:
            raise QueryFailed("The call was cancelled.", "cancelled")
        if time.monotonic() - begun >= target.statement_seconds:
            raise QueryFailed(
                f"The statement took longer than {target.statement_seconds:g} s.", "timeout"
            )
        if not session.closed:
            session.execute("ROLLBACK")


def _prepare(session: MysqlSession, text: str, values: list[Any], max_rows: int) -> None:
    """Prepare the statement, once as it is and once as a subquery.

    The same text must be valid in both forms. A text with unbalanced parentheses is valid in one of
    them at most.
    """
    given = {"vel_text": text, "vel_look": f"SELECT EXISTS ({text}\n)"}
    given |= {f"vel_{number}": value for number, value in enumerate(values)}
    session.execute("SET " + ", ".join(f"@{name} = {literal(given[name])}" for name in given))
    session.execute("PREPARE vel_rows FROM @vel_text")
    session.execute("PREPARE vel_look FROM @vel_look")
    session.execute("DEALLOCATE PREPARE vel_look")
    # One row more than the limit, to detect that there are more.
    session.execute(f"SET SESSION sql_select_limit = {max_rows + 1}")


def literal(value: Any) -> str:
    """Return a value as SQL.

    Text is hexadecimal, which does not depend on modes or character sets.
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise QueryFailed("A parameter is not a finite number.", "invalid")
        return f"{value!r}e0" if "e" not in repr(value) else repr(value)
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    digits = str(value).encode(errors="replace").hex()
    return f"CONVERT(0x{digits} USING utf8mb4)" if digits else "''"


HOW_TO_MAKE_ONE = (
    "Make an account that can only read, and use it in the connection: CREATE USER "
    "'vel_reader'@'%' IDENTIFIED BY '…'; GRANT SELECT ON shop.* TO 'vel_reader'@'%'."
)
_NAMES = 5
_READING = frozenset({"USAGE", "SELECT", "SHOW VIEW", "SHOW DATABASES"})
_QUOTED = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\"", re.DOTALL)
_COLUMNS = re.compile(r"\([^()]*\)")
_GRANT = re.compile(r"GRANT (?P<what>.+?) ON .*? TO (?P<rest>.*)", re.DOTALL)
_GIVES_NOTHING = re.compile(r"GRANT (?!.* ON ).* TO .*|SET DEFAULT ROLE .*|REVOKE .*", re.DOTALL)
"""Lines without privileges: Vel's sessions disable roles, and partial revokes remove privileges."""

SYSTEM_SCHEMAS = "'mysql', 'information_schema', 'performance_schema', 'sys'"
_READABLE_ACCOUNTS = """
SELECT TABLE_NAME FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = 'mysql' AND FIND_IN_SET('select', PRIVILEGES) LIMIT 1
"""
READABLE_COLUMNS = f"""
SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA NOT IN ({SYSTEM_SCHEMAS}) AND FIND_IN_SET('select', PRIVILEGES)
"""  # noqa: S608  # a constant


def check_account(session: MysqlSession, target: DatabaseTarget) -> None:
    """Raise QueryFailed unless agents may use the session's account."""
    if not target.allow_privileged:
        _check_grants(session, target)
    if target.hidden_columns:
        _check_hidden(session, target)


def _check_grants(session: MysqlSession, target: DatabaseTarget) -> None:
    found = {str(row[0]): powers(row[0]) for row in session.execute("SHOW GRANTS")}
    excess = sorted({power for powers_of in found.values() for power in powers_of})
    if excess:
        more = ", …" if len(excess) > _NAMES else ""
        for_all = {line: place for line in found if found[line] and (place := _public_place(line))}
        own = any(found[line] for line in found if line not in for_all)
        advice = [_without_public(place) for place in for_all.values()]
        raise QueryFailed(
            f"The account of {target.name} has more permissions than reading "
            f"({', '.join(excess[:_NAMES])}{more}), so agents cannot use it. "
            + " ".join([*advice, HOW_TO_MAKE_ONE] if own else advice),
            "privileged",
        )
    if session.execute(_READABLE_ACCOUNTS):
        raise QueryFailed(
            f"The account of {target.name} may read the server's own tables (mysql.*), which "
            "contain passwords of accounts: grant SELECT on single databases, not on *.*. "
            f"{HOW_TO_MAKE_ONE}",
            "privileged",
        )


_TO_PUBLIC = re.compile(
    r"GRANT .+? ON (?P<place>\S+|(?:`(?:[^`]|``)*`|\*)\.(?:`(?:[^`]|``)*`|\*)) TO `?PUBLIC`?"
    r"(?: WITH GRANT OPTION)?",
    re.DOTALL,
)


def _public_place(grant: str) -> str | None:
    """Return where a line of SHOW GRANTS gives all accounts of MariaDB rights, None elsewhere."""
    found = _TO_PUBLIC.fullmatch(grant)
    return found and found["place"]


def _without_public(place: str) -> str:
    return (
        f"All accounts have rights on {place}, by a grant to PUBLIC, which mariadb-install-db "
        "makes for databases for tests. Remove it as an administrator: REVOKE ALL PRIVILEGES ON "
        f"{place} FROM PUBLIC;"
    )


def powers(grant: str) -> set[str]:
    """Return the privileges beyond reading in a line of SHOW GRANTS.

    An unknown line counts as one.
    """
    line = _COLUMNS.sub("", _QUOTED.sub("``", grant))
    found = _GRANT.fullmatch(line)
    if found is None:
        return set() if _GIVES_NOTHING.fullmatch(line) else {"an unknown privilege"}
    named = {name.strip() for name in found["what"].split(",")} - _READING
    if "GRANT OPTION" in found["rest"]:
        named.add("GRANT OPTION")
    return named


def _check_hidden(session: MysqlSession, target: DatabaseTarget) -> None:
    """Raise QueryFailed if the account can read hidden columns: only the server can hide them."""
    readable = sorted(
        f"{schema}.{table}.{column}"
        for schema, table, column in session.execute(READABLE_COLUMNS)
        if is_hidden(target, schema, table, column)
    )
    if readable:
        more = ", …" if len(readable) > _NAMES else ""
        raise QueryFailed(
            f"{target.name} cannot be queried: its account can read hidden columns "
            f"({', '.join(readable[:_NAMES])}{more}). REVOKE SELECT on their tables and databases, "
            "then GRANT SELECT (column, …) ON table for the other columns.",
            "hidden_column",
        )


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
            text += "\nExpected exactly one SELECT, VALUES, TABLE or WITH … SELECT."
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
