"""Tables, columns and keys of a database that the role and the target allow."""

from __future__ import annotations

from agents.features.databases.drivers.helper.client import ask_for_rows
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget
from sandbox.cancellation import Cancellation


def list_tables(target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation) -> QueryResult:
    """Return table_schema, table_name, table_type (BASE TABLE or VIEW). Blocks.

    Raises QueryFailed.
    """
    return _ask(target, "list_tables", "", own, cancel)


def get_schema(target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation) -> QueryResult:
    """Return table_schema, table_name, column_name, data_type, is_nullable, key of each column."""
    return _ask(target, "get_schema", "", own, cancel)


def describe_table(
    target: DatabaseTarget, table: str, own: OwnDatabase, cancel: Cancellation
) -> QueryResult:
    """Return column_name, data_type, is_nullable, column_default, key of each column.

    `table` may be `schema.table`.
    """
    return _ask(target, "describe_table", table, own, cancel)


def _ask(
    target: DatabaseTarget, what: str, table: str, own: OwnDatabase, cancel: Cancellation
) -> QueryResult:
    return ask_for_rows(target, own, cancel, {"do": "describe", "what": what, "table": table})
