"""Bodies and filters name an agent by its id or its slug, as paths do."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.models import Agent, Run
from tests.agents.api.rows import (
    APIClient,
    ask_approval,
    client_for,
    make_agent,
    make_run,
    make_user,
    post,
    problem_of,
)

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
API = "/api/v1"
SCHEDULE = {"name": "Daily", "message": "Report", "cron": "0 9 * * *"}


@pytest.fixture
def root() -> User:
    return make_user("root", superuser=True)


@pytest.fixture
def client(root: User) -> APIClient:
    User.objects.filter(pk=root.pk).update(is_staff=True)
    return client_for(User.objects.get(pk=root.pk))


def made(client: APIClient, path: str, **body: Any) -> Any:
    answer = post(client, f"{API}/{path}", body)
    assert answer.status_code in (201, 202), (path, answer.content)
    return answer.json()


def ids(client: APIClient, path: str, agent: str) -> list[str]:
    answer = client.get(f"{API}/{path}", {"agent": agent})
    assert answer.status_code == 200, (path, answer.content)
    return [row["id"] for row in answer.json()["results"]]


def test_every_body_and_filter_takes_the_id_and_the_slug(client: APIClient, root: User) -> None:
    writer, other = make_agent(), make_agent("other")
    for name in (writer.pk, writer.slug):
        run = made(client, "runs", agent=name, message="Hello")
        assert run["agent"] == "writer"
        Run.objects.filter(pk=run["id"]).update(status="completed")
        assert made(client, "schedules", agent=name, **SCHEDULE)["agent"] == "writer"
        target = made(client, "notification-targets", kind="webhook", agent=name,
                      address="https://example.org/")  # fmt: skip
        assert target["agent"] == "writer"
        period = "day" if name == writer.pk else "month"
        budget = made(client, "budgets", agent=name, period=period, max_tokens=9)
        assert budget["agent"] == "writer"
    ask_approval(make_run(root))
    for path in ("runs", "threads", "approvals", "schedules", "notification-targets", "budgets",
                 "user-threads"):  # fmt: skip
        found = ids(client, path, writer.slug)
        assert found, path
        assert ids(client, path, writer.pk) == found, path
        assert ids(client, path, other.pk) == [], path
        assert ids(client, path, "nobody") == [], path


def test_the_id_of_another_agent_is_not_a_slug(client: APIClient) -> None:
    """Somebody gives an agent the id of another one as its slug."""
    writer = make_agent()
    Agent.objects.filter(pk=make_agent("false").pk).update(slug=writer.pk)
    run = made(client, "runs", agent=writer.pk, message="Hello")
    assert Run.objects.get(pk=run["id"]).thread.agent_id == writer.pk
    budget = made(client, "budgets", agent=writer.pk, period="day", max_tokens=9)
    assert budget["agent"] == "writer"


def test_an_agent_of_others_is_unknown_by_its_id_and_its_slug_stays_hidden() -> None:
    secret = make_agent("secret-slug", everyone=False)
    ada = client_for(make_user("ada"))
    for path, body in (("runs", {"message": "Hello"}), ("schedules", SCHEDULE)):
        answer = post(ada, f"{API}/{path}", {"agent": secret.pk, **body})
        assert (answer.status_code, problem_of(answer)["code"]) == (404, "unknown_agent")
        assert b"secret-slug" not in answer.content
