"""What a statement gave, and how it is shown: as data, as a Markdown table, as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

CELL_CHARACTERS = 200
"""What a Markdown table shows of one cell."""

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class QueryResult:
    """Rows as far as the limits allowed; `truncated` when the statement gives more.

    `columns` are unique: a second `id` is `id_2`. `values` are the rows, in their order. Numbers
    and truth values are Python's; everything else is the database's own text, so that dates,
    decimals, arrays and JSON are exact.
    """

    columns: tuple[str, ...] = ()
    values: Sequence[tuple[Cell, ...]] = ()
    truncated: bool = False
    error: str | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def rows(self) -> list[dict[str, Cell]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.values]

    @property
    def row_count(self) -> int:
        return len(self.values)

    def to_dict(self) -> dict[str, Any]:
        return {
            "columns": list(self.columns),
            "rows": self.rows,
            "row_count": self.row_count,
            "truncated": self.truncated,
            "success": self.error is None,
            "error": self.error,
        }

    def to_markdown_table(self, max_rows: int = 20) -> str:
        if self.error is not None:
            return f"Error: {self.error}"
        if not self.columns:
            return "No results"
        lines = [_line(self.columns), "|" + " --- |" * len(self.columns)]
        lines += [_line([shown(value) for value in row]) for row in self.values[:max_rows]]
        if not self.values:
            lines.append("\nNo rows")
        elif self.row_count > max_rows:
            lines.append(f"\nShowing {max_rows} of {self.row_count} rows")
        return "\n".join(lines)

    def to_csv(self) -> bytes:
        """UTF-8 with a header. NULL is an empty field, an empty text is `""`."""
        text = io.StringIO()
        plain = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
        plain.writerow(self.columns)
        for row in self.values:
            text.write(",".join(_field(value) for value in row) + "\n")
        return text.getvalue().encode(errors="replace")


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names of columns, with a number where one comes again."""
    taken: set[str] = set()
    unique = []
    for name in names:
        candidate, number = name, 2
        while candidate in taken or (candidate != name and candidate in names):
            candidate, number = f"{name}_{number}", number + 1
        taken.add(candidate)
        unique.append(candidate)
    return tuple(unique)


def size_of(row: Sequence[Cell]) -> int:
    """Bytes that the row takes as text, separators included."""
    return sum(
        len(value.encode(errors="replace")) if isinstance(value, str) else 8 for value in row
    ) + len(row)


def shown(value: Cell) -> str:
    """A cell of a Markdown table: one line, cut with a note when it is long."""
    if value is None:
        return "NULL"
    text = str(value)
    if len(text) > CELL_CHARACTERS:
        text = f"{text[:CELL_CHARACTERS]}… ({len(text):,} characters)"
    return text


def _line(cells: Sequence[str]) -> str:
    safe = (cell.replace("|", "\\|").replace("\r", " ").replace("\n", " ") for cell in cells)
    return "| " + " | ".join(safe) + " |"


def _field(value: Cell) -> str:
    if value is None:
        return ""
    text = str(value)
    if text == "" or any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
