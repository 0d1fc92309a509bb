"""`/metrics` in Prometheus' format, for clients with the token."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import F
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import DjangoAssertNumQueries

from agents.models import ApprovalRequest, ProcessKind, Run, RunClock, ServerProcess
from agents.services.machines.processes import Reporter, leave_counts
from agents.services.runs.ends import note_end
from agents.telemetry.counters import FAMILIES, MOST, Counters, text_of
from agents.telemetry.process import counters, forget_instruments
from tests.support.runs import (
    drive_to_end,
    make_agent,
    make_user,
    running_worker,
    script_file,
    start_run,
    wait_for_status,
)
from velproject.monitoring import metrics as metrics_module
from velproject.up import settle_dead_cluster

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = "0123456789abcdef0123456789abcdef"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def scraped(settings: Any) -> Iterator[None]:
    settings.VEL = {**settings.VEL, "METRICS_TOKEN": TOKEN}
    metrics_module._kept = (float("-inf"), "")
    forget_instruments()
    yield
    metrics_module._kept = (float("-inf"), "")
    forget_instruments()


def scrape() -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return all samples by name and labels, parsed by Prometheus' own client."""
    metrics_module._kept = (float("-inf"), "")
    answer = Client().get("/metrics", headers=BEARER)
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for family in text_string_to_metric_families(answer.content.decode()):
        assert family.documentation
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found
            found[key] = sample.value
    return found


def number(samples: Any, name: str, **labels: str) -> float:
    return samples.get((name, tuple(sorted(labels.items()))), math.nan)


def test_reading_metrics_needs_the_token(scraped: None, settings: Any) -> None:
    client = Client()
    refused = [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Token {TOKEN}"},
        {"Authorization": TOKEN},
        {"Authorization": "Bearer \xe9"},
    ]
    for headers in refused:
        answer = client.get("/metrics", headers=headers)
        assert answer.status_code == 401, headers
        assert b"vel_" not in answer.content
    make_user(is_superuser=True, is_staff=True)
    client.login(username="ada", password="analytical")
    assert client.get("/metrics").status_code == 401
    assert client.post("/metrics", headers=BEARER).status_code in (403, 405)
    settings.VEL = {**settings.VEL, "METRICS_TOKEN": ""}
    for headers in ({}, BEARER, {"Authorization": "Bearer "}):
        assert client.get("/metrics", headers=headers).status_code == 404


def test_without_its_database_no_old_numbers_are_reported(scraped: None) -> None:
    there = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = "/nonexistent/database"
    try:
        answer = Client().get("/metrics", headers=BEARER)
    finally:
        connection.close()
        connection.settings_dict["NAME"] = there
    assert answer.status_code == 503
    assert b"nonexistent" not in answer.content


def test_work_of_a_worker_is_counted(scraped: None, tmp_path: Path) -> None:
    user = make_user()
    turns = [
        {"tool_calls": [{"name": "glob", "input": {"pattern": "*"}},
                        {"name": "read_file", "input": {"path": "/none"}}]},
        {"text": "Done."},
    ]  # fmt: skip
    make_agent(user, model=script_file(tmp_path, turns))
    make_agent(user, slug="broken", name="Broken", model="no-such-script")
    with running_worker() as running:
        for slug in ("tester", "broken"):
            run = start_run(user, "My secret words", agent=slug)
            running.submit(run.id)
            wait_for_status(run, "completed", "failed")
    waiting = start_run(user)
    Run.objects.filter(pk=waiting.pk).update(status="waiting", wait_reason="approval")
    ApprovalRequest.objects.create(run=waiting, tool="execute", input={}, digest="x")
    ApprovalRequest.objects.update(created_at=timezone.now() - timedelta(hours=1))
    samples = scrape()
    assert number(samples, "vel_runs", status="waiting", wait_reason="approval") == 1
    assert number(samples, "vel_runs", status="running", wait_reason="") == 0
    assert number(samples, "vel_runs_ended_total", status="completed") == 1
    assert number(samples, "vel_runs_ended_total", status="failed") == 1
    assert number(samples, "vel_run_claims_total", recovered="no") == 2
    scripted = {"provider": "scripted", "model": "scripted"}
    assert number(samples, "vel_model_calls_total", outcome="ok", **scripted) == 2
    assert number(samples, "vel_model_tokens_total", kind="output", **scripted) > 0
    assert number(samples, "vel_model_call_duration_seconds_count", **scripted) == 2
    assert number(samples, "vel_tool_calls_total", tool="glob", outcome="ok") == 1
    assert number(samples, "vel_tool_calls_total", tool="read_file", outcome="file_error") == 1
    assert number(samples, "vel_approvals_pending", kind="tool") == 1
    assert 3_599 < number(samples, "vel_approvals_oldest_seconds") < 3_700
    assert number(samples, "vel_workers_alive") == 0  # it has announced its end
    assert number(samples, "vel_database_bytes") > 0
    text = repr(samples)
    assert "secret" not in text
    assert "ada" not in text
    assert str(tmp_path) not in text


