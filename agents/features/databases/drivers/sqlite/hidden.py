"""Hidden columns in SQLite, detected in a statement's compiled program.

SQLite calls the authorizer for columns that a statement names, but not for those that `USING` and
`NATURAL` compare, and such comparisons reveal values. So the compiled program is checked as well:
no cursor on a table may read a hidden column, and none on an index may compare one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.target import DatabaseTarget, is_hidden

_COMPARES = frozenset(
    {
        "SeekGE", "SeekGT", "SeekLE", "SeekLT", "Found", "NotFound", "NoConflict",
        "IdxGE", "IdxGT", "IdxLE", "IdxLT",
    }
)  # fmt: skip
_WHOLE_ROW = frozenset({"RowData", "Offset", "RowCell"})


@dataclass
class HiddenInSqlite:
    """Tables with hidden columns (`tables`, in lower case), and their pages (`places`).

    `places` maps the root page of a table or an index to a list of whether each column is hidden.
    """

    target: DatabaseTarget
    tables: set[str] = field(default_factory=set)
    places: dict[int, tuple[bool, ...]] = field(default_factory=dict)
    virtual: set[str] = field(default_factory=set)
    """Virtual tables and their storage: they cannot be read if there are hidden columns."""

    def hides(self, table: str, column: str) -> bool:
        return is_hidden(self.target, "main", table, column)

    def check(self, connection: sqlite3.Connection, query: str, params: Mapping[str, Any]) -> None:
        """Raise QueryFailed if the statement's program reads a hidden column."""
        if not self.places:
            return
        opened: dict[int, list[tuple[bool, ...]]] = {}
        # A statement that is an EXPLAIN itself reads no rows.
        try:
            program = connection.execute(f"EXPLAIN {query}", params).fetchall()
        except sqlite3.Error as problem:
            if query.lstrip().lower().startswith("explain"):
                return
            raise problem
        for _, opcode, cursor, page, database, *_ in program:
            if opcode in ("OpenRead", "ReopenIdx") and database == 0 and page in self.places:
                opened.setdefault(cursor, []).append(self.places[page])
        for _, opcode, cursor, second, _, fourth, *_ in program:
            for hidden in opened.get(cursor, ()):
                if opcode == "Column":
                    taken = second >= len(hidden) or hidden[second]
                elif opcode in _COMPARES:
                    keys = int(fourth) if str(fourth).isdigit() else len(hidden)
                    taken = any(hidden[:keys])
                else:
                    taken = opcode in _WHOLE_ROW
                if taken:
                    raise QueryFailed("The statement reads a hidden column.", "hidden_column")


def find_hidden(connection: sqlite3.Connection, target: DatabaseTarget) -> HiddenInSqlite:
    """Return the target's hidden columns in this database.

    Raises QueryFailed if it cannot hide them.
    """
    found = HiddenInSqlite(target)
    if not target.hidden_columns:
        return found
    kinds = connection.execute("PRAGMA main.table_list").fetchall()
    for _, table, kind, _, without_rowid, _ in kinds:
        if kind in ("virtual", "shadow"):
            found.virtual.add(table.lower())
        elif kind == "table" and not table.startswith("sqlite_"):
            _add_table(connection, found, table, bool(without_rowid))
    return found


def _add_table(
    connection: sqlite3.Connection, found: HiddenInSqlite, table: str, without_rowid: bool
) -> None:
    columns = connection.execute(
        "SELECT name, type, pk, hidden FROM pragma_table_xinfo(?, 'main')", (table,)
    ).fetchall()
    hidden = tuple(found.hides(table, name) for name, *_ in columns)
    if not any(hidden):
        return
    keys = sum(pk > 0 for _, _, pk, _ in columns)
    for (name, kind, pk, generated), is_so in zip(columns, hidden, strict=True):
        row_number = is_so and pk and keys == 1 and kind.upper() == "INTEGER"
        if row_number or generated or without_rowid:
            raise QueryFailed(
                f"{found.target.name} cannot be queried: columns of the table {table} cannot be "
                f"hidden, because {name} is its row number, it has generated columns, or it is "
                "WITHOUT ROWID. Use a copy of the database without them.",
                "configuration",
            )
    found.tables.add(table.lower())
    pages = connection.execute(
        "SELECT type, name, rootpage FROM main.sqlite_master WHERE tbl_name = ? COLLATE NOCASE"
        " AND rootpage > 0",
        (table,),
    ).fetchall()
    for kind, name, page in pages:
        if kind == "table":
            found.places[page] = hidden
        else:
            parts = connection.execute(
                "SELECT cid FROM pragma_index_xinfo(?, 'main') ORDER BY seqno", (name,)
            ).fetchall()
            # -1 is the row number; -2 is an expression, which can contain any column.
            found.places[page] = tuple(hidden[cid] if cid >= 0 else cid == -2 for (cid,) in parts)
