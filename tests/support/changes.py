"""Changes of the database and of the threads' directories between two moments."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.models import Model

from agents.settings import DataSettings

BY_ENGINE = frozenset(
    {
        "agents.Epoch",
        "agents.Message",
        "agents.Run",
        "agents.RunClock",
        "agents.RunEvent",
        "agents.Thread",
        "agents.ToolCall",
        "skills_app.RunSkillSet",
    }
)
"""The engine writes rows of these models for each call. Rows of other runs count as changes."""
BY_OTHERS = frozenset(
    {
        "agents.ApprovalRequest",
        "agents.AuditEntry",
        "agents.EndedRun",
        "agents.ServerProcess",
        "agents.UsageTotal",
        "django_q.OrmQ",
    }
)
"""Models that no tool writes: decisions, the queue, processes and statistics."""
COLUMNS_BY_OTHERS = {"agents.Run": {"uncounted_from"}}
"""Workers count the usage of ended runs at intervals."""


@dataclass(frozen=True)
class State:
    rows: dict[str, Counter[tuple[str, ...]]]
    files: dict[str, str]
    outside: dict[str, str]


def current_state(**outside: Any) -> State:
    """Return the state that a tool can change. `outside` are other objects, compared by `repr`."""
    models = [
        model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed and not model._meta.proxy and model._meta.label not in BY_OTHERS
    ]
    with connection.cursor() as cursor:
        rows = {model._meta.label: _rows(cursor, model) for model in models}
    files = _files(DataSettings.now().workspaces)
    return State(rows, files, {name: repr(value) for name, value in outside.items()})


def changes(before: State, after: State, *, run_id: str, thread_id: str) -> set[str]:
    """Return the changed labels of models, paths of files and names of other objects.

    Rows that the engine writes for each call of the run are ignored.
    """
    own = {repr(run_id), repr(thread_id)}
    found = set()
    for label, rows in after.rows.items():
        earlier = before.rows[label]
        different = [*(rows - earlier), *(earlier - rows)]
        if label in BY_ENGINE:
            different = [row for row in different if not own & set(row)]
        found |= {label} if different else set()
    for mine, theirs in ((before.files, after.files), (before.outside, after.outside)):
        found |= {name for name in mine | theirs if mine.get(name) != theirs.get(name)}
    return found


def _rows(cursor: Any, model: type[Model]) -> Counter[tuple[str, ...]]:
    left_out = COLUMNS_BY_OTHERS.get(model._meta.label, set())
    names = [field.column or field.name for field in model._meta.local_concrete_fields]
    quote = connection.ops.quote_name
    columns = ", ".join(quote(name) for name in names if name not in left_out)
    cursor.execute(f"SELECT {columns} FROM {quote(model._meta.db_table)}")
    return Counter(
        tuple(repr(bytes(v) if isinstance(v, memoryview) else v) for v in row)
        for row in cursor.fetchall()
    )


def _files(top: Path) -> dict[str, str]:
    """Return the mode and content of files. Directories appear whenever a workspace is opened."""
    return {
        str(path.relative_to(top)): f"{path.lstat().st_mode:o} {_content(path)!r}"
        for path in top.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }


def _content(path: Path) -> bytes:
    if path.is_symlink():
        return os.fsencode(path.readlink())
    # Reading a named pipe would block until there is a writer.
    return path.read_bytes() if path.is_file() else b""
