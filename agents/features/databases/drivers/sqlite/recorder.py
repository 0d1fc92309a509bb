"""Record the changes of a statement in SQLite with temporary triggers of the connection.

The file does not contain them. They record every changed row, also those that other triggers,
foreign keys and REPLACE change.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.features.databases.drivers.changes import ChangeLimit, TableChanges
from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.sqlite.hidden import HiddenInSqlite
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.drivers.values import text_of

_ARGUMENTS = 45
"""Columns in one call of the function, each up to twice: it accepts 100 arguments."""
_TABLES = 500


@dataclass
class Recorder:
    """A recorder. `name` is the secret name of the function and of the triggers."""

    target: DatabaseTarget
    name: str = field(default_factory=lambda: f"vel_{secrets.token_hex(16)}")
    tables: dict[str, TableChanges] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    """Tables that cannot be written: they, or tables that refer to them, have hidden columns."""
    _change_limit: ChangeLimit | None = None
    _parts: list[Any] = field(default_factory=list)

    def install(self, connection: sqlite3.Connection, hidden: HiddenInSqlite) -> None:
        """Create the triggers, except for tables that cannot be written.

        Call it before the authorizer is set. Raises QueryFailed for too many tables.
        """
        self._change_limit = ChangeLimit(self.target)
        connection.create_function(self.name, -1, self._told)
        rows = connection.execute(
            "SELECT name, type FROM pragma_table_list WHERE schema = 'main'"
            " AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        ).fetchall()
        if len(rows) > _TABLES:
            raise QueryFailed(
                f"A database with more than {_TABLES} tables cannot be written.", "configuration"
            )
        self.closed |= hidden.tables | hidden.virtual
        names = [str(name) for name, _ in rows]
        for table in names:
            self._close_parents(connection, table, hidden)
        for number, table in enumerate(names):
            if table.lower() not in self.closed:
                self._watch(connection, number, table)

    def _close_parents(
        self, connection: sqlite3.Connection, table: str, hidden: HiddenInSqlite
    ) -> None:
        """Close parents of hidden columns: a change would reveal whether a row is referred to."""
        keys = connection.execute(
            'SELECT "table", "from" FROM pragma_foreign_key_list(?, \'main\')', (table,)
        ).fetchall()
        self.closed |= {
            str(parent).lower() for parent, column in keys if hidden.hides(table, str(column))
        }

    def _watch(self, connection: sqlite3.Connection, number: int, table: str) -> None:
        columns = tuple(
            str(row[0])
            for row in connection.execute(
                "SELECT name FROM pragma_table_xinfo(?, 'main') WHERE hidden <> 1", (table,)
            )
        )
        changes = self.tables[table] = TableChanges(table, columns)
        assert changes is not None
        for event, sides in (
            ("INSERT", ("NEW",)),
            ("UPDATE", ("OLD", "NEW")),
            ("DELETE", ("OLD",)),
        ):
            calls = "".join(
                f"SELECT {self.name}({', '.join(part)});"
                for part in self._arguments(table, event, sides, columns)
            )
            connection.execute(
                f"CREATE TEMP TRIGGER {self.name}_{number}_{event.lower()} AFTER {event} ON"
                f" main.{_quoted(table)} BEGIN {calls} END"
            )

    def _arguments(
        self, table: str, event: str, sides: Sequence[str], columns: Sequence[str]
    ) -> list[list[str]]:
        text = "'" + table.replace("'", "''") + "'"
        pieces = [columns[at : at + _ARGUMENTS] for at in range(0, len(columns), _ARGUMENTS)]
        last = len(pieces) - 1
        return [
            [text, f"'{event}'", str(int(number == last))]
            + [f"{side}.{_quoted(column)}" for side in sides for column in piece]
            for number, piece in enumerate(pieces)
        ]

    def _told(self, table: str, event: str, is_last: int, *values: Any) -> None:
        self._parts.append(values)
        if not is_last:
            return
        parts, self._parts = self._parts, []
        assert self._change_limit is not None
        changes = self.tables[table]
        match event:
            case "INSERT":
                changes.inserted += 1
            case "UPDATE":
                changes.updated += 1
            case "DELETE":
                changes.deleted += 1
        before: list[Any] = []
        after: list[Any] = []
        for part in parts:
            half = len(part) // 2 if event == "UPDATE" else len(part)
            if event == "INSERT":
                after += part
            else:
                before += part[:half]
                after += part[half:]
        if event != "INSERT":
            changes.before.append(self._change_limit.spend(tuple(map(text_of, before))))
        if event != "DELETE":
            changes.after.append(self._change_limit.spend(tuple(map(text_of, after))))

    def changed(self) -> list[TableChanges]:
        return [table for table in self.tables.values() if any(table.counts)]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
