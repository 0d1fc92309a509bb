"""PostgreSQL as the source or the target of a move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import (
    DataError,
    IntegrityError,
    InterfaceError,
    NotSupportedError,
    OperationalError,
    transaction,
)

from agents.doors.cli.terminal import one_line
from agents.doors.database_schema import MIGRATION_LOCK
from agents.features.operations.database_move.errors import CommitUnknown, MoveRefused
from agents.features.operations.database_move.sides import LOCK_SECONDS, Row, Side
from agents.features.operations.database_move.tables import Content, Table

_OTHERS = """
SELECT pid, coalesce(usename, ''), coalesce(application_name, ''),
       coalesce(host(client_addr), 'this machine')
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
ORDER BY pid
"""


class PostgresqlSide(Side):
    """A PostgreSQL database. Everything that a move writes is one transaction."""

    title = "PostgreSQL"

    @property
    def name(self) -> str:
        server = self.settings["HOST"] or "this machine"
        port = f":{self.settings['PORT']}" if self.settings["PORT"] else ""
        return f"the PostgreSQL database {self.settings['NAME']!r} on {server}{port}"

    def identity(self) -> object:
        self.connect()
        query = (
            "SELECT (SELECT oid FROM pg_database WHERE datname = current_database()),"
            " pg_postmaster_start_time(), current_schema()"
        )
        with self.connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchone()

    def connect(self) -> None:
        """Open the connection. Raises `MoveRefused` if that is impossible."""
        try:
            self.connection.ensure_connection()
        except NotSupportedError as error:
            raise MoveRefused(f"The version of {self.name} is too old: {error}") from error
        except OperationalError as error:
            raise MoveRefused(
                f"Cannot connect to {self.name}: {one_line(str(error), 300)} "
                "Check the URL, and that the server runs."
            ) from error

    def value(self, query: str, parameters: Sequence[Any] = ()) -> Any:
        """Return the first value of a query."""
        with self.connection.cursor() as cursor:
            cursor.execute(query, parameters)
            return cursor.fetchone()[0]

    def rows(self, table: Table) -> Iterator[Row]:
        columns = ", ".join(
            column.kind.select.format(self.quoted(column.name)) for column in table.columns
        )
        keys = ", ".join(
            # The order of SQLite: by code points, in every locale.
            self.quoted(table.columns[at].name)
            + (' COLLATE "C"' if table.columns[at].kind.name == "text" else "")
            for at in table.key
        )
        with self.connection.chunked_cursor() as cursor:
            cursor.execute(
                f"SELECT {columns} FROM {self.quoted(table.name)} ORDER BY {keys}"  # noqa: S608
            )
            try:
                while rows := cursor.fetchmany(table.batch):
                    yield from rows
            except (DataError, psycopg.DataError) as error:
                raise MoveRefused(
                    f"{table.name} has a value that Python cannot read: {one_line(str(error), 200)}"
                ) from error

    def counter(self, table: Table) -> int:
        sequence = self._sequence(table)
        if sequence is None:
            return 0
        return int(self.value(f"SELECT last_value - (NOT is_called)::int FROM {sequence}"))  # noqa: S608

    def _sequence(self, table: Table) -> str | None:
        """Return the sequence of the table's key as an SQL name."""
        found: str | None = self.value(
            "SELECT pg_get_serial_sequence(%s, %s)", [self.quoted(table.name), table.counter]
        )
        return found

    # As the source ---------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        self.connect()
        with transaction.atomic(using=self.alias):
            try:
                self._lock(sorted(self.table_names()), "EXCLUSIVE")
                yield
            finally:
                # Only a mark was written.
                transaction.set_rollback(not self._is_marked, using=self.alias)

    def size(self) -> int:
        return int(self.value("SELECT pg_database_size(current_database())"))

    # As the target ---------------------------------------------------------------------------

    def examine(self, tables: Sequence[Table], expected: set[tuple[str, str]], size: int) -> None:
        self.connect()
        if self.value("SELECT pg_is_in_recovery()"):
            raise MoveRefused(f"{self.name} is a read-only replica. Name the primary server.")
        encoding = self.value("SELECT getdatabaseencoding()")
        if encoding != "UTF8":
            raise MoveRefused(
                f"{self.name} has the encoding {encoding}. Vel needs UTF8: create another database "
                "with ENCODING 'UTF8'."
            )
        schema = self.value("SELECT current_schema()")
        if schema is None:
            raise MoveRefused(
                f"No schema in the search_path of {self.name} exists, or this role may not use it."
            )
        if self._refuse_rows(tables, expected) and not self.value(
            "SELECT has_schema_privilege(%s, 'CREATE')", [schema]
        ):
            role = self.value("SELECT current_user")
            raise MoveRefused(
                f"The role {role} may not create tables in the schema {schema} of {self.name}. As "
                f'an administrator of the server run: GRANT CREATE ON SCHEMA "{schema}" TO "{role}"'
            )

    @contextmanager
    def writing(self, tables: Sequence[Table], expected: set[tuple[str, str]]) -> Iterator[None]:
        is_committing = False
        try:
            with self._copying(tables, expected):
                yield
                is_committing = True
        except (OperationalError, InterfaceError) as error:
            if is_committing and _lost_connection(error):
                raise CommitUnknown from error
            raise

    @contextmanager
    def completing(self) -> Iterator[None]:
        with transaction.atomic(using=self.alias):
            # The lock of migrations: another Vel waits, and then finds the tables.
            if not self.value("SELECT pg_try_advisory_xact_lock(%s)", [MIGRATION_LOCK]):
                raise MoveRefused(f"Another process of Vel prepares {self.name}. Stop it first.")
            self._lock(sorted(self.table_names()), "ACCESS EXCLUSIVE")
            yield

    @contextmanager
    def _copying(self, tables: Sequence[Table], expected: set[tuple[str, str]]) -> Iterator[None]:
        with self.completing():
            if self._refuse_rows(tables, expected):
                self._migrate()
            self._clear_made_rows()
            yield
            with self.connection.cursor() as cursor:
                # Otherwise, the first plans would be those of empty tables.
                cursor.execute(f"ANALYZE {', '.join(self.quoted(each.name) for each in tables)}")

    def has_committed(self, expected: Mapping[str, Content]) -> bool | None:
        self.connection.close()
        try:
            with transaction.atomic(using=self.alias), self.connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
                # The lost transaction holds this lock until it has ended on the server.
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [MIGRATION_LOCK])
                names = self.table_names()
                return all(
                    name in names and self.count(name) == content.rows
                    for name, content in expected.items()
                )
        except (OperationalError, InterfaceError):
            return None

    def _lock(self, names: Sequence[str], mode: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
            if not names:
                return
            try:
                with transaction.atomic(using=self.alias):
                    cursor.execute(
                        f"LOCK TABLE {', '.join(map(self.quoted, names))} IN {mode} MODE"
                    )
            except OperationalError as error:
                cursor.execute(_OTHERS)
                others = ", ".join(
                    f"session {pid} of {one_line(f'{user} {program}', 60)} from {address}"
                    for pid, user, program, address in cursor.fetchall()
                )
                raise MoveRefused(
                    f"Other sessions use {self.name}: {others or 'they have just ended'}. End "
                    "them, then try again."
                ) from error

    def insert(self, table: Table, rows: Iterable[Row]) -> None:
        names = ", ".join(self.quoted(column.name) for column in table.columns)
        last: Row | None = None
        try:
            with (
                self.connection.cursor() as cursor,
                cursor.copy(f"COPY {self.quoted(table.name)} ({names}) FROM STDIN") as copy,
            ):
                for row in rows:
                    last = row
                    copy.write_row(row)
        except (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError) as error:
            raise MoveRefused(_refusal(table, last, error)) from error
        except psycopg.OperationalError as error:
            if error.sqlstate == "54000":  # for example, a text is too long for an index
                raise MoveRefused(_refusal(table, last, error)) from error
            raise

    def set_counter(self, table: Table, value: int) -> None:
        self.value(
            "SELECT setval(%s::regclass, %s, %s)", [self._sequence(table), max(value, 1), value > 0]
        )

    def check_references(self) -> None:
        try:
            with self.connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        except IntegrityError as error:
            raise MoveRefused(
                f"A row refers to a row that does not exist: {one_line(str(error), 300)}"
            ) from error


def _lost_connection(error: Exception) -> bool:
    """Return whether the server has ended the connection, and not only refused a statement."""
    state = getattr(error.__cause__, "sqlstate", None)
    return state is None or state.startswith(("08", "57P"))


def _refusal(table: Table, last: Row | None, error: psycopg.Error) -> str:
    """Return what PostgreSQL refused. It reports an error some rows later, so it names the line."""
    context = one_line(error.diag.context or "", 160)
    place = context or (table.row_name(last) if last is not None else table.name)
    reason = error.diag.message_primary or str(error)
    return f"PostgreSQL refuses a row of {table.name}: {one_line(reason, 200)} ({place})"
