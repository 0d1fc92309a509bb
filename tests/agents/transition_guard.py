"""The tables of `agents.states` as triggers.

The database raises an error for every illegal change of a status, also from raw SQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from agents.models import ApprovalRequest, Run, ToolCall
from agents.states import APPROVAL_TRANSITIONS, RUN_TRANSITIONS, TOOL_CALL_TRANSITIONS

TABLES = {
    Run._meta.db_table: RUN_TRANSITIONS,
    ToolCall._meta.db_table: TOOL_CALL_TRANSITIONS,
    ApprovalRequest._meta.db_table: APPROVAL_TRANSITIONS,
}


@contextmanager
def guarded_transitions() -> Iterator[None]:
    """Make illegal status changes fail in every process while the context is active."""
    _execute(statements for table in TABLES for statements in _guard(table))
    try:
        yield
    finally:
        _execute(statements for table in TABLES for statements in _unguard(table))


def _execute(statements: Iterator[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _guard(table: str) -> list[str]:
    legal = " OR ".join(
        f"(OLD.status = '{before}' AND NEW.status IN ({_quoted(following)}))"
        for before, following in TABLES[table].items()
        if following
    )
    illegal = f"OLD.status <> NEW.status AND NOT ({legal})"
    trigger = f"CREATE TRIGGER guard_{table} BEFORE UPDATE ON {table} FOR EACH ROW WHEN ({illegal})"
    if connection.vendor == "sqlite":
        return [f"{trigger} BEGIN SELECT RAISE(ABORT, 'illegal transition in {table}'); END"]
    return [
        f"CREATE FUNCTION guard_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"RAISE EXCEPTION 'illegal transition in {table}: % to %', OLD.status, NEW.status; END $$",
        f"{trigger} EXECUTE FUNCTION guard_{table}()",
    ]


def _unguard(table: str) -> list[str]:
    if connection.vendor == "sqlite":
        return [f"DROP TRIGGER guard_{table}"]
    return [f"DROP TRIGGER guard_{table} ON {table}", f"DROP FUNCTION guard_{table}()"]


def _quoted(statuses: frozenset[str]) -> str:
    return ", ".join(f"'{status}'" for status in sorted(statuses))
