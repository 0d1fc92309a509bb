"""Databases by REST: definitions are for operators, and URLs go in and never come out."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

import pytest

from agents.features.databases.actions import save_own_connection, seal_url
from agents.features.databases.models import DatabaseConnection
from agents.models import AuditEntry
from agents.services.agent_definitions.actions import save_agent
from tests.agents.api.managed.rows import operator, patch, post
from tests.agents.api.rows import client_for, make_agent, make_user, problem_of

pytestmark = pytest.mark.django_db
URL = "/api/v1/databases"
ALL = (
    "view_databaseconnection",
    "add_databaseconnection",
    "change_databaseconnection",
    "delete_databaseconnection",
    "configure_database",
)
SECRET = "hunter2-secret"
POSTGRES = f"postgresql://reader:{SECRET}@127.0.0.1:5432/shop"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "shop.sqlite3"
    sqlite3.connect(path).execute("CREATE TABLE orders (id INTEGER)").connection.close()
    return f"sqlite:///{path}"


def test_a_program_defines_tests_changes_and_removes_a_database(file: str) -> None:
    client = operator(*ALL)
    made = post(client, URL, {"name": "shop", "url": file, "hidden_columns": ["users.email"]})
    assert made.status_code == 201, made.content
    where, row = made["Location"], made.json()
    assert (row["name"], row["dialect"], row["allow_writes"]) == ("shop", "sqlite", False)
    assert row["hidden_columns"] == ["users.email"]
    assert row["max_rows"] == 10_000
    assert client.get(where).json() == row
    assert post(client, f"{where}/test").status_code == 200
    changed = patch(client, where, {"max_rows": 5})
    assert (changed.json()["max_rows"], changed.json()["address"]) == (5, row["address"])
    assert client.delete(where).status_code == 204
    assert not DatabaseConnection.objects.exists()


def test_the_url_is_in_no_answer_no_log_and_no_history(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    client = operator(*ALL)
    made = post(client, URL, {"name": "shop", "url": POSTGRES})
    assert made.status_code == 201, made.content
    where = made["Location"]
    answers = [
        made,
        client.get(where),
        client.get(URL),
        patch(client, where, {"max_rows": 7}),
        patch(client, where, {"url": f"nonsense://{SECRET}"}),
        patch(client, where, {"url": POSTGRES, "max_rows": 0}),
        post(client, f"{where}/test"),
    ]
    assert [each.status_code for each in answers] == [201, 200, 200, 200, 400, 400, 409]
    for each in answers:
        assert SECRET not in each.content.decode()
    assert SECRET not in caplog.text
    for entry in AuditEntry.objects.all():
        assert SECRET not in str(entry.changes)
    assert client.get(where).json()["max_rows"] == 7


def test_writable_databases_need_the_further_permission(file: str) -> None:
    client = operator(*ALL)
    refused = post(client, URL, {"name": "shop", "url": file, "allow_writes": True})
    assert (refused.status_code, problem_of(refused)["code"]) == (403, "field_not_allowed")
    writer = operator(*ALL, "allow_database_writes", name="wanda")
    made = post(writer, URL, {"name": "shop", "url": file, "allow_writes": True})
    assert made.status_code == 201, made.content
    assert patch(client, made["Location"], {"max_rows": 2}).status_code == 403
    assert patch(client, made["Location"], {"url": file}).status_code == 403
    row = DatabaseConnection.objects.get()
    assert (row.allow_writes, row.max_rows) == (True, 10_000)


def test_the_users_of_an_agent_see_its_database_and_change_nothing(file: str) -> None:
    made = post(operator(*ALL), URL, {"name": "shop", "url": file})
    agent = make_agent()
    save_agent(agent, related={"databases": [DatabaseConnection.objects.get()]})
    ann = client_for(make_user("ann"))
    assert [row["name"] for row in ann.get(URL).json()["results"]] == ["shop"]
    assert ann.get(made["Location"]).status_code == 403
    assert patch(ann, made["Location"], {"max_rows": 1}).status_code == 403
    assert ann.delete(made["Location"]).status_code == 403
    assert post(ann, URL, {"name": "mine", "url": file}).status_code == 403
    assert post(ann, f"{made['Location']}/test").status_code == 403
    assert DatabaseConnection.objects.get().max_rows == 10_000


def test_a_token_that_only_reads_defines_nothing(file: str) -> None:
    client = operator(*ALL, scopes=("read",))
    refused = post(client, URL, {"name": "shop", "url": file})
    assert problem_of(refused)["code"] == "insufficient_scope"


def test_a_connection_of_a_command_line_cannot_be_changed_by_others(file: str) -> None:
    ann = make_user("ann")
    row = save_own_connection(make_agent(owner=ann), "own", seal_url(file))
    client = operator(*ALL)
    refused = patch(client, f"{URL}/{row.pk}", {"url": POSTGRES})
    assert refused.status_code == 403
    # Without the permission to configure, it does not even appear.
    viewer = operator("view_databaseconnection", name="vic")
    assert viewer.get(f"{URL}/{row.pk}").status_code == 404
