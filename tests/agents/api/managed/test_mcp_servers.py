"""MCP servers by REST: their secrets go in and never come out."""

from __future__ import annotations

import pytest

from agents.features.mcp_client.models import McpServer
from agents.models import AuditEntry
from tests.agents.api.managed.rows import operator, patch, post
from tests.agents.api.rows import client_for, make_agent, make_user, problem_of

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
URL = "/api/v1/mcp-servers"
ALL = (
    "view_mcpserver",
    "add_mcpserver",
    "change_mcpserver",
    "delete_mcpserver",
    "configure_mcpserver",
)
SECRET = "hunter2-secret"
SERVER = {
    "slug": "time",
    "transport": "stdio",
    "command": "mcp-server-time",
    "arguments": ["--local-timezone", "UTC"],
    "secrets": {"TOKEN": SECRET},
}


def test_a_program_defines_changes_and_removes_a_server() -> None:
    client = operator(*ALL)
    made = post(client, URL, SERVER)
    assert made.status_code == 201, made.content
    where, row = made["Location"], made.json()
    assert row["reached"]["arguments"] == ["--local-timezone", "UTC"]
    assert row["reached"]["secret_names"] == ["TOKEN"]
    read = client.get(where)
    assert (read.json(), read["ETag"]) == (row, made["ETag"])
    changed = patch(client, where, {"enabled": False}, **{"If-Match": read["ETag"]})
    assert (changed.status_code, changed.json()["enabled"]) == (200, False)
    assert changed.json()["reached"]["secret_names"] == ["TOKEN"]
    assert patch(client, where, {"enabled": True}, **{"If-Match": read["ETag"]}).status_code == 412
    emptied = patch(client, where, {"secrets": {}})
    assert emptied.json()["reached"]["secret_names"] == []
    assert client.delete(where).status_code == 204
    assert not McpServer.objects.exists()


def test_secrets_are_in_no_answer_and_no_history() -> None:
    client = operator(*ALL)
    made = post(client, URL, SERVER)
    where = made["Location"]
    answers = [
        made,
        client.get(where),
        client.get(URL),
        patch(client, where, {"secrets": {"TOKEN": SECRET}, "call_seconds": 0}),
        patch(client, where, {"secrets": {"NOT A NAME": SECRET}}),
        patch(client, where, {"secrets": {"TOKEN": [SECRET]}}),
    ]
    assert [each.status_code for each in answers] == [201, 200, 200, 400, 400, 400]
    for each in answers:
        assert SECRET not in each.content.decode()
    assert SECRET not in str(list(AuditEntry.objects.values_list("changes", flat=True)))
    assert SECRET not in str(vars(McpServer.objects.get()))


def test_stored_secrets_do_not_go_to_another_program() -> None:
    """A person who may change a server must not read its secrets with another program."""
    client = operator(*ALL)
    where = post(client, URL, SERVER)["Location"]
    refused = patch(client, where, {"command": "env"})
    assert refused.status_code == 400, refused.content
    assert McpServer.objects.get().command == "mcp-server-time"


def test_users_of_a_server_cannot_change_it() -> None:
    where = post(operator(*ALL), URL, {**SERVER, "secrets": {}})["Location"]
    make_agent()
    ann = client_for(make_user("ann"))
    assert post(ann, URL, SERVER).status_code == 403
    for refused in (patch(ann, where, {"enabled": False}), ann.delete(where)):
        assert refused.status_code == 403
    # Permissions of the model without that to configure servers.
    clerk = operator("view_mcpserver", "change_mcpserver", "delete_mcpserver", name="cleo")
    assert patch(clerk, where, {"enabled": False}).status_code == 403
    assert clerk.delete(where).status_code == 403
    assert McpServer.objects.get().enabled


def test_a_server_of_an_agent_is_not_deleted() -> None:
    client = operator(*ALL)
    where = post(client, URL, {**SERVER, "secrets": {}})["Location"]
    make_agent(mcp_servers=["time"])
    refused = client.delete(where)
    assert (refused.status_code, problem_of(refused)["code"]) == (409, "in_use")
    assert patch(client, where, {"slug": "clock"}).status_code == 403
