#!/usr/bin/env python3
"""Inspect a SQLite file, or run one statement that reads it. The file cannot be changed.

Examples:
  query_sqlite.py shop.db tables
  query_sqlite.py shop.db describe orders
  query_sqlite.py shop.db schema
  query_sqlite.py shop.db run "SELECT status, count(*) FROM orders GROUP BY status"
  query_sqlite.py shop.db run --sql-file q.sql --format csv --output /sandbox/outputs/orders.csv
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sqlite3
import sys
from typing import Any

from outcome import WRONG_CALL, Stop, deliver, input_file, run
from read_only import connect, refuse

MAX_ROWS = 1_000_000
MAX_CELL = 2_000
"""The maximum length of a cell in Markdown, in characters. CSV and JSON have complete cells."""


def main() -> int:
    given = _arguments()
    if not 1 <= given.limit <= MAX_ROWS:
        raise Stop(f"--limit must be 1 to {MAX_ROWS:,}.", WRONG_CALL)
    connection, notes = connect(given.file, given.timeout)
    try:
        header, rows = _answer(connection, given)
        if len(rows) > given.limit:
            rows = rows[: given.limit]
            notes.append(f"Only the first {given.limit:,} rows; there are more (--limit).")
        text = _formatted(given.format, header, rows, notes)
    except sqlite3.Error as error:
        raise refuse(error, given.timeout) from None
    finally:
        connection.close()
    deliver(text, given.output, input_file(given.file))
    if given.format != "json":
        print(f"{len(rows):,} rows", file=sys.stderr)
        for note in notes:
            print(f"note: {note}", file=sys.stderr)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", help="the SQLite file")
    parser.add_argument("action", choices=["tables", "describe", "schema", "run"])
    parser.add_argument("what", nargs="?", help="describe: a table; run: the statement")
    parser.add_argument("--sql-file", help="run: take the statement from this file")
    parser.add_argument("--limit", type=int, default=10_000, help="rows; default: 10000")
    parser.add_argument("--timeout", type=float, default=25.0, help="seconds; default: 25")
    parser.add_argument("--format", choices=["markdown", "csv", "json"], default="markdown")
    parser.add_argument("--json", action="store_const", const="json", dest="format")
    parser.add_argument("--output", help="write here instead of to stdout")
    return parser.parse_intermixed_args()


def _answer(
    connection: sqlite3.Connection, given: argparse.Namespace
) -> tuple[list[str], list[list[Any]]]:
    if given.action == "tables":
        return ["name", "type", "rows"], [
            [name, kind, _count(connection, name)] for name, kind, _ in _listed(connection)
        ]
    if given.action == "schema":
        return ["name", "type", "sql"], [list(each) for each in _listed(connection)]
    if given.action == "describe":
        return _described(connection, given.what)
    if bool(given.what) == bool(given.sql_file):
        raise Stop("Give the statement, or --sql-file.", WRONG_CALL)
    sql = given.what or input_file(given.sql_file).read_text(encoding="utf-8-sig")
    cursor = connection.execute(sql)
    if cursor.description is None:
        raise Stop("The statement gives no rows: write a SELECT.", WRONG_CALL)
    rows = [list(row) for row in cursor.fetchmany(given.limit + 1)]
    return [column[0] for column in cursor.description], rows


def _listed(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    return connection.execute(
        "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type, name"
    ).fetchall()


def _count(connection: sqlite3.Connection, name: str) -> int | str:
    try:
        return connection.execute(f"SELECT count(*) FROM {_quoted(name)}").fetchone()[0]  # noqa: S608  # quoted
    except sqlite3.Error as error:
        # An error in one view must not hide the other tables.
        return f"unknown: {error}"


def _described(
    connection: sqlite3.Connection, table: str | None
) -> tuple[list[str], list[list[Any]]]:
    names = [name for name, _, _ in _listed(connection)]
    found = next((name for name in names if name.casefold() == (table or "").casefold()), None)
    if found is None:
        raise Stop(f"There is no table {table!r}. There are: {', '.join(names)}.", WRONG_CALL)
    links = {}
    for row in connection.execute(f"PRAGMA foreign_key_list({_quoted(found)})"):
        links[row[3]] = f"{row[2]}.{row[4]}" if row[4] else row[2]
    rows = []
    for _, name, kind, not_null, default, key, *_ in connection.execute(
        f"PRAGMA table_xinfo({_quoted(found)})"
    ):
        sql = f"SELECT count(*) - count({_quoted(name)}) FROM {_quoted(found)}"  # noqa: S608  # quoted
        nulls = connection.execute(sql).fetchone()[0]
        rows.append([name, kind, "no" if not_null else "yes", "yes" if key else "", default,
                     links.get(name, ""), nulls])  # fmt: skip
    return ["column", "type", "may be null", "primary key", "default", "refers to", "nulls"], rows


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _formatted(kind: str, header: list[str], rows: list[list[Any]], notes: list[str]) -> str:
    plain = [[_plain(cell) for cell in row] for row in rows]
    if kind == "json":
        # Rows are lists, not objects, because two columns may have the same name.
        result = {"columns": header, "rows": plain, "row_count": len(rows), "notes": notes}
        return json.dumps(result, ensure_ascii=False, indent=2) + "\n"
    if kind == "csv":
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([header, *plain])
        return out.getvalue()
    lines = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in [header, *plain]]
    lines.insert(1, "|" + " --- |" * len(header))
    return "\n".join(lines) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    # JSON has no infinity.
    return (
        str(value) if isinstance(value, float) and value in (float("inf"), -float("inf")) else value
    )


def _cell(value: Any) -> str:
    text = "NULL" if value is None else " ".join(str(value).split()).replace("|", "\\|")
    return text if len(text) <= MAX_CELL else text[:MAX_CELL] + "…"


if __name__ == "__main__":
    run(main)
