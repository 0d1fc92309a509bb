"""One statement that writes in PostgreSQL: tried and rolled back, or committed as approved.

Vel controls the transaction, which has one snapshot. The changes are read from the server's counts
for the transaction, and from the rows that this transaction created or ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from agents.features.databases.drivers.changes import ChangeLimit, Changes, TableChanges
from agents.features.databases.drivers.errors import OutcomeUnknown, QueryFailed
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.params import json_text, numbered
from agents.features.databases.drivers.postgresql.read import Forms, cells_of, forms_of, names_of
from agents.features.databases.drivers.postgresql.role import check_role
from agents.features.databases.drivers.postgresql.session import Connection, pool_of, stoppable
from agents.features.databases.drivers.postgresql.statement import Looked, WrittenTable, look_at
from agents.features.databases.drivers.rows import RowsWithin
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget
from sandbox.cancellation import Cancellation

_SHOWN_BYTES = 256 * 1024 * 1024
"""Limit of a table that is searched for changed rows."""

_NONE = (0, 0, 0)
_COUNTS = """
SELECT relid::bigint, n_tup_ins, n_tup_upd, n_tup_del
FROM pg_catalog.pg_stat_xact_all_tables
WHERE n_tup_ins + n_tup_upd + n_tup_del > 0 AND schemaname NOT IN ('pg_catalog', 'pg_toast')
"""


def write_postgresql(
    target: DatabaseTarget,
    query: str,
    params: Mapping[str, Any] | None,
    own: OwnDatabase,
    cancel: Cancellation,
    keep: Callable[[Changes], bool],
) -> Changes:
    """Run the statement, and commit it if `keep` returns True for its changes.

    Blocks. Raises QueryFailed or psycopg's errors. Without a commit the database does not change;
    only after `OutcomeUnknown` it may have changed.
    """
    text, values = numbered(query, params) if params else (query, [])
    given = [Jsonb(value, json_text) if isinstance(value, dict) else value for value in values]
    # On an error the connection is closed, which rolls the transaction back.
    with pool_of(target).connection(target.statement_seconds, cancel) as connection:
        with stoppable(connection, target, cancel):
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE")
            check_role(connection, target, own)
            looked = look_at(connection, target, text, given)
            changes = _run(connection, target, looked, text, given)
        if not keep(changes):
            connection.execute("ROLLBACK")
        elif cancel.cancelled:
            raise QueryFailed("The call was cancelled; nothing was written.", "cancelled")
        else:
            # Not stoppable: otherwise a change that was made could be reported as stopped.
            _commit(connection, target)
        return changes


def _commit(connection: Connection, target: DatabaseTarget) -> None:
    try:
        status = connection.execute("COMMIT").statusmessage
    except psycopg.Error as problem:
        if problem.sqlstate is not None and not connection.closed:
            raise  # the server refused the commit
        raise OutcomeUnknown(
            f"{target.name} did not confirm the commit, so it is unknown whether the change was "
            "made. Look at the rows before you repeat it."
        ) from None
    if status != "COMMIT":
        raise QueryFailed("The database rolled the change back; nothing was written.", "database")


def _run(
    connection: Connection, target: DatabaseTarget, looked: Looked, text: str, values: list[Any]
) -> Changes:
    row = connection.execute("SELECT pg_catalog.pg_current_xact_id()::xid::text").fetchone()
    assert row is not None
    number = row[0]
    shown = [table for table in looked.tables if table.kind == "r" and not _why_unseen(table)]
    for at, table in enumerate(shown):
        # The cursor has the present snapshot, but is read after the statement. Then the rows that
        # the statement ended have its number in xmax.
        query = "DECLARE {} NO SCROLL CURSOR FOR SELECT ctid::text, {} FROM ONLY {} WHERE xmax = {}"
        cursor = sql.Identifier(f"vel_before_{at}")
        connection.execute(
            sql.SQL(query).format(cursor, _columns(table), _place(table), _xid(number))
        )
    earlier = _counts(connection)
    returned = _execute(connection, target, looked, text, values)
    # Deferred constraints are checked now instead of at the commit.
    connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
    # The counts can include those of earlier transactions of the session.
    counts = {
        oid: changed
        for oid, now in _counts(connection).items()
        if any(changed := tuple(a - b for a, b in zip(now, earlier.get(oid, _NONE), strict=True)))
    }
    changes = Changes(_changed(connection, target, looked, counts), returned)
    changes.check(target)
    by_name = {changed.table: changed for changed in changes.tables}
    change_limit = ChangeLimit(target)
    for at, table in enumerate(shown):
        if table.shown in by_name:
            _fill(connection, by_name[table.shown], table, at, number, change_limit)
    return changes


def _execute(
    connection: Connection, target: DatabaseTarget, looked: Looked, text: str, values: list[Any]
) -> QueryResult:
    """Run the statement. Its rows are read one at a time, up to the limits."""
    cursor = psycopg.RawCursor(connection)
    if not looked.gives_rows:
        cursor.execute(text, values, binary=True)  # with the extended protocol
        return QueryResult()
    kept: RowsWithin | None = None
    forms: Forms = ()
    for _ in cursor.stream(text, values):
        found = cursor.pgresult
        assert found is not None
        if kept is None:
            kept, forms = RowsWithin(target, names_of(found)), forms_of(connection, target, found)
        if not kept.add(cells_of(found, 0, forms)):
            connection.close()  # otherwise psycopg would read all other rows
            raise QueryFailed(
                "It returns more than the limit of the connection: return fewer rows or columns.",
                "too_much",
            )
    return kept.result() if kept is not None else QueryResult()


def _counts(connection: Connection) -> dict[int, tuple[int, int, int]]:
    return {row[0]: (row[1], row[2], row[3]) for row in connection.execute(_COUNTS).fetchall()}


def _changed(
    connection: Connection, target: DatabaseTarget, looked: Looked,
    counts: Mapping[int, tuple[int, ...]],
) -> list[TableChanges]:  # fmt: skip
    """Return the changed tables, without their rows."""
    unknown = sorted(set(counts) - {table.oid for table in looked.tables})
    if unknown and not target.allow_routines:
        raise QueryFailed("It changes tables that cannot be shown for approval.", "unseen")
    changed = [
        _table(table.shown, table.columns, counts[table.oid], _why_unseen(table))
        for table in looked.tables
        if table.oid in counts
    ]
    names = connection.execute(
        "SELECT oid::bigint, oid::regclass::text FROM pg_catalog.pg_class"
        " WHERE oid = ANY(%s::oid[]) ORDER BY 2",
        [unknown],
    ).fetchall()
    note = "Changed by a trigger or a function; the rows are not shown."
    return changed + [_table(name, (), counts[oid], note) for oid, name in names]


def _table(name: str, columns: tuple[str, ...], counts: tuple[int, ...], note: str) -> TableChanges:
    inserted, updated, deleted = counts
    return TableChanges(name, columns, inserted, updated, deleted, note=note)


def _fill(
    connection: Connection, changes: TableChanges, table: WrittenTable, at: int, number: str,
    change_limit: ChangeLimit,
) -> None:  # fmt: skip
    if changes.inserted or changes.updated:
        cursor = connection.execute(
            sql.SQL("SELECT {} FROM ONLY {} WHERE xmin = {}").format(
                _columns(table), _place(table), _xid(number)
            )
        )
        changes.after += [change_limit.spend(row) for row in cursor]
    if changes.updated or changes.deleted:
        ended = connection.execute(f"FETCH ALL FROM vel_before_{at}").fetchall()
        # Foreign keys lock the rows that they check, and these have the number too.
        locked = {
            row[0]
            for row in connection.execute(
                sql.SQL("SELECT ctid::text FROM ONLY {} WHERE ctid = ANY(%s::tid[])").format(
                    _place(table)
                ),
                [[row[0] for row in ended]],
            )
        }
        changes.before += [change_limit.spend(row[1:]) for row in ended if row[0] not in locked]
    before, after = changes.updated + changes.deleted, changes.inserted + changes.updated
    if len(changes.before) != before or len(changes.after) != after:
        changes.note = "Not all rows can be shown: some were changed more than once, or aside."


def _why_unseen(table: WrittenTable) -> str:
    if not table.readable:
        return "The rows cannot be shown: the role may not read the whole table."
    if table.bytes > _SHOWN_BYTES:
        return "The rows are not shown: the table is too large to be searched for them."
    return ""


def _columns(table: WrittenTable) -> sql.Composed:
    return sql.SQL(", ").join(
        sql.SQL("{}::text").format(sql.Identifier(column)) for column in table.columns
    )


def _place(table: WrittenTable) -> sql.Identifier:
    return sql.Identifier(table.schema, table.name)


def _xid(number: str) -> sql.Composed:
    return sql.SQL("{}::xid").format(sql.Literal(number))
