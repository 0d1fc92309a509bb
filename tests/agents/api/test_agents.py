"""List agents over HTTP."""

from __future__ import annotations

import pytest

from agents.models import Agent
from agents.services.agent_definitions.actions import default_model, default_provider
from tests.agents.api.rows import client_for, make_agent, make_user

pytestmark = pytest.mark.django_db


@pytest.mark.both_databases
def test_agents_are_listed_with_what_a_run_would_use() -> None:
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


@pytest.mark.both_databases
def test_agents_come_in_pages() -> None:
    for slug in ("a-1", "b_2", "c"):
        make_agent(slug)
    client = client_for(make_user("ann"))
    first = client.get("/api/v1/agents?limit=2").json()
    assert [agent["slug"] for agent in first["results"]] == ["a-1", "b_2"]
    rest = client.get(f"/api/v1/agents?limit=2&cursor={first['next_cursor']}").json()
    assert [agent["slug"] for agent in rest["results"]] == ["c"]
