"""Present a call of execute_sql to a person.

For a statement that writes, it has the changes of the trial: the rows of each table as a diff.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.review.call import TITLE_PATH, Around, CallReview, Given, Read, fields_section
from agents.review.diff import diff_section
from agents.review.parts import Note, Review, Section, one_line
from agents.review.sql import sql_section

_COUNTS = (("inserted", "new"), ("updated", "changed"), ("deleted", "deleted"))
_TRIED = (
    "It was tried in a transaction that was rolled back. It is made only if it changes the same "
    "when it is tried again."
)


def read_sql(tool: str, given: Given, around: Around) -> Read:
    taken = given.texts(("query", "sql", "statement"))
    if taken is None:
        return None
    taken_name = given.texts(("connection", "database", "connection_name"))
    connection = taken_name[0] if taken_name else ""
    title = f"Query the database {one_line(connection, TITLE_PATH)}".rstrip()
    return title, [sql_section(connection, taken[0])]


def with_changes(review: Review, preview: Mapping[str, Any]) -> Review:
    """Return the review of a call with the preview of `drivers.write.try_sql`."""
    title = f"Change the database {one_line(str(preview['database']))}"
    counts = [f"{table['table']}: {_count(table)}" for table in preview["tables"]]
    if preview["more_tables"]:
        counts.append(f"and {preview['more_tables']} more tables")
    rows = {"rows": f"{preview['rows_changed']:,} in all", "tables": "\n".join(counts)}
    total = fields_section("What it changes", rows, Note(_TRIED))
    tables = [_table(table) for table in preview["tables"]]
    return Review(title, (*review.sections, total, *tables), review.notes)


def _count(table: Mapping[str, Any]) -> str:
    return ", ".join(f"{table[name]:,} {word}" for name, word in _COUNTS if table[name])


def _table(table: Mapping[str, Any]) -> Section:
    notes = [Note(table["note"], "warning")] if table["note"] else []
    for word, name in (("before", "more_before"), ("after", "more_after")):
        if table[name]:
            text = f"{table[name]:,} more rows {word} the change are not shown here."
            notes.append(Note(text, "warning"))
    if table["more_columns"]:
        notes.append(Note(f"{table['more_columns']} more columns are not shown.", "warning"))
    before = [_row(table["columns"], row) for row in table["before"]]
    after = [_row(table["columns"], row) for row in table["after"]]
    path = f"{table['table']}: {_count(table)}"
    return diff_section(path, "".join(before), "".join(after), notes=notes, excerpt=True)


def _row(columns: Sequence[str], cells: Sequence[str]) -> str:
    """Return one line for any values."""
    pairs = zip(columns, cells, strict=False)
    return ", ".join(f"{one_line(name)} = {one_line(cell)}" for name, cell in pairs) + "\n"


CALL_REVIEWS = (CallReview("execute_sql", read_sql, with_changes),)
