"""Create agents from templates over HTTP."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission

from agents.models import Agent
from tests.agents.api.rows import client_for, make_user, post, problem_of

pytestmark = pytest.mark.django_db


def test_a_listed_template_becomes_an_agent_of_the_caller() -> None:
    ann = make_user("ann")
    ann.user_permissions.add(Permission.objects.get(codename="add_agent"))
    client = client_for(ann)
    names = [row["slug"] for row in client.get("/api/v1/agent-templates").json()["results"]]
    assert "data-analyst" in names
    made = post(client, "/api/v1/agents", {"template": "data-analyst", "name": "Sales"})
    assert made.status_code == 201
    agent = Agent.objects.get()
    assert (made.json()["slug"], agent.owner) == ("sales", ann)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"template": "nothing"}, 404),
        ({"template": "data-analyst"}, 403),
        ({"template": "data-analyst", "owner": "root"}, 400),
        ({}, 400),
    ],
)
def test_invalid_values_create_nothing(body: dict[str, str], status: int) -> None:
    answer = post(client_for(make_user("ann")), "/api/v1/agents", body)
    assert answer.status_code == status
    assert problem_of(answer)
    assert not Agent.objects.exists()
