"""Databases in the admin: define them, give them to agents, and keep passwords secret."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.views.debug import SafeExceptionReporterFilter

from agents.features.databases.models import DatabaseConnection
from agents.models import Agent
from agents.secret_text import SecretText
from agents.services.agent_definitions.actions import save_agent
from tests.agents.admin import rows
from tests.agents.admin.pages import act, client_of, list_url, messages_of, page_url, text_of
from tests.agents.admin.test_agents import form as agent_form

pytestmark = pytest.mark.django_db

ADD = "admin:vel_databases_databaseconnection_add"
URL = "postgresql://reader:hunter2@db.example.org/shop"
EDIT = ("view_databaseconnection", "change_databaseconnection", "add_databaseconnection")


def form(**typed: Any) -> dict[str, Any]:
    return {
        "name": "shop",
        "description": "What was sold.",
        "new_url": URL,
        "statement_seconds": "30",
        "max_rows": "100",
        "max_bytes": "100000",
        "hidden_columns": '["users.email"]',
        **typed,
    }


def stored(name: str = "shop", url: str = URL) -> DatabaseConnection:
    return DatabaseConnection.objects.create(name=name, url=SecretText.seal(url))


def spec_of(agent: Agent) -> dict[str, Any]:
    """Return the agent's spec in its latest version."""
    return dict(agent.versions.get(number=agent.version).spec)


def assert_no_secret(response: Any) -> str:
    text = text_of(response)
    assert "hunter2" not in text
    for row in DatabaseConnection.objects.all():
        assert row.url._token[:16] not in text
    return text


def test_a_connection_is_defined_and_its_url_never_shown_again():
    root = rows.superuser()
    client = client_of(root)

    response = client.post(reverse(ADD), form(), follow=True)

    row = DatabaseConnection.objects.get()
    assert row.url.reveal() == "postgresql+psycopg://reader:hunter2@db.example.org/shop"
    assert (row.hidden_columns, row.max_rows, row.created_by) == (["users.email"], 100, root)
    assert "reader@db.example.org:5432/shop" in assert_no_secret(response)
    for page in (page_url(row), list_url(DatabaseConnection)):
        assert "reader@db.example.org:5432/shop" in assert_no_secret(client.get(page))
    history = reverse("admin:vel_databases_databaseconnection_history", args=[row.pk])
    assert_no_secret(client.get(history))


def test_a_change_without_a_url_keeps_it_and_the_log_names_fields_alone():
    row = stored()
    client = client_of(rows.superuser())
    client.post(page_url(row), form(new_url="", max_rows="7"))
    row.refresh_from_db()
    assert (row.max_rows, row.name) == (7, "shop")
    assert row.url.reveal() == URL
    client.post(page_url(row), form(new_url=URL.replace("hunter2", "hunter23"), name="renamed"))
    row.refresh_from_db()
    assert "hunter23" in row.url.reveal()
    assert row.name == "shop"  # runs use this name
    logged = [entry.change_message for entry in LogEntry.objects.all()]
    assert any("URL" in message for message in logged)
    assert not any("hunter" in message or "example.org" in message for message in logged)


@pytest.mark.parametrize(
    ("typed", "field", "says"),
    [
        ({"new_url": URL + "?options=-c%20hunter2"}, "new_url", "parameters"),
        ({"new_url": "postgresql://reader:hunter2@a b/c"}, "new_url", ""),
        ({"new_url": ""}, "new_url", "Enter the URL"),
        ({"max_rows": "0"}, "max_rows", "greater than"),
        ({"name": "no name"}, "name", "letters"),
        ({"hidden_columns": "users"}, "hidden_columns", "JSON"),
        ({"hidden_columns": '["a.b.c.d"]'}, "hidden_columns", "table.column"),
        ({"statement_seconds": "NaN"}, "statement_seconds", ""),
    ],
)
def test_a_form_with_an_error_comes_back_without_the_url(typed, field, says):
    response = client_of(rows.superuser()).post(reverse(ADD), form(**typed))
    assert response.status_code == 200
    errors = response.context["adminform"].form.errors
    assert list(errors) == [field]
    assert says in str(errors[field])
    assert_no_secret(response)
    assert not DatabaseConnection.objects.exists()


def test_a_taken_name_is_an_error_of_its_field():
    stored()
    response = client_of(rows.superuser()).post(reverse(ADD), form())
    assert "choose another" in str(response.context["adminform"].form.errors["name"])
    assert_no_secret(response)


