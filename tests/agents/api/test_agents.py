"""List agents over HTTP."""

from __future__ import annotations

import pytest

from agents.api.urls import urlpatterns
from agents.models import Agent
from agents.services.agent_definitions.actions import default_model, default_provider
from memory.actions.changes import write_file
from tests.agents.api.rows import answer_run, client_for, make_agent, make_run, make_user, post

pytestmark = pytest.mark.django_db


@pytest.mark.both_databases
def test_agents_are_listed_with_the_settings_of_their_next_run() -> None:
    writer = make_agent("writer", provider="", model="")
    painter = make_agent("painter")
    provider = default_provider()
    assert client_for(make_user("ann")).get("/api/v1/agents").json() == {
        "results": [
            {
                "id": painter.pk,
                "slug": "painter",
                "name": "Painter",
                "description": "Writes things.",
                "provider": "scripted",
                "model": "demo",
            },
            {
                "id": writer.pk,
                "slug": "writer",
                "name": "Writer",
                "description": "Writes things.",
                "provider": provider,
                "model": default_model(provider),
            },
        ],
        "next_cursor": None,
    }


def test_only_agents_that_the_caller_may_use_are_listed() -> None:
    make_agent("secret", everyone=False)
    make_agent("retired")
    Agent.objects.filter(slug="retired").update(is_active=False)
    mine = make_agent("mine", everyone=False)
    ann = make_user("ann")
    Agent.objects.filter(pk=mine.pk).update(owner=ann)
    listed = client_for(ann).get("/api/v1/agents").json()["results"]
    assert [agent["slug"] for agent in listed] == ["mine"]


LONG_SLUG = "an-agent-with-a-very-long-name-" * 3


def agent_paths() -> list[tuple[str, str]]:
    """Return the path of every endpoint of an agent, without the agent, and its converter."""
    found = []
    for pattern in (each.pattern for each in urlpatterns):
        route = str(pattern)
        if route.startswith("agents/<"):
            name, _, rest = route.removeprefix("agents/<").partition(">")
            found.append((rest, name.partition(":")[0]))
    return found


def test_every_path_of_an_agent_takes_an_id_or_a_slug() -> None:
    paths = agent_paths()
    assert {"", "/export", "/chat", "/memory", "/skills", "/policy/rehearse"} <= {
        rest for rest, _ in paths
    }
    assert {converter for _, converter in paths} == {"agent_name"}


@pytest.mark.both_databases
def test_an_id_and_a_slug_name_the_same_agent() -> None:
    ann = make_user("ann", "change_agent")
    agent = make_agent(LONG_SLUG, owner=ann, everyone=False)
    write_file(agent, "knowledge/notes.md", "Hello", by=ann, source="web")
    client = client_for(ann)
    run = make_run(ann, agent=LONG_SLUG, key="c1")
    answer_run(run, "Hi")
    (skill, *_) = client.get(f"/api/v1/agents/{agent.pk}/skills").json()["skills"]
    for path in (
        *("", "/export", "/memory", "/memory/knowledge/notes.md", "/chat/c1", "/skills"),
        *("/memory-revisions?path=knowledge/notes.md", f"/skills/{skill['id']}"),
    ):
        by_id, by_slug = (
            client.get(f"/api/v1/agents/{name}{path}") for name in (agent.pk, LONG_SLUG)
        )
        assert (by_id.status_code, by_id.json()) == (200, by_slug.json()), path
    for name in (agent.pk, LONG_SLUG):
        tried = post(client, f"/api/v1/agents/{name}/policy/rehearse", {"approval_rules": []})
        assert tried.status_code == 200
        assert post(client, f"/api/v1/agents/{name}/chat/c1/cancel", {}).status_code == 200


def test_the_id_of_an_agent_is_not_the_slug_of_another() -> None:
    hidden = make_agent("hidden", everyone=False)
    ann = make_user("ann", "change_agent")
    make_agent(hidden.pk, owner=ann)
    client = client_for(ann)
    for path in ("/memory", "/skills", "/chat/c1"):
        assert client.get(f"/api/v1/agents/{hidden.pk}{path}").status_code == 404, path
    for path in ("", "/export"):  # the permission lets ann read every definition
        assert client.get(f"/api/v1/agents/{hidden.pk}{path}").json()["slug"] == "hidden", path


@pytest.mark.both_databases
def test_agents_come_in_pages() -> None:
    for slug in ("a-1", "b_2", "c"):
        make_agent(slug)
    client = client_for(make_user("ann"))
    first = client.get("/api/v1/agents?limit=2").json()
    assert [agent["slug"] for agent in first["results"]] == ["a-1", "b_2"]
    rest = client.get(f"/api/v1/agents?limit=2&cursor={first['next_cursor']}").json()
    assert [agent["slug"] for agent in rest["results"]] == ["c"]
