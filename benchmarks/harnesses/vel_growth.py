"""One run, the queries of a worker and the pages, while the database grows."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.db.backends.utils import CursorWrapper  # noqa: E402
from django.db.models import Model  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import setup_test_environment  # noqa: E402
from protocol import serve  # noqa: E402
from vel_rows import AGENT, database_bytes, make_site, write_notes  # noqa: E402

from agents.engine.storage.lease import orphaned_runs  # noqa: E402
from agents.engine.worker import Worker  # noqa: E402
from agents.features.approvals.jobs import expire_approval  # noqa: E402
from agents.features.notifications.queue import due_targets  # noqa: E402
from agents.ids import own_executor  # noqa: E402
from agents.models import (  # noqa: E402
    POOL,
    Epoch,
    Message,
    Run,
    RunClock,
    RunEvent,
    Thread,
    ToolCall,
)
from agents.selectors.metrics import gauges  # noqa: E402
from agents.services.erasure.actions import erasures_wait  # noqa: E402
from agents.services.runs.ends import take_ended_run  # noqa: E402
from agents.services.runs.start import RunRequest, create_run  # noqa: E402
from agents.services.runs.usage_totals import count_ended_runs  # noqa: E402
from agents.services.runs.wake import wake_due  # noqa: E402

setup_test_environment()

PART = 5_000
PAGES = (
    "/",
    "/runs/",
    "/runs/?status=failed",
    "/runs/?q=nosuchword",
    "/runs/?after={old}",
    "/approvals/",
    "/approvals/?tab=decided",
    "/usage/",
    "/api/v1/runs",
    "/api/v1/runs?status=failed",
    "/api/v1/runs?agent=asker",
    "/api/v1/runs?created_before=2000-01-01T00:00:00Z",
    "/api/v1/threads",
    "/api/v1/threads?agent=asker",
    "/api/v1/threads?status=failed",
    "/api/v1/threads?ordering=title",
    "/api/v1/approvals?status=decided",
    "/api/v1/usage",
    "/api/v1/audit",
    "/admin/",
    "/admin/agents/run/",
    "/admin/agents/run/?status=failed",
    "/admin/agents/run/?q=nobody",
    "/admin/agents/thread/",
    "/admin/agents/approvalrequest/",
    "/admin/agents/approvalrequest/?status=decided",
    "/admin/agents/notification/",
    "/admin/agents/auditentry/",
    "/admin/status/",
)
"""The pages that are measured. `{old}` is one of the oldest runs."""
COPIED: tuple[type[Model], ...] = (Thread, Run, RunClock, Message, ToolCall, RunEvent, Epoch)
_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT {0} UNION ALL SELECT i + 1 FROM n WHERE i < {1})"
_DIALECT = {
    "sqlite": ("printf('0%025d', i)", "datetime('now', '-' || i || ' minutes')"),
    "postgresql": ("'0' || lpad(i::text, 25, '0')", "now() - i * interval '1 minute'"),
}
"""SQL for an id that sorts before all others, and for a time `i` minutes ago."""


class Growth:
    """A site that is filled with copies of one run."""

    def __init__(self) -> None:
        call_command("migrate", verbosity=0, skip_checks=True)
        import_module("agents.providers.anthropic.provider")
        self._owner = make_site()
        self._worker = Worker(executor=own_executor())
        self._worker.start()
        self._rows = 0

    def fill(self, runs: int, message: str) -> dict[str, float]:
        """Copy a run until there are `runs` copies.

        Returns the numbers of rows and bytes, and the seconds of counting the ended runs.
        """
        run = self._drive(message)
        while self._rows < runs:
            until = min(self._rows + PART, runs)
            with transaction.atomic(), connection.cursor() as cursor:
                for model in COPIED:
                    cursor.execute(self._copying(model, run, self._rows + 1, until))
            self._rows = until
        began = time.monotonic()
        while count_ended_runs():
            pass  # workers do this within seconds
        counting = time.monotonic() - began
        with connection.cursor() as cursor:
            # Autovacuum does this on PostgreSQL. SQLite has no automatic equivalent.
            if connection.vendor == "postgresql":
                cursor.execute("ANALYZE")
        rows = sum(model._base_manager.count() for model in COPIED)
        return {"rows": rows, "bytes": database_bytes(), "counting_s": counting}

    def _copying(self, model: type[Model], run: Run, first: int, last: int) -> str:
        name, moment = _DIALECT[connection.vendor]
        own = {"thread_id": name, "run_id": name, "created_at": moment, "ended_at": moment}
        if model in (Thread, Run):
            own["id"] = name
        names = [
            field.column
            for field in model._meta.concrete_fields
            if getattr(field, "column", None) and (field.column in own or field.column != "id")
        ]
        values = [own.get(column, f't."{column}"') for column in names]
        key = "id" if model is Thread else "thread_id" if model is Epoch else "run_id"
        if model is Run:
            key = "id"
        wanted = run.thread_id if key == "thread_id" or model is Thread else run.pk
        table = model._meta.db_table
        columns = ", ".join(f'"{column}"' for column in names)
        select = f'SELECT {", ".join(values)} FROM "{table}" t, n WHERE t."{key}" = \'{wanted}\''
        numbers = _NUMBERS.format(first, last)
        return (
            f'{numbers} INSERT INTO "{table}" ({columns}) {select}'
            if (connection.vendor == "sqlite")
            else f'INSERT INTO "{table}" ({columns}) {numbers} {select}'
        )

    def measure(self, message: str, times: int) -> dict[str, dict[str, float]]:
        """Return the median CPU milliseconds and the number of statements of each action."""
        found = {"one run": _measured(lambda: self._drive(message), times)}
        found["a worker's look"] = _measured(_look, times)
        client = Client()
        client.force_login(self._owner)
        for path in PAGES:
            asked = path.format(old=f"0{100:025d}")
            found[path] = _measured(lambda asked=asked: _get(client, asked), times)
        found["metrics"] = _measured(lambda: list(gauges()), times)
        return found

    def _drive(self, message: str) -> Run:
        request = RunRequest(agent=AGENT, message=message, executor=self._worker.executor)
        run = create_run(request, owner=self._owner).run
        write_notes(run.thread_id)
        deadline = time.monotonic() + 60
        while not (ended := Run.objects.filter(pk=run.pk, ended_at__isnull=False).first()):
            if time.monotonic() > deadline:
                raise TimeoutError("the run does not end")
            time.sleep(0.02)
        if ended.status != "completed":
            raise RuntimeError(f"the run is {ended.status}: {ended.error_message}")
        while self._worker.running:
            time.sleep(0.005)
        return run

    def close(self) -> None:
        self._worker.stop()
        connection.close()


def _look() -> None:
    """Run the queries that each worker process makes every second."""
    orphaned_runs(POOL, 8)
    for look in (wake_due, expire_approval, due_targets, take_ended_run):
        with transaction.atomic():
            look()
    erasures_wait()
    count_ended_runs()


def _get(client: Client, path: str) -> None:
    answer = client.get(path)
    if answer.status_code != 200:
        raise RuntimeError(f"{path} answered {answer.status_code}")


def _measured(work: Callable[[], object], times: int) -> dict[str, float]:
    work()
    seconds = []
    with _counted() as count:
        for _ in range(times):
            began = time.process_time()
            work()
            seconds.append(time.process_time() - began)
    return {"cpu_ms": statistics.median(seconds) * 1000, "statements": count[0] / times}


@contextmanager
def _counted() -> Iterator[list[int]]:
    """Count the statements of all threads, including the polls for the end of the run."""
    count = [0]
    execute = CursorWrapper.execute

    def note(cursor: CursorWrapper, sql: Any, params: Any = None) -> Any:
        count[0] += 1
        return execute(cursor, sql, params)

    CursorWrapper.execute = note  # type: ignore[method-assign]
    try:
        yield count
    finally:
        CursorWrapper.execute = execute  # type: ignore[method-assign]


if __name__ == "__main__":
    growth = Growth()
    try:
        serve({"fill": growth.fill, "measure": growth.measure})
    finally:
        growth.close()
