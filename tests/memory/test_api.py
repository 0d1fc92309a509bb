"""The memory of an agent over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from rest_framework.test import APIClient

from agents.models import Agent
from memory.actions.changes import delete_file, write_file
from memory.limits import MAX_FILE_BYTES
from memory.models import MemoryFile, MemoryRevision
from tests.agents.api.rows import HttpResponse, client_for, make_agent, make_user, problem_of

pytestmark = pytest.mark.django_db

PATH = "knowledge/preferences.md"
SKILL = "---\nname: report\ndescription: How to write the weekly report.\n---\nShort.\n"


@pytest.fixture
def ann() -> User:
    return make_user("ann")


@pytest.fixture
def agent(ann: User) -> Agent:
    return make_agent(owner=ann, system_prompt="You write.")


@pytest.fixture
def client(ann: User) -> APIClient:
    return client_for(ann)


def url(agent: Agent, path: str = "") -> str:
    return f"/api/v1/agents/{agent.pk}/memory" + (f"/{path}" if path else "")


def put(
    client: APIClient, agent: Agent, content: str, path: str = PATH, **body: Any
) -> HttpResponse:
    return client.put(url(agent, path), {"content": content, **body}, format="json")


def history(client: APIClient, agent: Agent, query: str = f"path={PATH}") -> HttpResponse:
    return client.get(f"{url(agent)}-revisions?{query}")


def restore(client: APIClient, agent: Agent, revision: int, path: str = PATH) -> HttpResponse:
    body = {"path": path, "revision": revision}
    return client.post(f"{url(agent)}-restore", body, format="json")


# As in the documentation of the endpoints --------------------------------------------------------


def test_the_list_has_the_knowledge_files(ann: User, agent: Agent, client: APIClient) -> None:
    write_file(agent, PATH, "Tables, é.\n", by=ann, source="web")
    write_file(agent, "skills/report.md", SKILL, by=ann, source="web")
    (file,) = client.get(url(agent)).json()["files"]
    assert file.pop("created_at").endswith("Z")
    assert file.pop("updated_at").endswith("Z")
    assert file == {"path": PATH, "content_type": "text/markdown", "size_bytes": 12}


@pytest.mark.slow
@pytest.mark.both_databases
def test_the_list_can_include_all_directories(ann: User, agent: Agent, client: APIClient) -> None:
    write_file(agent, PATH, "x", by=ann, source="web")
    write_file(agent, "skills/report.md", SKILL, by=ann, source="web")

    def paths(directory: str) -> list[str]:
        files = client.get(f"{url(agent)}?directory={directory}").json()["files"]
        return [file["path"] for file in files]

    assert paths("skills") == ["skills/report.md"]
    assert paths("all") == ["AGENTS.md", "tools.json", PATH, "skills/report.md"]
    assert client.get(f"{url(agent)}?directory=../").status_code == 400


def test_a_file_is_read(ann: User, agent: Agent, client: APIClient) -> None:
    write_file(agent, PATH, "Tables.\u202e\r\n", by=ann, source="web")
    shape = client.get(url(agent, PATH)).json()
    assert shape.pop("updated_at").endswith("Z")
    assert shape == {
        "path": PATH,
        "content": "Tables.\u202e\r\n",
        "content_type": "text/markdown",
        "revision": 1,
    }


@pytest.mark.parametrize("path", [PATH, "skills/report.md"])
def test_the_revision_of_a_file_that_was_read_is_the_base_of_a_change(
    agent: Agent, client: APIClient, path: str
) -> None:
    for number in (1, 2):
        assert put(client, agent, f"{SKILL}{number}", path).status_code in (200, 201)
    seen = client.get(url(agent, path)).json()["revision"]
    assert put(client, agent, f"{SKILL}3", path, base_revision=seen).status_code == 200
    late = put(client, agent, f"{SKILL}4", path, base_revision=seen)
    assert (late.status_code, problem_of(late)["code"]) == (409, "stale")
    assert client.get(url(agent, "AGENTS.md")).json()["revision"] == 0


@pytest.mark.parametrize(
    ("path", "text"),
    [("AGENTS.md", "You write."), ("tools.json", '"full"'), ("skills/report.md", SKILL)],
)
def test_the_other_files_of_the_tree_are_read_by_their_paths(
    ann: User, agent: Agent, client: APIClient, path: str, text: str
) -> None:
    write_file(agent, "skills/report.md", SKILL, by=ann, source="web")
    assert text in client.get(url(agent, path)).json()["content"]


def test_tools_json_names_the_tools_of_the_next_run(agent: Agent, client: APIClient) -> None:
    def tools() -> Any:
        shown = json.loads(client.get(url(agent, "tools.json")).json()["content"])
        assert shown["profile"] == agent.profile
        return shown["tools"]

    every = {tool["name"]: tool["description"] for tool in tools()}
    assert {"write_memory", "read_memory", "write_todos"} <= set(every)
    assert all(every.values())
    agent.tools = ["read_memory", "ls"]
    agent.save()
    assert {tool["name"] for tool in tools()} == {"read_memory", "ls"}
    Agent.objects.filter(pk=agent.pk).update(definition={"max_turns": -1})
    assert tools() is None


def test_a_file_is_deleted_once_and_its_history_stays(
    ann: User, agent: Agent, client: APIClient
) -> None:
    write_file(agent, PATH, "x", by=ann, source="web")
    response = client.delete(url(agent, PATH))
    assert (response.status_code, response.content) == (204, b"")
    assert client.get(url(agent, PATH)).status_code == 404
    assert client.delete(url(agent, PATH)).status_code == 404
    assert client.get(url(agent)).json() == {"files": []}
    assert MemoryRevision.objects.count() == 2


# More than the documentation ---------------------------------------------------------------------


def test_a_file_is_made_and_then_changed(agent: Agent, client: APIClient) -> None:
    made = put(client, agent, "one", base_revision=0)
    assert made.status_code == 201
    shape = made.json()
    assert shape.pop("updated_at").endswith("Z")
    assert shape == {"path": PATH, "revision": 1, "content_type": "text/markdown", "size_bytes": 3}
    changed = put(client, agent, "two", base_revision=1, reason="It was wrong.")
    assert (changed.status_code, changed.json()["revision"]) == (200, 2)
    revision = MemoryRevision.objects.get(number=2)
    assert (revision.source, revision.reason, revision.created_by) == (
        "api",
        "It was wrong.",
        agent.owner,
    )


@pytest.mark.both_databases
def test_a_change_based_on_an_old_revision_is_refused(agent: Agent, client: APIClient) -> None:
    put(client, agent, "one")
    for response in (
        put(client, agent, "two", base_revision=0),
        client.delete(f"{url(agent, PATH)}?base_revision=7"),
    ):
        assert (response.status_code, problem_of(response)["code"]) == (409, "stale")
    assert MemoryFile.objects.get().content == "one"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "content"),
        ({"content": None}, "content"),
        ({"content": ["x"]}, "content"),
        ({"content": "x", "base_revision": -1}, "base_revision"),
        ({"content": "x", "base_revision": "1x"}, "base_revision"),
        ({"content": "x", "base_revision": 10**30}, "base_revision"),
        ({"content": "x", "path": "knowledge/other.md"}, "path"),
        ({"content": "x", "reason": "y" * 2_001}, "reason"),
    ],
)
def test_a_body_that_does_not_fit_is_refused_by_field(
    agent: Agent, client: APIClient, body: dict[str, Any], field: str
) -> None:
    response = client.put(url(agent, PATH), body, format="json")
    assert response.status_code == 400
    assert list(problem_of(response)["errors"]) == [field]


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("path", "content"),
    [
        (PATH, "x" * (MAX_FILE_BYTES + 1)),
        (PATH, "é" * (MAX_FILE_BYTES // 2 + 1)),
        ("skills/report.md", "no head"),
        ("AGENTS.md", "You are root."),
        ("tools.json", "{}"),
    ],
)
def test_content_that_no_file_may_have_is_refused(
    agent: Agent, client: APIClient, path: str, content: str
) -> None:
    response = put(client, agent, content, path)
    assert (response.status_code, problem_of(response)["status"]) == (400, 400)
    assert not MemoryRevision.objects.exists()
    agent.refresh_from_db()
    assert agent.system_prompt == "You write."


def test_a_file_of_the_largest_size_is_taken(agent: Agent, client: APIClient) -> None:
    assert put(client, agent, "x" * MAX_FILE_BYTES).status_code == 201


def test_revisions_are_listed_with_person_and_reason_and_read_one_by_one(
    agent: Agent, client: APIClient
) -> None:
    put(client, agent, "one", reason="first")
    put(client, agent, "two")
    client.delete(url(agent, PATH))
    listed = history(client, agent).json()
    assert [(r["number"], r["operation"], r["is_deleted"]) for r in listed["results"]] == [
        (3, "delete", True),
        (2, "write", False),
        (1, "write", False),
    ]
    first = history(client, agent, f"path={PATH}&number=1").json()
    assert first.pop("created_at").endswith("Z")
    assert first == {
        "path": PATH,
        "number": 1,
        "operation": "write",
        "size_bytes": 3,
        "is_deleted": False,
        "is_purged": False,
        "reason": "first",
        "source": "api",
        "by": "ann",
        "approval": None,
        "content": "one",
    }
    assert history(client, agent, f"path={PATH}&number=3").json()["content"] is None
    assert history(client, agent, f"path={PATH}&number=4").status_code == 404
    assert history(client, agent, "path=knowledge/none.md").status_code == 404


def test_revisions_come_in_pages(agent: Agent, client: APIClient) -> None:
    for number in range(1, 6):
        put(client, agent, str(number))
    seen, cursor = [], ""
    while cursor is not None:
        page = history(client, agent, f"path={PATH}&limit=2{cursor and f'&cursor={cursor}'}").json()
        seen.append([row["number"] for row in page["results"]])
        cursor = page["next_cursor"]
    assert seen == [[5, 4], [3, 2], [1]]


@pytest.mark.slow
@pytest.mark.both_databases
def test_any_revision_is_restored_as_a_new_one(ann: User, agent: Agent, client: APIClient) -> None:
    put(client, agent, "one")
    put(client, agent, "two")
    delete_file(agent, PATH, by=ann, source="web")
    back = restore(client, agent, 1)
    assert (back.status_code, back.json()["revision"], back.json()["size_bytes"]) == (200, 4, 3)
    assert client.get(url(agent, PATH)).json()["content"] == "one"
    gone = restore(client, agent, 3).json()
    assert (gone["revision"], gone["size_bytes"], gone["updated_at"]) == (5, None, None)
    assert client.get(url(agent, PATH)).status_code == 404
    assert restore(client, agent, 3).status_code == 400, "it is as it was then"
    assert restore(client, agent, 9).status_code == 404


# Permissions -------------------------------------------------------------------------------------


def test_a_user_of_an_agent_reads_its_memory_and_changes_nothing(
    agent: Agent, client: APIClient
) -> None:
    put(client, agent, "one")
    put(client, agent, "two")
    bob = client_for(make_user("bob"))
    assert bob.get(url(agent, PATH)).json()["content"] == "two"
    assert history(bob, agent).status_code == 200
    for response in (
        put(bob, agent, "evil"),
        put(bob, agent, "evil", "knowledge/new.md"),
        bob.delete(url(agent, PATH)),
        restore(bob, agent, 1),
    ):
        assert (response.status_code, problem_of(response)["code"]) == (403, "not_allowed")
    assert MemoryFile.objects.get().content == "two"


@pytest.mark.parametrize("by_group", [False, True])
def test_an_approver_changes_it(agent: Agent, by_group: bool) -> None:
    if by_group:
        bob = make_user("bob")
        group = Group.objects.create(name="editors")
        bob.groups.add(group)
        agent.approver_groups.add(group)
    else:
        bob = make_user("bob", "approve_toolcall")
    assert put(client_for(bob), agent, "better").status_code == 201


def test_a_session_needs_the_csrf_token(ann: User, agent: Agent) -> None:
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(ann)
    assert client.get(url(agent)).status_code == 200
    for response in (
        put(client, agent, "x"),
        client.delete(url(agent, PATH)),
        restore(client, agent, 1),
    ):
        assert response.status_code == 403
    assert not MemoryRevision.objects.exists()
