"""The database cost of telemetry: none when it is off, and no statement a turn when it is on."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from agents.models import EndedRun, RemoteTrace, RunEvent, ServerProcess
from agents.telemetry.model_watch import watched_model_call
from agents.telemetry.process import forget_instruments
from agents.telemetry.tool_watch import watched_command, watched_tool_call
from tests.agents.features.guardrails.test_costs import statements
from tests.support.otlp import collector
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run

pytestmark = pytest.mark.django_db(transaction=True)

TABLES = [model._meta.db_table for model in (EndedRun, RemoteTrace, ServerProcess)]


def about(tmp_path: Path, name: str, turns: int) -> tuple[Counter[str], Counter[str]]:
    """Return the statements on telemetry tables, and the events, of a run with `turns` turns.

    The run has its own process. The queries of its sweeper, once a second, do not count.
    """
    calls = [
        {"tool_calls": [{"name": "glob", "input": {"pattern": f"*.{number}"}}]}
        for number in range(turns - 1)
    ]
    user = make_user(name)
    slug = f"agent-{name}"
    model = script_file(tmp_path, [*calls, {"text": "Done."}], f"{name}.json")
    make_agent(user, slug=slug, name=slug, model=model)
    with statements() as seen:
        run = drive_to_end(start_run(user, agent=slug, executor="here"))
    assert run.status == "completed"
    found = Counter(
        f"{sql.split()[0]} {table}"
        for sql in seen
        for table in TABLES
        if table in sql and not (sql.startswith("SELECT") and table == EndedRun._meta.db_table)
    )
    kinds = Counter(RunEvent.objects.filter(run=run).values_list("type", flat=True))
    return found, Counter(
        {kind: count for kind, count in kinds.items()
         if not kind.endswith((".delta", "text.started", "input.started"))}
    )  # fmt: skip


def test_no_statement_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_instruments()
    off, events_off = about(tmp_path, "off", 8)
    assert not off
    with collector() as there:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", there.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        forget_instruments()
        try:
            few, _ = about(tmp_path, "few", 2)
            many, events_on = about(tmp_path, "many", 8)
        finally:
            forget_instruments()
    assert few == many
    assert few[f"SELECT {RemoteTrace._meta.db_table}"] == 2  # at the claim, and at the end
    assert events_on == events_off


def test_disabled_telemetry_costs_microseconds() -> None:
    began = time.process_time()
    for number in range(1_000):
        with watched_model_call("scripted", 1, number):
            pass
        with watched_tool_call("glob", "toolu_1", (1, number), 1, "{}"):
            pass
        with watched_command("bash", "true"):
            pass
    assert time.process_time() - began < 0.1  # 3,000 of them, with time for a slow machine
