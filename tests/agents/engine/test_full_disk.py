"""Active runs while the disk is nearly full."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from agents.disk_space import forget_room
from agents.engine import drive as drive_module
from agents.models import Run, ToolCall
from agents.states import RunStatus
from tests.support.runs import (
    drive_to_end,
    make_agent,
    make_user,
    running_worker,
    script_file,
    start_run,
    wait_for_status,
    wait_until,
)

pytestmark = pytest.mark.django_db(transaction=True)


def a_run(directory: Path, *calls: tuple[str, dict[str, Any]], sandbox: bool = False) -> Run:
    """Create a run with these calls, each in its own turn."""
    turns = [{"tool_calls": [{"name": name, "input": given}]} for name, given in calls]
    owner = make_user()
    model = script_file(directory, [*turns, {"text": "done"}])
    make_agent(owner, model=model, sandbox=sandbox)
    return start_run(owner)


def reserve(settings: Settings, part: float) -> None:
    """Reserve this part of the free space. More than 1 is always more than the free space."""
    free = shutil.disk_usage(settings.VEL["DATA_DIR"]).free
    settings.VEL = {**settings.VEL, "RESERVE_BYTES": int(free * part)}
    forget_room()


def results(run: Run) -> list[str]:
    return [json.loads(call.result) for call in ToolCall.objects.filter(run=run).order_by("turn")]


@pytest.mark.slow
def test_a_run_waits_without_a_driver_and_continues(settings: Settings, tmp_path: Path) -> None:
    run = a_run(tmp_path, ("read_todos", {}))
    usual = settings.VEL
    reserve(settings, 1000)
    told: list[str] = []
    with running_worker(on_disk_full=told.append) as running:
        running.submit(run.id)
        wait_until(lambda: told, "the wait")
        assert "waits for disk space" in told[0]
        assert running.running == 0
        run.refresh_from_db()
        assert (run.status, run.started_at) == (RunStatus.QUEUED, None)
        settings.VEL = usual
        wait_for_status(run, "completed")
    assert len(told) == 1


def test_between_the_thresholds_active_runs_continue(settings: Settings, tmp_path: Path) -> None:
    run = a_run(tmp_path, ("read_todos", {}))
    reserve(settings, 2)
    assert drive_to_end(run).status == "completed"


def test_files_in_the_database_leave_the_reserve_free(settings: Settings, tmp_path: Path) -> None:
    run = a_run(tmp_path, ("write_file", {"path": "/a.txt", "content": "x"}))
    reserve(settings, 2)
    assert drive_to_end(run).status == "completed"
    assert "no room left on the disk of the database" in results(run)[0]


@pytest.mark.bubblewrap
def test_a_command_does_not_start_on_the_reserve(settings: Settings, tmp_path: Path) -> None:
    run = a_run(tmp_path, ("execute", {"command": "echo it ran"}), sandbox=True)
    reserve(settings, 2)
    assert drive_to_end(run).status == "completed"
    assert "The command did not start: the disk of the data directory is full" in results(run)[0]


def test_a_full_disk_does_not_fail_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = drive_module.open_session
    opened: list[str] = []

    async def full_once(*arguments: Any) -> Any:
        opened.append("session")
        if len(opened) == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return await real(*arguments)

    monkeypatch.setattr(drive_module, "open_session", full_once)
    run = drive_to_end(a_run(tmp_path))
    assert (run.status, len(opened)) == ("completed", 2)
