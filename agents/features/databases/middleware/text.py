"""Results of databases as text for the model: few rows inline, all rows in a file."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from agents.features.databases.drivers.address import dialect_of
from agents.features.databases.drivers.table import CELL_CHARACTERS, QueryResult
from agents.features.databases.drivers.target import DatabaseTarget
from agents.middleware.context import ToolContext
from sandbox.errors import SandboxError
from sandbox.paths import WORKING_DIR

_INLINE_ROWS = 50
"""Limit of rows in a result. Longer results are a file, with the first rows inline."""
_FIRST_ROWS = 20
_TABLE_CHARACTERS = 8_000
_SCHEMA_CHARACTERS = 16_000
_PLAIN = re.compile("[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_FOLDED = re.compile("[a-z_][a-z0-9_]*", re.ASCII)
"""Names that need no quotes: PostgreSQL makes capital letters small."""
DIALECTS = {
    "postgresql": "PostgreSQL",
    "sqlite": "SQLite",
    "duckdb": "DuckDB",
    "mysql": "MySQL",
    "mariadb": "MariaDB",
}
"""Names of the SQL dialects, for models."""


def shown_rows(context: ToolContext, result: QueryResult) -> dict[str, Any]:
    """Return the rows as a table; for a long result, the first rows and a file with all rows."""
    content: dict[str, Any] = {
        "success": True,
        "row_count": result.row_count,
        "truncated": result.truncated,
    }
    table = result.to_markdown_table(_INLINE_ROWS)
    is_cut = any(
        isinstance(value, str) and len(value) > CELL_CHARACTERS
        for row in result.values
        for value in row
    )
    notes = list(result.notes)
    if is_cut or result.row_count > _INLINE_ROWS or len(table) > _TABLE_CHARACTERS:
        table = _first_rows(result)
        path = _file_of(context)
        try:
            context.files().write_bytes(path, result.to_csv())
            content["file"] = path
            notes.append(f"All {result.row_count:,} rows that were read are in the file.")
        except SandboxError as problem:
            notes.append(f"The rows could not be kept as a file: {problem}")
    content["table"] = table
    if notes:
        content["note"] = " ".join(notes)
    return content


def _first_rows(result: QueryResult) -> str:
    for rows in (_FIRST_ROWS, 10, 5, 2, 1):
        table = result.to_markdown_table(rows)
        if len(table) <= _TABLE_CHARACTERS:
            return table
    return f"{table[:_TABLE_CHARACTERS]}…"


def _file_of(context: ToolContext) -> str:
    """Return a path that is constant for a call, and differs for other calls of the thread."""
    name = hashlib.sha256(f"{context.run_id}:{context.call_id}".encode()).hexdigest()[:12]
    base = WORKING_DIR if context.spec.sandbox else ""
    return f"{base}/query-results/{name}.csv"


def shown_tables(target: DatabaseTarget, result: QueryResult) -> str:
    lines = [
        _qualified(target, str(schema), str(table)) + (" (view)" if kind == "VIEW" else "")
        for schema, table, kind in result.values
    ]
    return _lines(target, lines)


def shown_schema(target: DatabaseTarget, result: QueryResult) -> str:
    """Return a line for each table, up to `_SCHEMA_CHARACTERS` characters.

    One line for each column would be three times as long.
    """
    tables: dict[str, list[str]] = {}
    for schema, table, column, kind, nullable, key in result.values:
        parts = [_quoted(target, str(column)), str(kind), str(key)]
        if nullable == "NO" and "PK" not in str(key):
            parts.append("NOT NULL")
        tables.setdefault(_qualified(target, str(schema), str(table)), []).append(
            " ".join(part for part in parts if part)
        )
    return _lines(target, [f"{name}({', '.join(of)})" for name, of in tables.items()])


def _qualified(target: DatabaseTarget, schema: str, table: str) -> str:
    names = [table] if schema in ("main", "public") else [schema, table]
    return ".".join(_quoted(target, name) for name in names)


def _quoted(target: DatabaseTarget, name: str) -> str:
    """Return the name as a statement must write it."""
    dialect = dialect_of(target)
    if (_FOLDED if dialect == "postgresql" else _PLAIN).fullmatch(name):
        return name
    mark = "`" if dialect == "mysql" else '"'
    return mark + name.replace(mark, 2 * mark) + mark


def _lines(target: DatabaseTarget, lines: list[str]) -> str:
    count = f"{len(lines)} table" if len(lines) == 1 else f"{len(lines)} tables"
    text = f"{DIALECTS[dialect_of(target)]}, {count}\n"
    for number, line in enumerate(lines):
        if len(text) + len(line) > _SCHEMA_CHARACTERS:
            return f"{text}… and {len(lines) - number} more: ask the database's catalogue by SQL."
        text += f"{line}\n"
    return text.rstrip("\n")
