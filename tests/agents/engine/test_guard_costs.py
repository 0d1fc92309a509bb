"""What guards cost an agent that has none: no row, no event, no statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db.backends.signals import connection_created

from agents.models import EndedRun, Message, RunEvent, ToolCall
from tests.support.guards import registered
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def statements() -> Iterator[list[str]]:
    """Every statement that the connections made from now on run, the engine's among them."""
    seen: list[str] = []

    def note(execute: Any, sql: str, *arguments: Any) -> Any:
        seen.append(sql)
        return execute(sql, *arguments)

    def watch(connection: Any, **kwargs: Any) -> None:
        connection.execute_wrappers.append(note)

    connection_created.connect(watch)
    try:
        yield seen
    finally:
        connection_created.disconnect(watch)


def test_a_run_without_guards_writes_and_asks_nothing_for_them(tmp_path: Path) -> None:
    turns = [
        {"tool_calls": [{"name": "glob", "input": {"pattern": f"*.{number}"}}]}
        for number in range(10)
    ]
    user = make_user()
    make_agent(user, model=script_file(tmp_path, [*turns, {"text": "Done."}]))
    with registered(("NoWord", "Mask")), statements() as seen:  # registered, and not chosen
        run = drive_to_end(start_run(user))
    assert run.status == "completed", run.error_message
    assert Message.objects.filter(run=run).count() == 12
    kinds = Counter(RunEvent.objects.filter(run=run).values_list("type", flat=True))
    kept = {
        kind: count
        for kind, count in kinds.items()
        if not kind.endswith((".delta", "text.started", "input.started"))
    }
    assert kept == {
        "run.started": 1,
        "step.started": 11,
        "step.completed": 11,
        "tool.called": 10,
        "tool.started": 10,
        "tool.completed": 10,
        "text.completed": 1,
        "run.completed": 1,
    }
    assert seen, "the engine's connection was not watched"
    assert [sql for sql in seen if EndedRun._meta.db_table in sql] == []
    looks_back = f'"{ToolCall._meta.db_table}"."position" DESC'
    assert [sql for sql in seen if looks_back in sql] == []
