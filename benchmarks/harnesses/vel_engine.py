"""Vel's engine in this process: the real worker, on the database of `DATABASE_URL`."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from protocol import measured, serve  # noqa: E402
from vel_rows import AGENT, database_bytes, make_site, write_notes  # noqa: E402

from agents.engine.worker import Worker  # noqa: E402
from agents.ids import own_executor  # noqa: E402
from agents.models import Run, ToolCall  # noqa: E402
from agents.services.runs.start import RunRequest, create_run  # noqa: E402


def has_ended(run_id: str) -> bool:
    """Return whether the run has ended."""
    return Run.objects.filter(pk=run_id, status__in=("completed", "failed", "cancelled")).exists()


class VelEngine:
    """A worker that drives one run after the other."""

    def __init__(self) -> None:
        call_command("migrate", verbosity=0, skip_checks=True)
        import_module("agents.providers.anthropic.provider")
        self._owner = make_site()
        self._worker = Worker(executor=own_executor())
        self._worker.start()

    def run(self, message: str) -> dict[str, Any]:
        """Drive one run from the claim to the last row."""
        request = RunRequest(agent=AGENT, message=message, executor=self._worker.executor)
        figures: dict[str, Any] = {}
        run = create_run(request, owner=self._owner).run
        write_notes(run.thread_id)
        before = database_bytes()
        with measured(figures):
            self._worker.submit(run.id)
            # A short run can start and end between two checks of the worker.
            while self._worker.running or not has_ended(run.id):
                time.sleep(0.02)
        run = Run.objects.select_related("clock").get(pk=run.id)
        if run.status != "completed":
            raise RuntimeError(f"the run is {run.status}: {run.error_message}")
        failed = ToolCall.objects.filter(run=run).exclude(status="succeeded").count()
        if failed:
            raise RuntimeError(f"{failed} tool calls did not succeed")
        return {**figures, "calls": run.clock.turn, "db_bytes": database_bytes() - before}

    def close(self) -> None:
        self._worker.stop()
        connection.close()


if __name__ == "__main__":
    engine = VelEngine()
    try:
        serve({"run": engine.run})
    finally:
        engine.close()
