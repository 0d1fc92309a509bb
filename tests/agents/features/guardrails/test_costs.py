"""The database cost of a turn, and the overhead for agents without guardrails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db.backends.signals import connection_created

from agents.engine.process import deltas
from agents.models import EndedRun, Message, RunClock, RunEvent, Thread, ToolCall
from tests.support.guards import registered
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def statements() -> Iterator[list[str]]:
    """Collect all statements of all connections, also those of the engine."""
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


MODELS = (Message, RunEvent, Thread, ToolCall, RunClock)
TABLES = {model._meta.db_table: model.__name__ for model in MODELS}


def verbs(seen: list[str]) -> Counter[str]:
    """Return the statements on the tables of turns, without the renewals of leases."""
    found: Counter[str] = Counter()
    for sql in seen:
        verb = sql.split()[0]
        table = next((name for table, name in TABLES.items() if f'"{table}"' in sql), "")
        if not table or "SET lease_until" in sql or (table == "RunClock" and verb == "SELECT"):
            continue
        found[f"{verb} {table}"] += 1
    return found


def test_a_turn_has_a_fixed_number_of_statements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two transactions: the reply with its calls, and the results."""
    monkeypatch.setattr(deltas, "FLUSH_SECONDS", 3600.0)  # so no deltas are written during the run
    user = make_user()
    counts = []
    for turns in (2, 12):
        calls = [
            {"tool_calls": [{"name": "glob", "input": {"pattern": f"*.{number}"}}]}
            for number in range(turns)
        ]
        slug = f"turns-{turns}"
        model = script_file(tmp_path, [*calls, {"text": "Done."}], f"{slug}.json")
        make_agent(user, slug=slug, name=slug, model=model)
        with statements() as seen:
            run = drive_to_end(start_run(user, agent=slug))
        assert run.status == "completed", run.error_message
        counts.append(verbs(seen))
    # Rounded, because a job of the worker may add a statement at any time.
    each_turn = {name: round(count / 10) for name, count in (counts[1] - counts[0]).items()}
    assert {name: count for name, count in each_turn.items() if count} == {
        "UPDATE RunClock": 2,
        "INSERT Message": 1,
        "INSERT ToolCall": 1,
        "UPDATE ToolCall": 1,
        "INSERT RunEvent": 2,
        "SELECT Thread": 1,  # the tool looks at the files
    }
