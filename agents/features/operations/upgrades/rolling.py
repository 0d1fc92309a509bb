"""Migrations after which processes of the release before cannot continue.

During a rolling restart, the old release uses the migrated database. It fails if a column that it
reads is gone, or if a new column needs a value that it does not write.
"""

from __future__ import annotations

from collections.abc import Iterator

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


def database_operations(migration: Migration) -> Iterator[Operation]:
    """Yield the operations of a migration that change the database."""
    for operation in migration.operations:
        if isinstance(operation, operations.SeparateDatabaseAndState):
            yield from operation.database_operations
        elif not isinstance(operation, _STATE_ONLY):
            yield operation


def breaks_old_processes(migration: Migration, before: ProjectState) -> list[str]:
    """Return descriptions of the operations that make processes of the old release fail.

    Args:
        migration: A migration that is not applied yet.
        before: The state of the models before it. The function does not change it.
    """
    state = before.clone()
    found = []
    for operation in migration.operations:
        if isinstance(operation, operations.SeparateDatabaseAndState):
            parts = operation.database_operations
        else:
            parts = [operation]
        found += [part.describe() for part in parts if _breaks(part, migration.app_label, state)]
        operation.state_forwards(migration.app_label, state)
    return found


def _breaks(operation: Operation, app_label: str, state: ProjectState) -> bool:
    if isinstance(operation, _REMOVE):
        return True
    if isinstance(operation, operations.AddField):
        return _needs_a_value(operation.field)
    if isinstance(operation, operations.AlterField):
        fields = state.models[app_label, operation.model_name_lower].fields
        return _is_other(fields[operation.name], operation.field)
    return False


def _needs_a_value(field: Field) -> bool:
    return not (
        field.null or isinstance(field, ManyToManyField) or field.db_default is not NOT_PROVIDED
    )


def _is_other(old: Field, new: Field) -> bool:
    """Return whether the column accepts other values than before."""
    (_, old_path, old_words, old_parts), (_, new_path, new_words, new_parts) = (
        old.deconstruct(),
        new.deconstruct(),
    )
    if old_path != new_path or old_words != new_words:
        return True
    for name in old_parts.keys() | new_parts.keys():
        before, after = old_parts.get(name), new_parts.get(name)
        if before == after or name in new.non_db_attrs or name in _HARMLESS:
            continue
        if name == "null" and after:
            continue
        if name == "max_length" and before is not None and (after is None or after > before):
            continue
        return True
    return False
