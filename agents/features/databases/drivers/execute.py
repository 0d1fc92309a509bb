"""The entry point of this package for statements that read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.helper.client import ask_for_rows
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.drivers.url import dialect_of
from sandbox.cancellation import Cancellation


def execute_sql(
    target: DatabaseTarget,
    query: str,
    params: Mapping[str, Any] | None,
    own: OwnDatabase,
    cancel: Cancellation,
) -> QueryResult:
    """Run one statement that reads. Blocks. Raises QueryFailed if there is no result.

    `params` are values for `:name` in the statement. Lists are arrays for PostgreSQL, lists for
    DuckDB, and JSON text for SQLite and MySQL, where `json_each(:name)` and `JSON_TABLE` read them.
    """
    refuse_nul(query)
    given = with_json_text(params) if dialect_of(target) in ("sqlite", "mysql") else params
    return ask_for_rows(target, own, cancel, {"do": "query", "text": query, "params": given})


def refuse_nul(query: str) -> None:
    """Refuse a NUL character, at which drivers would cut the statement."""
    if "\0" in query:
        raise QueryFailed("A statement has no NUL characters.", "invalid")


def with_json_text(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return values with lists and objects as JSON text, for databases without these types."""
    return {
        name: json.dumps(value) if isinstance(value, dict | list) else value
        for name, value in (params or {}).items()
    }
