"""SQL statements, formatted only if this cannot change their apparent meaning."""

from __future__ import annotations

import re

import sqlparse
from sqlparse.exceptions import SQLParseError

from agents.review.parts import Note, SqlSection, cut_notes, name_in
from agents.review.room import Room
from agents.review.spans import lines_of

MAX_CHARACTERS = 8_000
"""Longer statements are not formatted: sqlparse needs 0.3 s for a malicious one."""
_GROWTH = 4
# SQL dialects disagree on these comments and strings. A moved line break could make ignored text
# look active, or active text look ignored.
_AMBIGUOUS = re.compile(r"--|#|/\*|\*/|\\|\$|`|\[")
_QUOTED = re.compile(r"('[^']*'|\"[^\"]*\")")
_SPACE = re.compile(r"\s+")


def sql_section(connection: str, statement: str) -> SqlSection:
    room = Room()
    formatted = formatted_sql(statement)
    notes = () if formatted is not None else (Note("Shown as it was written."),)
    differs = formatted is not None and formatted != statement
    name = name_in(room, connection)
    lines = lines_of(statement, room)
    laid_out = lines_of(formatted or "", Room()) if differs else ()
    return SqlSection(name, lines, laid_out, (*notes, *cut_notes(room)))


def formatted_sql(statement: str) -> str | None:
    """Return `statement` with white space changed outside of quotes. None if that is not safe."""
    if len(statement) > MAX_CHARACTERS or _AMBIGUOUS.search(statement):
        return None
    try:
        formatted = sqlparse.format(statement, reindent=True)
    except (SQLParseError, RecursionError):
        return None
    if len(formatted) > _GROWTH * len(statement) + 1_000:
        return None
    wanted = _skeleton(statement)
    return formatted.strip() if wanted and wanted == _skeleton(formatted) else None


def _skeleton(statement: str) -> list[str]:
    """Return the parts that a database reads: quoted parts unchanged, others without white space.

    Empty if a quote is not closed.
    """
    parts = _QUOTED.split(statement)
    if any("'" in part or '"' in part for part in parts[::2]):
        return []
    return [part if number % 2 else _SPACE.sub("", part) for number, part in enumerate(parts)]