def test_buckets_add_up() -> None:
    numbers = Counters()
    for seconds in (-3.0, 0.02, 0.03, 10_000.0):  # the clock of another host may be slow
        numbers.observe("vel_tool_call_duration_seconds", "glob", seconds=seconds)
    samples = {
        (sample.name, sample.labels.get("le")): sample.value
        for family in text_string_to_metric_families(text_of([], numbers.snapshot()))
        for sample in family.samples
    }
    name = "vel_tool_call_duration_seconds"
    assert samples[f"{name}_bucket", "0.005"] == 1
    assert samples[f"{name}_bucket", "0.02"] == 2
    assert samples[f"{name}_bucket", "0.1"] == 3
    assert samples[f"{name}_bucket", "600"] == 3
    assert samples[f"{name}_bucket", "+Inf"] == samples[f"{name}_count", None] == 4
    assert samples[f"{name}_sum", None] == pytest.approx(10_000.05)


def test_rows_of_another_version_break_nothing() -> None:
    """Unknown or missing labels and a text with a line break must not break the page."""
    name = "vel_tool_call_duration_seconds"
    values = {
        "vel_tool_calls_total": {
            '["glob"]': 1.0, '["glob", "ok", "x"]': 1.0, '["glob", "a\\n\\"b"]': 7.0
        },
        name: {'["glob", "x", "+Inf"]': 1.0, '["+Inf"]': 1.0, '["glob", "+Inf"]': 5.0},
        "vel_of_tomorrow_total": {"[]": 1.0},
    }  # fmt: skip
    samples = {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text_of([], values))
        for sample in family.samples
    }
    assert samples[f"{name}_count", ("glob",)] == 5.0
    assert samples["vel_tool_calls_total", ("glob", 'a\n"b')] == 7.0
    assert sum(1 for key in samples if key[0] == "vel_tool_calls_total") == 1
    assert sum(1 for key in samples if key[0] == f"{name}_count") == 1


def test_names_that_people_choose_stay_few_and_harmless() -> None:
    numbers = Counters()
    for odd in ("a b", 'x"} 1\nevil 2', "é", "", "x" * 81, "\u202eabc"):
        numbers.add("vel_tool_calls_total", odd, "ok")
        numbers.add("vel_tool_calls_total", "send_slack_message", odd)  # its server's own name
    for count in range(MOST):
        numbers.add("vel_sandbox_commands_total", f"outcome-{count}")
    numbers.add("vel_spans_total", "exported")  # another family has other outcomes
    assert list(numbers.snapshot()["vel_spans_total"]) == ['["exported"]']
    for count in range(MOST * 3):
        numbers.add("vel_model_calls_total", "anthropic", f"model-{count}", "ok")
    values = numbers.snapshot()
    assert list(values["vel_tool_calls_total"]) == [
        '["other", "ok"]',
        '["send_slack_message", "other"]',
    ]
    calls = values["vel_model_calls_total"]
    assert len(calls) == MOST + 1
    assert sum(calls.values()) == MOST * 3
    text = text_of([], values)
    assert len(list(text_string_to_metric_families(text))) == len(FAMILIES)
    assert "evil" not in text


