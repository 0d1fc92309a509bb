"""Create agents and runs, and drive runs to their end in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import connection

from agents.engine.worker import Worker
from agents.models import Agent, ApprovalRequest, Run, RunEvent
from agents.services.agent_definitions.actions import save_agent
from agents.services.runs.start import RunRequest, create_run
from tests.support.hang import HANG, poll


def make_user(name: str = "ada", **fields: Any) -> User:
    return get_user_model().objects.create_user(name, password="analytical", **fields)


def script_file(directory: Path, turns: list[dict[str, Any]], name: str = "script.json") -> str:
    """Write a script for the offline model. Return the model's name."""
    path = directory / name
    path.write_text(json.dumps({"turns": turns}))
    return f"file:{path}"


def make_agent(owner: User, **fields: Any) -> Agent:
    values: dict[str, Any] = {
        "name": "Tester",
        "slug": "tester",
        "provider": "scripted",
        "model": "echo",
        "sandbox": False,
        "builtin_skills": False,
        "owner": owner,
    }
    return save_agent(Agent(**{**values, **fields}))


def start_run(owner: User, message: str = "Hello", agent: str = "tester", **fields: Any) -> Run:
    return create_run(RunRequest(agent=agent, message=message, **fields), owner=owner).run


def wait_until(condition: Callable[[], Any], what: str = "the condition") -> Any:
    """Poll the database until `condition()` is true, and return its value."""
    value = poll(condition)
    assert value, f"{what} did not come true in {HANG:g} s"
    return value


def wait_for_status(run: Run, *statuses: str) -> Run:
    """Wait until the run has one of the statuses, and reload it."""
    # Without the ORM, which would use a tenth of the time of a short run to compile the query.
    query = f"SELECT status FROM {Run._meta.db_table} WHERE id = %s"

    def has_it() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(query, [run.pk])
            [now] = cursor.fetchone()
        if now == "waiting" and now not in statuses:
            fail_if_asked_again(run)
        return now in statuses

    wait_until(has_it, f"one of the statuses {statuses}")
    run.refresh_from_db()
    return run


def fail_if_asked_again(run: Run) -> None:
    """Fail if the run waits for another approval of a call that was approved before.

    Then the shown content has changed, and a test that does not expect this would wait for long.
    """
    again = ApprovalRequest.objects.filter(
        run=run, status="pending", tool_call__approvals__status="superseded"
    )
    assert not again.exists(), "the approval was refused, because what was shown has changed"


@contextmanager
def running_worker(**options: Any) -> Iterator[Worker]:
    """Start a worker in this process."""
    running = Worker(**options)
    running.start()
    try:
        yield running
    finally:
        running.stop(grace=5)


def drive_to_end(run: Run, *, until: tuple[str, ...] = ("completed", "failed", "cancelled")) -> Run:
    """Drive one run in this process until it has ended, or has one of the statuses `until`."""
    with running_worker(executor=run.executor) as running:
        running.submit(run.id)
        return wait_for_status(run, *until)


def event_types(run: Run) -> list[str]:
    return list(RunEvent.objects.filter(run=run).values_list("type", flat=True))


def events(run: Run, kind: str = "") -> list[dict[str, Any]]:
    rows = RunEvent.objects.filter(run=run)
    if kind:
        rows = rows.filter(type=kind)
    return [{"seq": row.seq, "type": row.type, **json.loads(row.data)} for row in rows]
