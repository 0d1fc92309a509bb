"""Requests to a helper process and its answers, as JSON."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from typing import Any

from agents.features.databases.drivers.address import parsed
from agents.features.databases.drivers.changes import Changes, TableChanges
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget, UrlParts

_FIXED_BYTES = 16 * 1024 * 1024
_ESCAPED = 8
"""How much longer than `size_of` JSON can be: a control character takes six bytes."""


def longest(target: DatabaseTarget) -> int:
    """Bytes of the longest answer: the rows of the target's limits, and the names of columns."""
    return _FIXED_BYTES + _ESCAPED * target.max_bytes


def target_to_json(target: DatabaseTarget) -> dict[str, Any]:
    parts = parsed(target)
    return asdict(replace(target, parts=replace(parts, query=dict(parts.query))))


def target_from_json(given: dict[str, Any]) -> DatabaseTarget:
    parts = given["parts"]
    query = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in parts["query"].items()
    }
    hidden = tuple(given["hidden_columns"])
    return DatabaseTarget(
        **{**given, "hidden_columns": hidden, "parts": UrlParts(**{**parts, "query": query})}
    )


def own_to_json(own: OwnDatabase) -> dict[str, Any]:
    """Return the identity of Vel's database as JSON.

    Its path is absolute, because a helper has another working directory.
    """
    return asdict(replace(own, path=os.path.abspath(own.path) if own.path else ""))


def own_from_json(given: dict[str, Any]) -> OwnDatabase:
    return OwnDatabase(**given)


def result_to_json(result: QueryResult) -> dict[str, Any]:
    return {
        "columns": result.columns,
        "values": result.values,
        "truncated": result.truncated,
        "notes": result.notes,
    }


def result_from_json(given: dict[str, Any]) -> QueryResult:
    return QueryResult(
        columns=tuple(given["columns"]),
        values=[tuple(row) for row in given["values"]],
        truncated=bool(given["truncated"]),
        notes=tuple(given["notes"]),
    )


def changes_to_json(changes: Changes) -> dict[str, Any]:
    return {
        "tables": [vars(table) for table in changes.tables],
        "returned": result_to_json(changes.returned),
    }


def changes_from_json(given: dict[str, Any]) -> Changes:
    tables = [
        TableChanges(
            **{
                **table,
                "columns": tuple(table["columns"]),
                "before": [tuple(row) for row in table["before"]],
                "after": [tuple(row) for row in table["after"]],
            }
        )
        for table in given["tables"]
    ]
    return Changes(tables, result_from_json(given["returned"]))
