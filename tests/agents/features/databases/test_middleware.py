"""Database tools in runs: their results, and cancelled runs."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from agents.events.append import dump
from agents.features.databases.drivers.own_database import own_database
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.middleware.text import shown_schema
from agents.features.databases.models import DatabaseConnection
from agents.middleware.registry import Toolset, known_tool_names, toolset_for
from agents.models import Run, ToolCall
from agents.secret_text import SecretText
from agents.services.agent_definitions.actions import save_agent
from agents.services.runs.control import cancel_run
from agents.spec import AgentSpec
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

TOOLS = ["execute_sql", "get_schema", "list_tables", "describe_table"]
NOON = datetime(2026, 3, 4, 12, 0)  # noqa: DTZ001  # in the thread's own time zone
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


def begin(
    tmp_path: Path,
    *calls: tuple[str, dict[str, Any]],
    names: tuple[str, ...] = ("shop",),
    **fields: Any,
) -> Run:
    path = tmp_path / "shop.sqlite3"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE sales (id INTEGER PRIMARY KEY, amount NUMERIC NOT NULL)")
        database.executemany("INSERT INTO sales VALUES (?, ?)", [(n, n * 2) for n in range(300)])
    rows = [
        DatabaseConnection.objects.create(name=name, url=SecretText.seal(f"sqlite:///{path}"))
        for name in names
    ]
    user = make_user()
    turns = [{"tool_calls": [{"name": name, "input": given}]} for name, given in calls]
    model = script_file(tmp_path, [*turns, {"text": "Done."}])
    save_agent(make_agent(user, model=model, **fields), related={"databases": rows})
    return start_run(user)


def calls_of(run: Run) -> list[ToolCall]:
    run = drive_to_end(run)
    assert run.status == "completed", run.error_message
    return list(ToolCall.objects.filter(run=run).order_by("turn"))


def content(call: ToolCall) -> Any:
    assert call.status == "succeeded", call.result_content
    return json.loads(str(call.result_content))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("sqlite:///x", 'Shop("a b" INT, "new\nline" INT, "q""q" INT)'),
        ("mysql://x", 'Shop(`a b` INT, `new\nline` INT, `q"q` INT)'),
        ("postgresql://x", '"Shop"("a b" INT, "new\nline" INT, "q""q" INT)'),
    ],
)
def test_a_model_can_copy_the_names_of_the_schema(url: str, expected: str) -> None:
    columns = ("a b", "new\nline", 'q"q')
    rows = [("public", "Shop", column, "INT", "YES", "") for column in columns]
    shown = shown_schema(DatabaseTarget("shop", url), QueryResult(("",) * 6, rows))
    assert shown.partition("\n")[2] == expected


@pytest.mark.django_db(transaction=True)
def test_a_sole_connection_is_the_default_and_has_a_name(tmp_path: Path) -> None:
    query = {"query": "SELECT sum(amount) AS total FROM sales WHERE id < :n", "params": {"n": 4}}
    calls = calls_of(
        begin(
            tmp_path,
            ("execute_sql", query),
            ("execute_sql", {**query, "database": "shop"}),
            ("execute_sql", {**query, "database": "other"}),
            ("get_schema", {}),
            ("list_tables", {}),
            ("describe_table", {"table": "sales"}),
            ("describe_table", {"table": "sails"}),
            ("execute_sql", {"query": "DELETE FROM sales"}),
        )
    )
    expected = {
        "success": True,
        "row_count": 1,
        "truncated": False,
        "table": "| total |\n| --- |\n| 12 |",
    }
    assert content(calls[0]) == content(calls[1]) == expected
    assert (calls[2].status, calls[2].code) == ("failed", "no_database")
    assert "shop" in str(calls[2].result_content)
    assert calls[3].result_content == (
        "SQLite, 1 table\nsales(id INTEGER PK, amount NUMERIC NOT NULL)"
    )
    assert calls[4].result_content == "SQLite, 1 table\nsales"
    assert "| amount | NUMERIC | NO | NULL |  |" in str(calls[5].result_content)
    assert (calls[6].status, calls[6].code) == ("failed", "not_found")
    assert (calls[7].status, calls[7].code) == ("failed", "database")
    assert "not authorized" in str(calls[7].result_content)
    with closing(sqlite3.connect(tmp_path / "shop.sqlite3")) as database:
        assert database.execute("SELECT count(*) FROM sales").fetchone() == (300,)


@pytest.mark.django_db(transaction=True)
def test_with_several_one_must_be_named(tmp_path: Path) -> None:
    query = {"query": "SELECT 1"}
    calls = calls_of(
        begin(
            tmp_path,
            ("execute_sql", query),
            ("execute_sql", {**query, "database": "b"}),
            names=("a", "b"),
        )
    )
    assert (calls[0].status, calls[0].code) == ("failed", "no_database")
    assert "a, b" in str(calls[0].result_content)
    assert content(calls[1])["row_count"] == 1


@pytest.mark.django_db(transaction=True)
def test_a_long_result_is_a_file_with_its_first_rows_shown(tmp_path: Path) -> None:
    run = begin(
        tmp_path,
        ("execute_sql", {"query": "SELECT * FROM sales"}),
        ("ls", {"path": "/query-results"}),
    )
    first, listing = calls_of(run)
    shown = content(first)
    assert (shown["row_count"], shown["truncated"]) == (300, False)
    assert shown["table"].count("\n") == 23
    assert "Showing 20 of 300 rows" in shown["table"]
    assert "All 300 rows" in shown["note"]
    [entry] = content(listing)["entries"]
    assert shown["file"] == f"/query-results/{entry['name']}"


@pytest.mark.bubblewrap
@pytest.mark.django_db(transaction=True)
def test_commands_find_the_file_in_their_workspace(tmp_path: Path) -> None:
    long = "SELECT id, printf('%.*c', 300, 'x') AS text FROM sales LIMIT 3"
    run = begin(
        tmp_path,
        ("execute_sql", {"query": "SELECT * FROM sales ORDER BY id"}),
        ("execute_sql", {"query": long}),
        (
            "execute",
            {"command": "cd query-results && wc -l *.csv | tail -1; tail -qn 1 *.csv | wc -c"},
        ),
        sandbox=True,
    )
    sales, texts, counted = calls_of(run)
    assert content(sales)["file"].startswith("/sandbox/workspace/query-results/")
    assert "… (300 characters)" in content(texts)["table"]
    assert content(counted)["stdout"].split() == [
        "305",
        "total",
        str(len("299,598\n2," + "x" * 300 + "\n")),
    ]


@pytest.mark.django_db(transaction=True)
def test_cancelling_a_run_ends_its_statement(tmp_path: Path) -> None:
    run = begin(tmp_path, ("execute_sql", {"query": ENDLESS}))
    with running_worker() as worker:
        worker.submit(run.pk)
        wait_until(lambda: ToolCall.objects.filter(run=run, status="started").exists())
        begun = time.monotonic()
        cancel_run(run.pk, by="ada")
        # The call ends when its thread has returned, which takes 30 seconds without the
        # cancellation.
        wait_for_status(run, "cancelled")
        assert time.monotonic() - begun < 15
    assert ToolCall.objects.get(run=run).status == "cancelled"


@pytest.mark.django_db
def test_vel_knows_its_own_database() -> None:
    own = own_database()
    if connection.vendor == "sqlite":
        assert own.path == str(connection.settings_dict["NAME"])
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT oid::bigint FROM pg_database WHERE datname = current_database()")
        assert own.database == cursor.fetchone()[0]
    assert own.server.isdigit()


def spec(**fields: Any) -> AgentSpec:
    return AgentSpec(name="T", slug="t", provider="scripted", model="echo", **fields)


def test_only_agents_with_a_database_have_the_tools() -> None:
    for profile in ("full", "sandbox_only"):
        assert not set(TOOLS) & set(toolset_for(spec(profile=profile)).tools)
    assert "## Databases" not in toolset_for(spec()).system_prompt(spec(), NOON)
    assert set(TOOLS) < set(toolset_for(spec(databases=("shop",))).tools)
    assert set(TOOLS) < known_tool_names()
    alone = spec(profile="sandbox_only", databases=("shop",))
    assert list(toolset_for(alone).tools) == ["write_todos", "execute_in_sandbox", "task"]


def test_they_cost_little_and_the_prompt_names_the_databases() -> None:
    def size(agent: AgentSpec) -> int:
        toolset: Toolset = toolset_for(agent)
        prompt = toolset.system_prompt(agent, NOON)
        return len(prompt.encode()) + len(dump(toolset.wire).encode())

    agent = spec(databases=("sales", "hr"))
    assert size(agent) - size(spec()) <= 1.2 * 1024
    assert "You can read: sales, hr." in toolset_for(agent).system_prompt(agent, NOON)
    many = spec(databases=tuple(f"database_{number}" for number in range(300)))
    assert size(many) - size(spec()) <= 1.6 * 1024


def test_the_prompt_names_dialects_and_writable_databases() -> None:
    def text(**fields: Any) -> str:
        agent = spec(databases=("hr", "sales"), **fields)
        return toolset_for(agent).system_prompt(agent, NOON)

    assert "You can read: hr, sales (SQLite)." in text(database_dialects=("sqlite", "sqlite"))
    assert "You can read: hr (DuckDB), sales (PostgreSQL). Look at get_schema first." in text(
        database_dialects=("duckdb", "postgresql")
    )
    assert "hr (MariaDB), sales (MySQL)." in text(database_dialects=("mariadb", "mysql"))
    assert "hr, sales (SQLite), which" not in text(database_dialects=("", "sqlite"))
    assert "You can write: sales," in text(writable_databases=("sales",))
    assert "can write" not in text(writable_databases=("sales",), read_only=True)


def test_an_agent_without_write_mode_has_the_tools_and_the_prompt_of_before() -> None:
    def offered(agent: AgentSpec) -> str:
        toolset = toolset_for(agent)
        return dump(toolset.wire) + toolset.system_prompt(agent, NOON)

    reads = spec(databases=("hr", "sales"))
    assert _segment(reads) == READING
    tool = toolset_for(reads).tools["execute_sql"]
    assert tool.variant is None
    assert tool.description == "Run one SELECT. params: values for :name in the query."
    writes = spec(databases=("hr", "sales"), writable_databases=("sales",))
    assert 0 < len(offered(writes)) - len(offered(reads)) <= 200


READING = (
    "## Databases\nYou can read: hr, sales. Look at get_schema first, which names the SQL "
    "dialect. Filter and aggregate in SQL; long results come as a CSV file."
)


def _segment(agent: AgentSpec) -> str:
    text = toolset_for(agent).system_prompt(agent, NOON)
    start = text.index("## Databases")
    return text[start : text.index("\n\n", start)]
