"""MCP servers over REST: visible servers, and the permission to accept tools."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.features.mcp_client.actions import (
    accept_tools,
    check_server,
    save_server,
    store_listing,
)
from agents.features.mcp_client.connections import without_telling
from agents.features.mcp_client.models import McpServer
from agents.features.mcp_client.protocol.definitions import read_listing
from agents.models import Agent
from agents.services.agent_definitions.actions import save_agent
from agents.services.agent_definitions.files import carry_out_import, export_agent
from agents.services.errors import InvalidRequest
from tests.agents.api.rows import client_for, make_agent, make_user, post, problem_of

pytestmark = pytest.mark.django_db

SECRET = "sk-hunter2-0123456789"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
URL = "/api/v1/mcp-servers"


@pytest.fixture
def root() -> User:
    return make_user("root", superuser=True)


def server(root: User, slug: str, **fields: Any) -> McpServer:
    row = McpServer(slug=slug, command="mcp-server", **fields)
    return save_server(row, by=root, secrets={"TOKEN": SECRET})


def found(row: McpServer, root: User, description: str = "Shows it.") -> McpServer:
    said = [{"name": "log", "description": description, "inputSchema": SCHEMA}]
    return store_listing(row.pk, read_listing(row.slug, said), by=root)


@pytest.fixture
def git(root: User) -> McpServer:
    row = found(server(root, "git"), root)
    return accept_tools(row.pk, digest=row.found_digest, effects={"log": "read"}, by=root)


def test_people_see_the_servers_of_their_agents_and_not_how_they_are_reached(
    root: User, git: McpServer
) -> None:
    server(root, "other")
    ann = make_user("ann")
    make_agent("coder", owner=ann, everyone=False, mcp_servers=["git"])
    make_agent("hidden", owner=root, everyone=False, mcp_servers=["git", "other"])
    answer = client_for(ann).get(URL)
    (seen,) = answer.json()["results"]
    assert (seen["slug"], seen["agents"]) == ("git", ["coder"])
    log = {"name": "mcp__git__log", "tool": "log", "description": "Shows it.", "effect": "read"}
    assert seen["tools"] == [log]
    one = client_for(ann).get(f"{URL}/{git.pk}").json()
    assert (one["reached"], one["found"]) == (None, None)
    assert client_for(make_user("eve")).get(URL).json()["results"] == []
    hidden = McpServer.objects.get(slug="other")
    problem_of(client_for(ann).get(f"{URL}/{hidden.pk}"))
    for_root = client_for(root).get(f"{URL}/{git.pk}")
    assert for_root.json()["reached"]["secret_names"] == ["TOKEN"]
    assert SECRET not in for_root.content.decode()


def test_accepting_by_digest(root: User, git: McpServer) -> None:
    row = found(git, root, "Shows it\u200b.")
    client = client_for(root)
    shown = client.get(f"{URL}/{git.pk}").json()["found"]
    (difference,) = shown["differences"]
    assert (difference["tool"], difference["change"]) == ("log", "changed")
    assert "Shows it\u200b." in difference["after"]
    url = f"{URL}/{git.pk}/accept"
    tools = [{"tool": "log"}]
    assert post(client, url, {"digest": "0" * 64, "tools": tools}).status_code == 409
    assert post(client, url, {"digest": row.found_digest, "tools": tools * 2}).status_code == 400
    wrong = {"digest": row.found_digest, "tools": [{"tool": "push"}]}
    assert post(client, url, wrong).status_code == 400
    answer = post(client, url, {"digest": shown["digest"], "tools": tools})
    assert answer.status_code == 200, answer.content
    assert answer.json()["tools"][0]["effect"] == "external"
    assert post(client, url, {"digest": shown["digest"], "tools": tools}).status_code == 409


def test_people_without_the_permission_are_refused(root: User, git: McpServer) -> None:
    row = found(git, root)
    body = {"digest": row.found_digest, "tools": [{"tool": "log"}]}
    ann = make_user("ann")
    make_agent("coder", owner=ann, mcp_servers=["git"])
    assert post(client_for(ann), f"{URL}/{git.pk}/accept", body).status_code == 403
    assert post(client_for(ann), f"{URL}/{git.pk}/fetch", {}).status_code == 403
    narrow = client_for(root, "read", "run", "approve")
    assert post(narrow, f"{URL}/{git.pk}/accept", body).status_code == 403
    assert post(narrow, f"{URL}/{git.pk}/fetch", {}).status_code == 403
    fetcher = make_user("fetcher", "configure_mcpserver")
    assert post(client_for(fetcher), f"{URL}/{git.pk}/accept", body).status_code == 403
    git.refresh_from_db()
    assert git.tools[0]["effect"] == "read"


def test_a_server_that_cannot_be_reached_is_a_conflict(root: User, git: McpServer) -> None:
    McpServer.objects.update(toolbox="none-such")
    problem = problem_of(post(client_for(root), f"{URL}/{git.pk}/fetch", {}))
    assert problem["status"] == 409
    assert "none-such" in problem["detail"]


def test_giving_a_server_to_an_agent_needs_its_permission_and_goes_by_yaml(
    root: User, git: McpServer
) -> None:
    entries = ["git", {"server": "other", "tools": ["log"]}]
    server(root, "other")
    agent = make_agent("coder", owner=root, mcp_servers=entries)
    text = export_agent(agent, by=root)
    text = text.replace("slug: coder", "slug: copy") + "interrupt_on:\n  mcp__git__log: true\n"
    copy, _ = carry_out_import(text, by=root, known_tools=())
    assert copy.definition["mcp_servers"] == entries
    assert json.loads(json.dumps(copy.versions.get().spec["mcp_tools"]))[0]["server"] == "git"
    maker = make_user("maker", "add_agent", "change_agent", "view_agent")
    body = {"yaml": text.replace("slug: copy", "slug: mine")}
    refused = post(client_for(maker), "/api/v1/agents/import", body)
    assert "mcp_servers needs vel_mcp_client.configure_mcpserver" in problem_of(refused)["detail"]
    wrong = text.replace("server: other", "server: nowhere")
    answer = post(client_for(root), "/api/v1/agents/import", {"yaml": wrong})
    assert "mcp_servers.1: there is no MCP server 'nowhere'" in problem_of(answer)["detail"]
    for entry in (7, {"server": "git"}, {"server": "git", "tools": "log"}, "git"):
        agent = Agent.objects.get(slug="coder")
        agent.definition = {"mcp_servers": ["git", entry]}
        with pytest.raises(Exception, match=r"mcp_servers\.1: "):
            save_agent(agent)


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"command": "sh", "arguments": ["-c", "env"]},
        {"arguments": ["--tell"]},
        {"toolbox": "mine"},
        {"network": "allowlist"},
        {"allowed_hosts": ["evil.example"]},
        {"transport": "http", "command": "", "url": "https://evil.example/mcp"},
    ],
)
def test_stored_secrets_do_not_go_to_another_server_or_program(
    root: User, git: McpServer, elsewhere: dict[str, Any]
) -> None:
    """A user who may configure servers must not be able to read a stored secret."""
    by = make_user("config", "configure_mcpserver")
    row = McpServer.objects.get(pk=git.pk)
    row.description = "Another text"
    save_server(row, by=by)
    for name, value in elsewhere.items():
        setattr(row, name, value)
    for attempt in (lambda: check_server(row, None), lambda: save_server(row, by=by)):
        with pytest.raises(InvalidRequest, match="secrets: Enter the secrets again"):
            attempt()
    assert McpServer.objects.get(pk=git.pk).command == "mcp-server"
    save_server(row, by=by, secrets={"TOKEN": "sk-known-to-them"})


def test_stored_secrets_do_not_go_to_another_url(root: User) -> None:
    row = McpServer(slug="web", transport="http", url="https://good.example/mcp")
    save_server(row, by=root, secrets={"Authorization": f"Bearer {SECRET}"})
    for url in ("https://evil.example/mcp", "https://good.example:444/mcp"):
        row.url = url
        with pytest.raises(InvalidRequest, match="the url is another"):
            save_server(row, by=root)


def test_a_list_that_repeats_a_secret_is_not_kept(root: User, git: McpServer) -> None:
    schema = {"type": "object", "properties": {"a": {"default": f"x{SECRET}"}}}
    said = [
        {"name": "good", "description": "Fine.", "inputSchema": SCHEMA},
        {"name": "one", "description": f"Uses {SECRET}.", "inputSchema": SCHEMA},
        {"name": SECRET, "description": "x", "inputSchema": SCHEMA},
        {"name": "three", "description": "x", "inputSchema": schema},
    ]
    listing = without_telling(read_listing("git", said), git)
    assert [tool.name for tool in listing.tools] == ["good"]
    assert len(listing.refused) == 3
    assert SECRET not in repr(listing)
