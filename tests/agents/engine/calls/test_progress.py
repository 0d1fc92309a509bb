"""The output of running calls, for watchers: before the end of the call, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.engine.process import deltas
from agents.events.catalogue.tool_calls import ToolProgress
from agents.services.runs.control import cancel_run
from tests.agents.engine.invariants import check_run
from tests.support.runs import (
    drive_to_end,
    event_types,
    make_agent,
    make_user,
    running_worker,
    script_file,
    start_run,
    wait_for_status,
    wait_until,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.bubblewrap]


def executing(command: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": "execute", "input": {"command": command, "timeout": 600}}]}


def tool_events(run: Any) -> list[str]:
    return [kind for kind in event_types(run) if kind.startswith("tool.") and kind != "tool.called"]


@pytest.fixture(autouse=True)
def _only_written_with_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deltas, "FLUSH_SECONDS", 3600.0)


def test_the_last_output_comes_before_the_end_of_its_call(tmp_path: Path) -> None:
    user = make_user()
    model = script_file(tmp_path, [executing("echo one"), executing("false"), {"text": "Done."}])
    make_agent(user, model=model, sandbox=True)
    run = drive_to_end(start_run(user))
    assert run.status == "completed"
    assert tool_events(run)[:3] == ["tool.started", "tool.progress", "tool.completed"]
    check_run(run)


def test_the_last_output_comes_before_the_cancellation_of_its_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[type] = []
    add = deltas.DeltaStream.add

    def noted(stream: Any, kind: type, *rest: Any) -> None:
        add(stream, kind, *rest)
        added.append(kind)

    monkeypatch.setattr(deltas.DeltaStream, "add", noted)
    user = make_user()
    model = script_file(tmp_path, [executing("echo begun; sleep 600.417; echo never")])
    make_agent(user, model=model, sandbox=True)
    run = start_run(user)
    with running_worker() as running:
        running.submit(run.id)
        wait_until(lambda: ToolProgress in added, "the first output")
        cancel_run(run.id, by="ada")
        wait_for_status(run, "cancelled")
    assert tool_events(run) == ["tool.started", "tool.progress", "tool.failed"]
    check_run(run)
