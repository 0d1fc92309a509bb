"""Read-only access to MySQL and MariaDB.

The server enforces three rules. The transaction is read-only and always rolled back. The statement
must be valid as a subquery, so only SELECT, VALUES, TABLE and WITH … SELECT, without INTO. And it
is prepared, which accepts one statement only.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.mysql.account import check_account
from agents.features.databases.drivers.mysql.connection import MysqlSession
from agents.features.databases.drivers.mysql.session import pool_of, stoppable, told_by_mysql
from agents.features.databases.drivers.params import marked
from agents.features.databases.drivers.rows import RowsWithin
from agents.features.databases.drivers.sqlite.read import cell
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget
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
            while (row := cursor.fetchone()) is not None:
                if not kept.add(tuple(cell(value) for value in row)):
                    break
            return kept.result()


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
            raise QueryFailed("A parameter is no finite number.", "invalid")
        return f"{value!r}e0" if "e" not in repr(value) else repr(value)
    digits = str(value).encode(errors="replace").hex()
    return f"CONVERT(0x{digits} USING utf8mb4)" if digits else "''"