def test_error_reports_hide_typed_values(monkeypatch, settings):
    """A failure while saving must not put the form's secrets into Django's mails or logs."""
    settings.DEBUG = False

    def fail(*arguments: Any, **keywords: Any) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(DatabaseConnection, "save", fail)
    client = client_of(rows.superuser())
    client.raise_request_exception = False
    response = client.post(reverse(ADD), form())
    assert response.status_code == 500
    assert "hunter2" not in text_of(response)
    request = response.wsgi_request
    shown = SafeExceptionReporterFilter().get_post_parameters(request)
    assert shown["name"] == "shop"
    assert "hunter2" not in str(shown)


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "permissions",
    [
        ("view_databaseconnection",),
        EDIT,
        (*EDIT, "delete_databaseconnection", "change_agent", "configure_sandbox"),
    ],
)
def test_without_the_permission_connections_are_only_read(permissions):
    row = stored()
    client = client_of(rows.staff("editor", *permissions))

    page = assert_no_secret(client.get(page_url(row)))
    assert 'name="new_url"' not in page
    assert 'name="max_rows"' not in page
    assert client.get(reverse(ADD)).status_code == 403
    assert client.post(reverse(ADD), form(name="mine")).status_code == 403
    assert client.post(page_url(row), form(max_rows="7")).status_code == 403
    delete = reverse("admin:vel_databases_databaseconnection_delete", args=[row.pk])
    assert client.post(delete, {"post": "yes"}).status_code == 403
    act(client, "test_selected", row)
    act(client, "delete_selected", row, post="yes")
    after = DatabaseConnection.objects.get()
    assert (after.max_rows, after.url.reveal()) == (10_000, URL)


def test_with_the_permission_alone_nothing_is_open():
    row = stored()
    client = client_of(rows.staff("editor", "configure_database"))
    assert client.get(page_url(row)).status_code == 403
    assert client.post(reverse(ADD), form(name="mine")).status_code == 403


def test_lists_cannot_be_filtered_by_the_url():
    stored()
    client = client_of(rows.superuser())
    for query in ("url__startswith=g", "url__regex=^g", "url=x", "q=gAAAA"):
        response = client.get(f"{list_url(DatabaseConnection)}?{query}", follow=True)
        assert response.status_code in (200, 400)
        assert_no_secret(response)
    through = f"{list_url(Agent)}?databases__url__startswith=gAAAA"
    assert client.get(through, follow=True).status_code in (200, 400)


def test_giving_a_database_is_one_version():
    agent, row = rows.agent("helper", name="Helper"), stored()
    client = client_of(rows.superuser())

    client.post(page_url(agent), agent_form(databases=[row.pk], max_turns=7))

    agent.refresh_from_db()
    assert agent.version == 2
    spec = spec_of(agent)
    assert (spec["databases"], spec["max_turns"]) == (["shop"], 7)
    assert "shop" in assert_no_secret(client.get(page_url(agent)))
    listed = assert_no_secret(client.get(list_url(DatabaseConnection)))
    assert page_url(agent) in listed

    client.post(page_url(agent), agent_form(databases=[], max_turns=7))
    agent.refresh_from_db()
    assert (agent.version, agent.databases.count()) == (3, 0)
    assert "databases" not in spec_of(agent)


@pytest.mark.slow
def test_an_editor_without_the_permission_for_databases_only_sees_them():
    agent, row, other = rows.agent("helper", name="Helper"), stored(), stored("stock")
    save_agent(agent, related={"databases": [row]})
    client = client_of(
        rows.staff("editor", "change_agent", "configure_sandbox", "configure_approval", *EDIT)
    )

    page = assert_no_secret(client.get(page_url(agent)))
    assert 'name="databases"' not in page
    assert "shop" in page
    client.post(page_url(agent), agent_form(databases=[other.pk], max_turns=7))
    client.post(page_url(agent), agent_form(databases=[], max_turns=8))

    agent.refresh_from_db()
    assert agent.max_turns == 8
    assert list(agent.databases.all()) == [row]
    assert spec_of(agent)["databases"] == ["shop"]


@pytest.mark.parametrize("may", [False, True])
def test_a_duplicate_has_the_databases_that_its_maker_could_give(may):
    agent = save_agent(rows.agent("helper"), related={"databases": [stored()]})
    extra = ["configure_database"] if may else []
    client = client_of(rows.staff("editor", "add_agent", "view_agent", *extra))
    response = act(client, "duplicate_selected", agent)
    copy = Agent.objects.exclude(pk=agent.pk).get()
    assert copy.databases.exists() is may
    assert copy.versions.get().spec.get("databases", []) == ["shop"] * may
    assert ("databases" in messages_of(response)[0]) is not may


