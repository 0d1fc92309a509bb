"""Each endpoint for an owner, a stranger, an approver, an operator, and a token with few scopes."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User

from agents.models import Agent, Run
from tests.agents.api.rows import (
    ask_approval,
    client_for,
    make_agent,
    make_run,
    make_user,
    problem_of,
)

pytestmark = pytest.mark.django_db

OF_RUN = ("", "/transcript", "/tool-calls", "/tool-calls/call_0", "/todos", "/subagents")
OWNERS_ALONE = ("/artifacts",)
OF_THREAD = ("", "/transcript", "/export", "/files")
LISTS = ("agents", "agents/writer", "runs", "threads", "databases", "toolboxes")


@pytest.fixture
def run() -> Run:
    agent = make_agent(sandbox=False, everyone=False)
    ann = make_user("ann")
    Agent.objects.update(owner=ann)
    group = Group.objects.create(name="approvers")
    agent.approver_groups.add(group)
    make_user("paul").groups.add(group)
    make_user("bob")
    make_user("olga", "view_all_runs")
    run = make_run(ann, message="Between us")
    ask_approval(run)
    return run


def status(name: str, url: str, *scopes: str) -> int:
    response = client_for(User.objects.get(username=name), *scopes).get(f"/api/v1/{url}")
    if response.status_code != 200:
        problem_of(response)
    return response.status_code


@pytest.mark.parametrize("part", OF_RUN)
def test_a_run_is_read_by_its_owner_and_operators(run: Run, part: str) -> None:
    url = f"runs/{run.id}{part}"
    assert status("ann", url) == 200
    assert status("olga", url) == 200
    assert status("bob", url) == 404
    # An approver reads the input at the approval request, not here.
    assert status("paul", url) == 404
    assert status("ann", url, "run", "approve") == 403


@pytest.mark.parametrize("part", OWNERS_ALONE)
def test_only_the_owner_reads_files(run: Run, part: str) -> None:
    url = f"runs/{run.id}{part}"
    assert status("ann", url) == 200
    assert status("olga", url) == 403
    assert status("bob", url) == status("paul", url) == 404
    assert status("ann", url, "run", "approve") == 403


@pytest.mark.parametrize("part", OF_THREAD)
def test_only_the_owner_reads_a_thread(run: Run, part: str) -> None:
    url = f"threads/{run.thread_id}{part}"
    assert status("ann", url) == 200
    assert {status(name, url) for name in ("bob", "paul", "olga")} == {404}
    assert status("ann", url, "run", "approve") == 403


def test_only_its_owner_renames_a_thread(run: Run) -> None:
    url = f"/api/v1/threads/{run.thread_id}"
    for name in ("bob", "paul", "olga"):
        client = client_for(User.objects.get(username=name))
        assert client.patch(url, {"title": "Mine"}, format="json").status_code == 404
    reader = client_for(User.objects.get(username="ann"), "read")
    assert reader.patch(url, {"title": "Mine"}, format="json").status_code == 403
    run.thread.refresh_from_db()
    assert run.thread.title == "Between us"


@pytest.mark.parametrize("name", LISTS)
def test_lists_show_a_stranger_nothing(run: Run, name: str) -> None:
    response = client_for(User.objects.get(username="bob")).get(f"/api/v1/{name}")
    if "/" in name:
        assert response.status_code == 404
    else:
        assert response.json()["results"] == []
    assert status("ann", name) == 200
    assert status("ann", name, "run", "approve") == 403


@pytest.mark.parametrize("url", [*LISTS, "runs/x", "threads/x", "runs/x/transcript"])
def test_without_signing_in_no_page_is_shown(run: Run, url: str) -> None:
    client = client_for(run.owner)
    client.credentials()
    response = client.get(f"/api/v1/{url}")
    assert (response.status_code, problem_of(response)["code"]) == (401, "not_authenticated")


@pytest.mark.parametrize("method", ["put", "delete", "post"])
def test_other_methods_are_refused_as_problems(run: Run, method: str) -> None:
    client = client_for(run.owner)
    for url in ("threads", f"runs/{run.id}/transcript", "usage", "audit"):
        response = getattr(client, method)(f"/api/v1/{url}")
        assert (response.status_code, problem_of(response)["code"]) == (405, "method_not_allowed")
        assert "GET" in response["Allow"]


@pytest.mark.parametrize(
    ("content_type", "body", "expected"),
    [
        ("text/plain", b"{}", 415),
        ("application/json", b"{", 400),
        ("application/json", b"\xff", 400),
        ("application/json", b'{"message": NaN}', 400),
    ],
)
def test_bodies_that_cannot_be_read_are_problems(
    run: Run, content_type: str, body: bytes, expected: int
) -> None:
    client = client_for(run.owner)
    for url in (f"runs/{run.id}/resume", f"runs/{run.id}/fork"):
        response = client.generic("POST", f"/api/v1/{url}", body, content_type=content_type)  # type: ignore[arg-type]
        assert response.status_code == expected
        problem_of(response)
    assert client.get("/api/v1/runs", headers={"Accept": "text/html"}).status_code == 200
