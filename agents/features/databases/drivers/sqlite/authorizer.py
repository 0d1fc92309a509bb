"""The operations that SQLite allows: reading, with known functions, and no others.

SQLite calls the authorizer when it compiles a statement, for every table, column and function.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection

PRAGMAS = frozenset(
    {
        "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo",
        "foreign_key_list", "collation_list", "encoding", "user_version", "data_version",
        "read_uncommitted",
    }
)  # fmt: skip
"""Pragmas that only describe the schema. A value is allowed if it names a table."""
_WITHOUT_VALUE = frozenset({"encoding", "user_version", "data_version", "read_uncommitted"})

_FUNCTIONS = """
    abs changes char coalesce concat concat_ws format glob hex ifnull iif instr last_insert_rowid
    length like likelihood likely lower ltrim max min nullif octet_length printf quote random
    randomblob replace round rtrim sign soundex substr substring total_changes trim typeof unhex
    unicode unlikely upper zeroblob sqlite_version
    date time datetime julianday unixepoch strftime timediff current_date current_time
    current_timestamp
    avg count group_concat string_agg sum total
    row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value
    nth_value
    acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10
    log2 mod pi pow power radians sin sinh sqrt tan tanh trunc
    json jsonb json_array jsonb_array json_array_length json_error_position json_extract
    jsonb_extract json_insert json_object json_patch json_pretty json_quote json_remove
    json_replace json_set json_type json_valid json_group_array json_group_object json_each
    json_tree -> ->>
    match bm25 highlight snippet rtreecheck matchinfo offsets
"""
FUNCTIONS = frozenset(_FUNCTIONS.split())

_UNREADABLE = ("dbstat", "sqlite_dbpage", "sqlite_stmt", "bytecode", "tables_used")
_OWN_TABLES = frozenset(
    {
        "sqlite_master",
        "sqlite_schema",
        "sqlite_temp_master",
        "sqlite_temp_schema",
        "sqlite_sequence",
    }
)

Authorizer = Callable[[int, str | None, str | None, str | None, str | None], int]


def reading_only(hides: Callable[[str, str], bool], unreadable: Collection[str] = ()) -> Authorizer:
    """Return an authorizer for reading, except hidden columns and the tables in `unreadable`.

    `hides(table, column)` returns whether a column is hidden.
    """

    def authorize(
        action: int, first: str | None, second: str | None, _db: str | None, _view: str | None
    ) -> int:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            allowed = True
        elif action == sqlite3.SQLITE_READ:
            table, column = (first or "").lower(), (second or "").lower()
            allowed = not (
                table in _UNREADABLE
                or (table.startswith("sqlite_") and table not in _OWN_TABLES)
                or table in unreadable
                or hides(table, column)
            )
        elif action == sqlite3.SQLITE_FUNCTION:
            allowed = (second or "").lower() in FUNCTIONS
        elif action == sqlite3.SQLITE_PRAGMA:
            name = (first or "").lower()
            allowed = name in PRAGMAS and (second is None or name not in _WITHOUT_VALUE)
        else:
            allowed = False
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    return authorize
