"""No query of a run, of the workers or of the pages scans a whole table that grows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from agents.engine.storage.lease import orphaned_runs
from agents.features.approvals.jobs import expire_approval
from agents.features.conversation_export import reading
from agents.features.conversation_export.downloads import pieces
from agents.features.notifications.queue import due_targets
from agents.models import POOL, Run
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.background_jobs import take_background_job
from agents.services.erasure.actions import erase_thread, erasures_wait, finish_erasures
from agents.services.runs.ends import take_ended_run
from agents.services.runs.usage_totals import count_ended_runs
from agents.services.runs.wake import wake_due
from tests.agents.api.rows import client_for
from tests.support.plans import read_whole, statements
from tests.support.runs import (
    drive_to_end,
    make_agent,
    make_user,
    script_file,
    start_run,
)

GROWING = {
    f"agents_{name}"
    for name in (
        "run",
        "runclock",
        "runevent",
        "message",
        "toolcall",
        "thread",
        "epoch",
        "approvalrequest",
        "auditentry",
        "workspacesnapshot",
        "upload",
        "messageimage",
        "idempotencykey",
        "compaction",
        "usagetotal",
    )
} | {
    "memory_memoryrevision",
    "memory_memoryeditrequest",
    "skills_app_skilluse",
    "vel_budgets_allowance",
    "vel_budgets_budgetrequest",
    "vel_budgets_runbudget",
    "vel_notifications_notification",
    "vel_planning_todo",
}

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ada(tmp_path: Path) -> User:
    ada = make_user("ada")
    turns: list[dict[str, Any]] = [
        {"text": "I plan.", "tool_calls": [{"name": "read_todos", "input": {}}]},
        {"text": "Done."},
    ]
    make_agent(ada, model=script_file(tmp_path, turns), interrupt_on={"read_todos": True})
    return ada


def whole_reads(work: Callable[[], object]) -> dict[str, set[str]]:
    with statements() as made:
        work()
    found = {}
    for statement in made:
        tables = read_whole(statement) & GROWING
        if tables:
            found[statement[0]] = tables
    for sql, tables in found.items():
        print(sorted(tables), sql)  # the assertion message truncates them
    return found


def test_a_run_with_an_approval(ada: User) -> None:
    def work() -> None:
        run = start_run(ada)
        drive_to_end(run, until=("waiting",))
        (request,) = run.approvals.all()
        decide_approval(request.pk, DecisionRequest("approve", digest=request.digest), by=ada)
        drive_to_end(run)

    assert whole_reads(work) == {}
    assert Run.objects.get().status == "completed"


def test_the_polling_queries_of_workers_use_indexes(ada: User) -> None:
    start_run(ada)

    def work() -> None:
        orphaned_runs(POOL, 8)
        for look in (wake_due, expire_approval, due_targets, take_ended_run):
            with transaction.atomic():
                look()
        erasures_wait()
        take_background_job("prune", 60)
        count_ended_runs()

    assert whole_reads(work) == {}


API = (
    "runs?status=completed",
    "runs",
    "runs?created_after=2026-01-01T00:00:00Z",
    "runs/{run}",
    "runs/{run}/events",
    "runs/{run}/transcript",
    "runs/{run}/tool-calls",
    "threads",
    "threads/{thread}",
    "threads/{thread}/transcript",
    "approvals",
    "approvals?status=pending",
    "usage",
    "audit",
)
PAGES = ("/", "/runs/", "/approvals/", "/runs/{run}/", "/runs/{run}/summary/", "/usage/")


@pytest.mark.parametrize("everybodys", [False, True])
def test_pages_and_lists(ada: User, everybodys: bool) -> None:
    run = drive_to_end(start_run(ada), until=("waiting",))
    reader = make_user("boss", is_superuser=True) if everybodys else ada
    rest = client_for(reader)
    web = Client()
    web.force_login(reader)
    paths = [f"/api/v1/{path}" for path in API] + list(PAGES)
    found = {}
    for path in paths:
        path = path.format(run=run.pk, thread=run.thread_id)
        client = rest if path.startswith("/api/") else web
        found[path] = whole_reads(partial(client.get, path))
    assert {path: reads for path, reads in found.items() if reads} == {}


@pytest.mark.parametrize("words", ["hello", "nowhere"])
def test_a_search_with_excerpts(ada: User, words: str) -> None:
    start_run(ada)
    web = Client()
    web.force_login(ada)
    for path in ("/conversations/", "/runs/"):
        assert whole_reads(partial(web.get, path, {"q": words})) == {}


@pytest.mark.parametrize("form", ["markdown", "json"])
def test_an_export(ada: User, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = drive_to_end(start_run(ada), until=("waiting",))
    monkeypatch.setattr(reading, "TURNS_AT_ONCE", 1)

    def work() -> None:
        assert len(list(pieces(reading.Conversation(ada, run.thread_id), form))) > 3

    assert whole_reads(work) == {}


@pytest.mark.parametrize("by", ["agent", "model", "user", "tool"])
def test_the_operator_console(ada: User, by: str) -> None:
    drive_to_end(start_run(ada), until=("waiting",))
    client = client_for(make_user("boss", is_superuser=True))
    assert whole_reads(partial(client.get, f"/api/v1/console?by={by}&days=90")) == {}


def test_erasing(ada: User) -> None:
    make_agent(ada, slug="plain", name="Plain")
    run = drive_to_end(start_run(ada, agent="plain"))

    def work() -> None:
        erase_thread(run.thread_id, by=ada)
        finish_erasures()

    assert whole_reads(work) == {}
