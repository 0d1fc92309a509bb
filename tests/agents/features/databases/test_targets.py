"""Databases in runs: pinned names, later revocations, and passwords that are never shown."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core import serializers
from django.db import connection
from django.utils import timezone

from agents.features.databases.models import DatabaseConnection
from agents.middleware.registry import build_toolset
from agents.models import ApprovalRequest, Run, ToolCall
from agents.secret_text import SecretText
from agents.services.agent_definitions.actions import save_agent
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.spec import AgentSpec
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run

pytestmark = pytest.mark.django_db(transaction=True)

PASSWORD = "hunter2-of-the-server"
SERVER = f"postgresql+psycopg://reader:{PASSWORD}@127.0.0.1:9/shop?connect_timeout=2"
KEY = "the key of this test, 0123456789 abcdef"


def call(tool: str, **given: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": tool, "input": given}]}


def begin(tmp_path: Path, *turns: dict[str, Any], **fields: Any) -> tuple[User, Run]:
    """Create a queued run with a real file as shop and an unreachable server as stock."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database, database:
        database.execute("CREATE TABLE sales (amount)")
        database.execute("INSERT INTO sales VALUES (42)")
    rows = [
        DatabaseConnection.objects.create(name=name, url=SecretText.seal(url))
        for name, url in (("shop", f"sqlite:///{tmp_path}/shop.db"), ("stock", SERVER))
    ]
    user = make_user()
    model = script_file(tmp_path, [*turns, {"text": "Done."}])
    save_agent(make_agent(user, model=model, **fields), related={"databases": rows})
    return user, start_run(user)


def results(run: Run) -> list[str]:
    return [
        str(json.loads(call.result))
        for call in ToolCall.objects.filter(run=run).order_by("turn", "position")
        if call.result
    ]


@pytest.mark.slow
def test_taking_a_database_away_works_for_a_run_under_way(tmp_path: Path) -> None:
    query = {"query": "SELECT sum(amount) FROM sales", "database": "shop"}
    turns = [call("execute_sql", **query), call("ls"), call("execute_sql", **query)]
    user, run = begin(tmp_path, *turns, interrupt_on={"ls": True})
    run = drive_to_end(run, until=("waiting",))
    assert "42" in results(run)[0]

    DatabaseConnection.objects.get(name="shop").agents.clear()
    request = ApprovalRequest.objects.get(run=run)
    decide_approval(request.pk, DecisionRequest("approve", digest=request.digest), by=user)

    run = drive_to_end(run)
    assert run.status == "completed"
    assert "shop was removed from this agent or deleted" in results(run)[2]
    assert "42" not in results(run)[2]


LOOK = (
    "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; env; "
    "grep -rs hunter2 /sandbox /tmp /etc /home /root /var /run /dev/shm 2>/dev/null; "
    "ls -la {directory} 2>&1; cat {file} 2>&1; echo looked"
)


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_a_password_is_nowhere_but_encrypted_in_its_row(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, settings: Any, monkeypatch: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    settings.VEL = {**settings.VEL, "SECRET_KEYS": (KEY,)}
    # As in a worker's own environment, and as `--database NAME=env:STOCK_URL` needs it.
    monkeypatch.setitem(os.environ, "VEL_SECRET_KEYS", KEY)
    monkeypatch.setitem(os.environ, "STOCK_URL", SERVER)
    look = LOOK.format(directory=tmp_path, file=tmp_path / "shop.db")
    _, run = begin(
        tmp_path,
        call("execute_sql", query="SELECT 1", database="stock"),
        call("get_schema", database="stock"),
        call("execute_sql", query="SELECT 1", database="nothing"),
        call("execute_sql", query="SELECT no", database="shop"),
        call("execute", command=look),
        sandbox=True,
    )

    run = drive_to_end(run)

    assert run.status == "completed"
    said = results(run)
    assert len(said) == 5
    assert "looked" in said[4]
    assert "shop.db: No such file" in said[4]
    everything = [caplog.text, *said]
    for model in apps.get_models():
        everything.append(serializers.serialize("json", model._default_manager.all()))
    for secret in (PASSWORD, KEY, "reader:"):
        assert not [text for text in everything if secret in text]
    with connection.cursor() as cursor:  # and in the database's own storage
        cursor.execute("SELECT url FROM vel_databases_databaseconnection")
        for (stored,) in cursor.fetchall():
            assert PASSWORD not in stored
            assert not [text for text in everything if stored[:24] in text]


def test_the_loss_of_all_databases_is_reported_once_and_the_run_continues(
    tmp_path: Path, settings: Any
) -> None:
    _, run = begin(tmp_path, call("list_tables", database="shop"))
    settings.SECRET_KEY = KEY
    run = drive_to_end(run)
    assert run.status == "completed"
    assert "restore the key" in results(run)[0]


def test_agents_without_databases_have_the_same_tools_and_prompt() -> None:
    spec = AgentSpec(name="a", slug="a", provider="scripted", model="echo")
    tools = set(build_toolset(spec).tools)
    assert not {"execute_sql", "get_schema", "list_tables", "describe_table"} & tools
    prompt = build_toolset(spec).system_prompt(spec, timezone.now())
    assert "atabase" not in prompt
    more = spec.model_copy(update={"databases": ("shop",)})
    toolset = build_toolset(more)
    assert {"execute_sql", "get_schema"} <= set(toolset.tools)
    section = toolset.system_prompt(more, timezone.now())
    assert "shop" in section
    # Except for its own section, the prompt is the same, byte for byte.
    start, end = section.index("## Databases"), section.index("\n\n", section.index("## Databases"))
    assert section[:start] + section[end + 2 :] == prompt
