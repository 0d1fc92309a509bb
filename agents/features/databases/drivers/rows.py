"""Keep rows up to a limit of the target."""

from __future__ import annotations

from collections.abc import Sequence

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.table import Cell, QueryResult, size_of, unique_names
from agents.features.databases.drivers.target import DatabaseTarget


class RowsWithin:
    """Rows up to `max_rows` and `max_bytes` of a target."""

    def __init__(self, target: DatabaseTarget, names: Sequence[str]) -> None:
        self._target = target
        self._columns = unique_names(names)
        self._rows: list[tuple[Cell, ...]] = []
        self._bytes = 0
        self._note = ""

    def add(self, row: tuple[Cell, ...]) -> bool:
        """Keep a row. Return False if it exceeds a limit, so that reading can stop.

        Raises `QueryFailed` if the first row is already too long, since a result without rows would
        be wrong.
        """
        if len(self._rows) >= self._target.max_rows:
            self._note = f"Only the first {self._target.max_rows:,} rows were read."
            return False
        self._bytes += size_of(row)
        if self._bytes > self._target.max_bytes and not self._rows:
            raise QueryFailed(
                f"The first row has {self._bytes:,} bytes, and at most "
                f"{self._target.max_bytes:,} are read: select fewer columns, or parts of long "
                "values, for example substr(column, 1, 1000).",
                "too_much",
            )
        if self._bytes > self._target.max_bytes:
            self._note = (
                f"Only the rows within {self._target.max_bytes:,} bytes were read: select fewer "
                "columns, or parts of long values."
            )
            return False
        self._rows.append(row)
        return True

    def result(self) -> QueryResult:
        return QueryResult(
            columns=self._columns,
            values=self._rows,
            truncated=bool(self._note),
            notes=(self._note,) if self._note else (),
        )