@pytest.mark.slow
def test_somebodys_own_is_not_offered_and_not_changed():
    ada = rows.user("ada")
    agent = rows.agent("cli-1", owner=ada)
    own = DatabaseConnection.objects.create(
        name="private", url=SecretText.seal(URL), agent=agent, owner=ada
    )
    client = client_of(rows.superuser())
    other = rows.agent("helper", name="Helper")
    assert 'value="' + own.pk not in text_of(client.get(page_url(other)))
    response = client.post(page_url(other), agent_form(databases=[own.pk]))
    assert "databases" in response.context["adminform"].form.errors
    assert client.post(page_url(own), form()).status_code == 403
    reader = client_of(rows.staff("reader", "view_databaseconnection"))
    assert "private" not in text_of(reader.get(list_url(DatabaseConnection)))


def test_testing_a_connection_runs_a_statement(tmp_path: Path, caplog):
    caplog.set_level(logging.DEBUG)
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database, database:
        database.execute("CREATE TABLE t (x)")
    good = stored("good", f"sqlite:///{tmp_path}/shop.db")
    away = stored("away", "postgresql://reader:hunter2@127.0.0.1:9/shop?connect_timeout=2")
    gone = stored("gone", f"sqlite:///{tmp_path}/nothing.db")
    client = client_of(rows.superuser())

    response = act(client, "test_selected", good, away, gone)

    said = {message.partition(":")[0]: message for message in messages_of(response)}
    assert "went through" in said["good"]
    assert "went through" not in said["away"]
    assert "does not exist" in said["gone"]
    assert_no_secret(response)
    assert "hunter2" not in caplog.text


def test_a_lost_key_is_a_line_and_not_a_broken_page(settings):
    row = stored()
    settings.VEL = {**settings.VEL, "SECRET_KEYS": ("a key of thirty-two letters 012345",)}
    client = client_of(rows.superuser())
    for page in (page_url(row), list_url(DatabaseConnection)):
        assert "restore the key" in assert_no_secret(client.get(page))
    client.post(page_url(row), form())
    row.refresh_from_db()
    assert "hunter2" in row.url.reveal()


def test_the_list_of_agents_needs_no_further_queries_for_many_databases():
    client = client_of(rows.superuser())

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            client.get(list_url(Agent))
        return len(captured)

    rows.agent("first")
    few = queries()
    for number in range(5):
        save_agent(rows.agent(f"agent-{number}"), related={"databases": [stored(f"shop-{number}")]})
    assert queries() == few


def test_pages_and_rest_show_only_names():
    row = stored()
    save_agent(rows.agent("helper"), related={"databases": [row]})
    ada = rows.user("ada")
    run = rows.run(ada, slug="helper")
    client = Client()
    client.force_login(ada)
    for page in ("/", f"/runs/{run.pk}/", "/api/v1/agents", f"/api/v1/runs/{run.pk}"):
        response = client.get(page, follow=True)
        assert response.status_code == 200, page
        assert "example.org" not in text_of(response), page
        assert "hunter2" not in text_of(response), page


def test_writing_needs_its_own_permission():
    row = stored()
    editor = rows.staff("editor", *EDIT, "configure_database")
    client = client_of(editor)
    assert 'name="allow_writes"' not in assert_no_secret(client.get(page_url(row)))
    client.post(page_url(row), form(new_url="", max_rows="7", allow_writes="on"))
    row.refresh_from_db()
    assert (row.max_rows, row.allow_writes) == (7, False)

    allowed = client_of(rows.staff("writer", *EDIT, "configure_database", "allow_database_writes"))
    allowed.post(page_url(row), form(new_url="", allow_writes="on"))
    row.refresh_from_db()
    assert (row.allow_writes, row.allow_routines) == (True, False)
    # Now the other cannot change its address, either.
    url = "postgresql://reader:hunter2@db.example.org/other"
    assert client.post(page_url(row), form(new_url=url)).status_code == 403
    row.refresh_from_db()
    assert row.url.reveal().endswith("/shop")


def test_a_connection_without_write_mode_is_marked(tmp_path: Path):
    (tmp_path / "x.duckdb").write_bytes(b"")
    client = client_of(rows.superuser())
    typed = form(new_url=f"duckdb:///{tmp_path}/x.duckdb", hidden_columns="[]", allow_writes="on")
    page = text_of(client.post(reverse(ADD), typed))
    assert "Only PostgreSQL and SQLite databases can be written." in page
    typed = form(new_url=f"duckdb:///{tmp_path}/x.duckdb", hidden_columns='["users.email"]')
    assert "DuckDB has no way to hide columns." in text_of(client.post(reverse(ADD), typed))
    typed = form(new_url="mysql://r@db.example.org/shop", hidden_columns="[]", allow_writes="on")
    page = text_of(client.post(reverse(ADD), typed))
    assert "Only PostgreSQL and SQLite databases can be written." in page
    assert not DatabaseConnection.objects.exists()
