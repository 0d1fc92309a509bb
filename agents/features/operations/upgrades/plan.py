"""The migrations that an upgrade applies, and the tables that they change. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.apps import apps
from django.db import connection
from django.db.migrations import operations
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from agents.features.operations.upgrades.rolling import breaks_old_processes, database_operations

MOST_COUNTED = 10_000_000
"""Rows after which counting stops: counting all rows of a large table takes minutes."""


@dataclass(frozen=True, slots=True)
class PendingMigration:
    """A migration that the database lacks."""

    name: str
    tables: tuple[str, ...]
    """The tables that exist and that it changes."""
    runs_code: bool
    """Whether it contains Python or SQL that can read and write any table."""
    breaks: tuple[str, ...]
    """The operations after which processes of the old release fail."""


def has_no_database() -> bool:
    """Return whether the database is a file that is missing or empty.

    A connection would create it.
    """
    name = str(connection.settings_dict["NAME"])
    if not connection.settings_dict["ENGINE"].endswith("sqlite3"):
        return False
    return not Path(name).is_file() or Path(name).stat().st_size == 0


def pending_migrations() -> list[PendingMigration]:
    """Return the migrations that `vel migrate` would apply, in order."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    existing = set(connection.introspection.table_names())
    found = []
    for migration, _ in plan:
        key = (migration.app_label, migration.name)
        before = executor.loader.project_state(key, at_end=False)
        changes = list(database_operations(migration, before))
        tables = {_table(one, migration.app_label, before) for one in changes}
        found.append(
            PendingMigration(
                ".".join(key),
                tuple(sorted(tables & existing)),
                any(isinstance(one, operations.RunPython | operations.RunSQL) for one in changes),
                tuple(breaks_old_processes(migration, before)),
            )
        )
    return found


def _table(operation: Operation, app_label: str, state: ProjectState) -> str:
    """Return the table that an operation changes, or an empty text."""
    model = getattr(operation, "model_name", None) or getattr(
        operation, "old_name", getattr(operation, "name", "")
    )
    known = state.models.get((app_label, str(model).lower()))
    if known is None:
        return ""
    return str(known.options.get("db_table") or f"{app_label}_{known.name_lower}")


def table_rows() -> dict[str, int]:
    """Return the number of rows of each table of the installed apps, the largest first.

    Numbers end at `MOST_COUNTED`.
    """
    existing = set(connection.introspection.table_names())
    names = {model._meta.db_table for model in apps.get_models(include_auto_created=True)}
    found = dict(_counted(sorted(names & existing)))
    return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))


def _counted(tables: list[str]) -> Iterator[tuple[str, int]]:
    with connection.cursor() as cursor:
        for table in tables:
            quoted = connection.ops.quote_name(table)
            cursor.execute(
                f"SELECT count(*) FROM (SELECT 1 FROM {quoted} LIMIT %s) AS counted",  # noqa: S608
                [MOST_COUNTED],
            )
            yield table, int(cursor.fetchone()[0])
