"""Migrations after which processes of the release before cannot continue.

During a rolling restart, the old release uses the migrated database. It fails if a column that it
reads is gone, or if a new column needs a value that it does not write.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.migrations import Migration, operations
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import Field, ManyToManyField
from django.db.models.fields import NOT_PROVIDED

_REMOVE = (
    operations.DeleteModel,
    operations.RemoveField,
    operations.RenameField,
    operations.RenameModel,
    operations.AlterModelTable,
)
_STATE_ONLY = (operations.AlterModelOptions, operations.AlterModelManagers)
_HARMLESS = {"db_index", "db_default", "default"}
"""Parts of a field that may change while an old process writes rows."""


def database_operations(migration: Migration, before: ProjectState) -> Iterator[Operation]:
    """Yield the operations of a migration that change the database.

    Args:
        migration: A migration that is not applied yet.
        before: The state of the models before it. The function does not change it.
    """
    for operation, state in _steps(migration, before):
        if not isinstance(operation, operations.AlterField) or _changed_parts(
            *_fields(operation, migration.app_label, state)
        ):
            yield operation


def breaks_old_processes(migration: Migration, before: ProjectState) -> list[str]:
    """Return descriptions of the operations that make processes of the old release fail.

    Args:
        migration: A migration that is not applied yet.
        before: The state of the models before it. The function does not change it.
    """
    return [
        operation.describe()
        for operation, state in _steps(migration, before)
        if _breaks(operation, migration.app_label, state)
    ]


def _steps(migration: Migration, before: ProjectState) -> Iterator[tuple[Operation, ProjectState]]:
    """Yield each operation that may change the database, with the state before it."""
    state = before.clone()
    for operation in migration.operations:
        if isinstance(operation, operations.SeparateDatabaseAndState):
            parts = operation.database_operations
        else:
            parts = [operation]
        for part in parts:
            if not isinstance(part, _STATE_ONLY):
                yield part, state
        operation.state_forwards(migration.app_label, state)


def _breaks(operation: Operation, app_label: str, state: ProjectState) -> bool:
    if isinstance(operation, _REMOVE):
        return True
    if isinstance(operation, operations.AddField):
        return _needs_a_value(operation.field)
    if isinstance(operation, operations.AlterField):
        return _is_other(*_fields(operation, app_label, state))
    return False


def _fields(
    operation: operations.AlterField, app_label: str, state: ProjectState
) -> tuple[Field, Field]:
    """Return the field before and after an operation."""
    fields = state.models[app_label, operation.model_name_lower].fields
    return fields[operation.name], operation.field


def _needs_a_value(field: Field) -> bool:
    return not (
        field.null or isinstance(field, ManyToManyField) or field.db_default is not NOT_PROVIDED
    )


def _is_other(old: Field, new: Field) -> bool:
    """Return whether the column accepts other values than before."""
    for name, before, after in _changed_parts(old, new):
        if name in _HARMLESS or (name == "null" and after):
            continue
        if name == "max_length" and before is not None and (after is None or after > before):
            continue
        return True
    return False


def _changed_parts(old: Field, new: Field) -> list[tuple[str, Any, Any]]:
    """Return the changed parts of a column with their old and new values."""
    (_, old_path, old_words, old_parts), (_, new_path, new_words, new_parts) = (
        old.deconstruct(),
        new.deconstruct(),
    )
    parts = [
        (name, old_parts.get(name), new_parts.get(name))
        for name in old_parts.keys() | new_parts.keys()
        if name not in new.non_db_attrs
    ]
    parts += [("type", old_path, new_path), ("arguments", old_words, new_words)]
    return [part for part in parts if part[1] != part[2]]
