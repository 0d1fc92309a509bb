"""The changes of a statement that writes: each table's rows before and after, and their digest.

Rows are complete, within the target's limits, so that comparisons cover all changes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.table import Cell, QueryResult, shown, size_of
from agents.features.databases.drivers.target import DatabaseTarget

SAMPLE_ROWS = 20
SAMPLE_COLUMNS = 60
SAMPLE_TABLES = 20
SET_LATER = "⟨set when it runs⟩"

Row = tuple[Cell, ...]
Unstable = frozenset[tuple[str, str]]
"""(table, column) whose new values differ each time, such as those of now() and random()."""


@dataclass
class TableChanges:
    """Changes of one table. `before` are removed or changed rows, `after` new or changed rows.

    `note` has the reason if there are no rows.
    """

    table: str
    columns: tuple[str, ...] = ()
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    before: list[Row] = field(default_factory=list)
    after: list[Row] = field(default_factory=list)
    note: str = ""

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.inserted, self.updated, self.deleted


@dataclass
class Changes:
    """All changes of one statement, including those by cascades and triggers.

    `returned` has the rows of RETURNING.
    """

    tables: Sequence[TableChanges]
    returned: QueryResult = field(default_factory=QueryResult)

    @property
    def row_count(self) -> int:
        """Return the number of inserted, updated and deleted rows of all tables."""
        return sum(sum(table.counts) for table in self.tables)

    def check(self, target: DatabaseTarget) -> None:
        """Raise QueryFailed for more changes than the connection allows in one statement."""
        if self.row_count > target.max_rows:
            raise too_many(target)


class ChangeLimit:
    """The target's limits of rows and bytes for changes in memory."""

    def __init__(self, target: DatabaseTarget) -> None:
        self._target = target
        self._rows = 2 * target.max_rows  # before and after
        self._bytes = target.max_bytes

    def spend(self, row: Row) -> Row:
        """Count a row and return it. Raises QueryFailed if it exceeds the limits."""
        self._rows -= 1
        self._bytes -= size_of(row)
        if self._rows < 0:
            raise too_many(self._target)
        if self._bytes < 0:
            raise QueryFailed(
                f"The rows that it changes take more than {self._target.max_bytes:,} bytes: change "
                "fewer rows in one statement.",
                "too_much",
            )
        return row


def too_many(target: DatabaseTarget) -> QueryFailed:
    return QueryFailed(
        f"It changes more than {target.max_rows:,} rows, the limit of the connection: change fewer "
        "rows in one statement.",
        "too_much",
    )


def unstable_columns(one: Changes, other: Changes) -> Unstable:
    """Return the columns whose new values differ between two trials of one statement.

    Raises QueryFailed if the trials differ in any other way, since no preview would be correct.
    """
    if digest_of(one, None) != digest_of(other, None):
        raise QueryFailed(
            "Two trials changed different rows, so its effect cannot be shown for approval. Name "
            "the rows by their keys. If others wrote at the same time, try again.",
            "unstable",
        )
    return frozenset(
        (first.table, name)
        for first, second in zip(one.tables, other.tables, strict=True)
        for at, name in enumerate(first.columns)
        if _column(first.after, at) != _column(second.after, at)
    )


def _column(rows: Sequence[Row], at: int) -> list[str]:
    return sorted(json.dumps(row[at]) for row in rows)


def digest_of(changes: Changes, unstable: Unstable | None) -> str:
    """Return a digest of changes that does not depend on the order of rows.

    It ignores the values of `unstable` columns in new rows, and with None the values of all
    columns.
    """
    told: list[Any] = []
    for table in changes.tables:
        kept = [
            at
            for at, name in enumerate(table.columns)
            if unstable is not None and (table.table, name) not in unstable
        ]
        before = sorted(json.dumps(row) for row in table.before)
        after = sorted(json.dumps([row[at] for at in kept]) for row in table.after)
        told.append([table.table, table.columns, table.counts, before, after])
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def summary(changes: Changes, unstable: Unstable) -> dict[str, Any]:
    """Return a preview of changes for a person, as JSON.

    It has the counts and some rows of the first `SAMPLE_TABLES` tables, and marks `unstable`
    values.
    """
    return {
        "rows_changed": changes.row_count,
        "tables": [_table(table, unstable) for table in changes.tables[:SAMPLE_TABLES]],
        "more_tables": max(0, len(changes.tables) - SAMPLE_TABLES),
        "unstable": sorted(list(place) for place in unstable),
    }


def unstable_of(preview: Mapping[str, Any]) -> Unstable:
    """Return the unstable columns of a summary."""
    return frozenset((str(table), str(column)) for table, column in preview["unstable"])


def _table(table: TableChanges, unstable: Unstable) -> dict[str, Any]:
    """Return a table's preview. Unstable values are marked, since the real ones will differ."""
    new = [(table.table, name) in unstable for name in table.columns]
    return {
        "table": table.table,
        "inserted": table.inserted,
        "updated": table.updated,
        "deleted": table.deleted,
        "columns": list(table.columns[:SAMPLE_COLUMNS]),
        "more_columns": max(0, len(table.columns) - SAMPLE_COLUMNS),
        "before": [_cells(row) for row in table.before[:SAMPLE_ROWS]],
        "after": [
            [SET_LATER if is_new else cell for is_new, cell in zip(new, _cells(row), strict=False)]
            for row in table.after[:SAMPLE_ROWS]
        ],
        "more_before": max(0, len(table.before) - SAMPLE_ROWS),
        "more_after": max(0, len(table.after) - SAMPLE_ROWS),
        "note": table.note,
    }


def _cells(row: Row) -> list[str]:
    """Return the cells of a row. Long ones are cut; NULL differs from the text 'NULL'."""
    return [
        # Quotes inside are doubled, so that each value is unambiguous.
        shown(value).replace("'", "''").join("''") if isinstance(value, str) else shown(value)
        for value in row[:SAMPLE_COLUMNS]
    ]