def test_no_number_is_lost_or_doubled_when_processes_end_or_come_back(scraped: None) -> None:
    def total() -> float:
        return number(scrape(), "vel_sweeper_found_total")

    numbers = counters()
    assert numbers is not None
    stalled, other = Reporter(ProcessKind.WORKER, "a"), Reporter(ProcessKind.WORKER, "b")
    numbers.add("vel_sweeper_found_total", amount=3)
    stalled.report()
    assert total() == 3
    # It counts as dead: its numbers are added to the sums, and its row is deleted.
    ServerProcess.objects.filter(pk="a").update(seen_at=F("seen_at") - 601)
    forget_instruments()  # as in another process, which has counted nothing
    other.report()
    other.report()
    assert not ServerProcess.objects.filter(pk="a").exists()
    assert total() == 3
    # It returns, and has counted two more in between.
    from agents.telemetry import process

    process._made[:] = [process.Instruments(None, numbers, False)]
    numbers.add("vel_sweeper_found_total", amount=2)
    stalled.report()
    assert total() == 5
    stalled.report()
    numbers.add("vel_sweeper_found_total", amount=4)  # since its last heartbeat
    stalled.retire()
    assert total() == 9
    assert json.loads(ServerProcess.objects.get(pk=ServerProcess.RETIRED).counters)


def test_an_end_that_is_rolled_back_is_not_counted(scraped: None) -> None:
    user = make_user()
    make_agent(user)
    run = start_run(user)
    numbers = counters()
    assert numbers is not None
    with transaction.atomic():
        note_end(run)
        transaction.set_rollback(True)
    assert "vel_runs_ended_total" not in numbers.snapshot()
    with transaction.atomic():
        note_end(run)
    assert sum(numbers.snapshot()["vel_runs_ended_total"].values()) == 1


def test_an_end_that_the_supervisor_makes_is_counted(scraped: None) -> None:
    user = make_user()
    make_agent(user)
    run = start_run(user)
    Run.objects.filter(pk=run.pk).update(status="running")
    RunClock.objects.filter(run=run).update(
        lease_holder="host:1:abc-1", lease_until=timezone.now().timestamp() + 60, fence=1,
        cancel_requested=True,
    )  # fmt: skip
    assert settle_dead_cluster("abc") == 1
    forget_instruments()  # the scraped web process is another one
    run.refresh_from_db()
    assert run.status == "cancelled"
    assert number(scrape(), "vel_runs_ended_total", status="cancelled") == 1


def test_a_process_without_a_row_leaves_each_number_once(scraped: None) -> None:
    numbers = counters()
    assert numbers is not None
    numbers.add("vel_sweeper_found_total", amount=3)
    connection.close()
    there = connection.settings_dict["NAME"]
    connection.settings_dict["NAME"] = "/nonexistent/database"
    try:
        with pytest.raises(DatabaseError):
            leave_counts()
    finally:
        connection.close()
        connection.settings_dict["NAME"] = there
    leave_counts()
    leave_counts()
    assert number(scrape(), "vel_sweeper_found_total") == 3
    Reporter(ProcessKind.WEB, "web").report()
    numbers.add("vel_sweeper_found_total")
    leave_counts()  # the row of this process will have it
    assert number(scrape(), "vel_sweeper_found_total") == 3


def test_a_scrape_costs_the_same_however_many_runs_have_ended(
    scraped: None, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    user = make_user()
    make_agent(user)
    first = drive_to_end(start_run(user))
    rows = [
        Run(thread=first.thread, number=count, agent_version=first.agent_version, owner=user,
            status="completed")
        for count in range(2, 302)
    ]  # fmt: skip
    Run.objects.bulk_create(rows)
    RunClock.objects.bulk_create(RunClock(run=row) for row in rows)
    metrics_module._kept = (float("-inf"), "")
    with django_assert_num_queries(12):
        Client().get("/metrics", headers=BEARER)
    with django_assert_num_queries(0):
        Client().get("/metrics", headers=BEARER)  # another scraper, immediately after
    plan = Run.objects.filter(status__in=["queued"]).values("status").explain()
    assert "SCAN agents_run\n" not in f"{plan}\n"


def test_without_a_reader_nothing_is_counted(tmp_path: Path) -> None:
    forget_instruments()
    assert counters() is None
    user = make_user()
    make_agent(user)
    with running_worker() as running:
        run = start_run(user)
        running.submit(run.id)
        wait_for_status(run, "completed")
    assert not ServerProcess.objects.exists()
