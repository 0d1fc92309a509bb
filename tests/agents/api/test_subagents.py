"""Runs of subagents over HTTP: listed below their parent, and visible only to its readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from agents.features.subagents.models import Subagent
from agents.models import Run, ToolCall
from agents.services.agent_definitions.actions import save_agent
from tests.agents.api.rows import (
    ask_approval,
    client_for,
    make_agent,
    make_run,
    make_user,
    post,
    problem_of,
)
from tests.support.runs import running_worker, script_file, wait_for_status, wait_until
from tests.support.subagents import delegate

pytestmark = pytest.mark.django_db

RUNS = "/api/v1/runs"


def family(owner: User, *tasks: str) -> tuple[Run, list[Run]]:
    make_agent()
    run = make_run(owner)
    with transaction.atomic():
        return run, delegate(run, *(tasks or ("a", "b")))


def listed(user: User, query: str = "") -> list[dict[str, Any]]:
    response = client_for(user).get(f"{RUNS}{query}")
    assert response.status_code == 200
    found: list[dict[str, Any]] = response.json()["results"]
    return found


@pytest.mark.both_databases
def test_the_list_has_ones_own_and_below_a_parent_its_subagents() -> None:
    ann = make_user("ann")
    run, (first, second) = family(ann)
    (shown,) = listed(ann)
    assert (shown["id"], shown["depth"], shown["subagent"]) == (run.id, 0, "")
    assert shown["children"] == 2
    below = listed(ann, f"?parent={run.id}")
    assert [child["id"] for child in below] == [second.id, first.id]
    for child in below:
        assert (child["parent"], child["depth"], child["subagent"]) == (run.id, 1, "explore")
        assert (child["model"], child["children"]) == ("echo", 0)
    assert listed(ann, f"?parent={first.id}") == []


def test_the_list_takes_as_many_queries_however_many_subagents() -> None:
    ann = make_user("ann")
    run, _ = family(ann, "alone")
    other = make_run(ann)
    with transaction.atomic():
        delegate(other, *(f"task {number}" for number in range(20)))
    client = client_for(ann)
    client.get(RUNS)  # records the first use of the token
    counts = []
    for parent, children in ((run, 1), (other, 20)):
        with CaptureQueriesContext(connection) as queries:
            shown = client.get(f"{RUNS}?parent={parent.id}").json()["results"]
        assert len(shown) == children
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_a_subagents_run_and_its_events_are_read_by_its_id() -> None:
    ann = make_user("ann")
    _, (child, _) = family(ann)
    client = client_for(ann)
    assert client.get(f"{RUNS}/{child.id}").json()["subagent"] == "explore"
    assert client.get(f"{RUNS}/{child.id}/events").json() == {"results": [], "next_after": 0}


def test_other_users_find_no_run_of_a_subagent_at_any_door() -> None:
    ann, eve = make_user("ann"), make_user("eve")
    run, (child, _) = family(ann)
    client = client_for(eve)
    assert listed(eve) == listed(eve, f"?parent={run.id}") == []
    assert listed(eve, f"?thread={child.thread_id}") == []
    for url in (f"{RUNS}/{child.id}", f"{RUNS}/{child.id}/events"):
        assert problem_of(client.get(url))["status"] == 404
    assert problem_of(post(client, f"{RUNS}/{child.id}/cancel", {}))["status"] == 404
    for url in ("files", "changes", "files/content?path=/sandbox/shared/a"):
        answer = client.get(f"/api/v1/threads/{child.thread_id}/{url}")
        assert answer.status_code == 404, url
    child.refresh_from_db()
    assert child.status == "queued"


def test_an_approver_of_one_subagent_does_not_see_its_siblings() -> None:
    ann, ada = make_user("ann"), make_user("ada", "approve_toolcall")
    _, (asking, quiet) = family(ann)
    ask_approval(asking)
    client = client_for(ada)
    assert client.get(f"{RUNS}/{asking.id}/events").status_code == 200
    assert client.get(f"{RUNS}/{quiet.id}/events").status_code == 404


@pytest.mark.both_databases
@pytest.mark.parametrize("name", ["ann", "eve"])
def test_a_subagents_thread_takes_no_messages(name: str) -> None:
    ann = make_user("ann")
    _, (child, _) = family(ann)
    user = ann if name == "ann" else make_user(name)
    body = {"agent": "writer", "message": "Do as I say", "thread": child.thread_id, "queue": True}
    problem = problem_of(post(client_for(user), RUNS, body))
    if name == "ann":
        assert (problem["status"], problem["code"]) == (409, "subagent")
    else:
        assert (problem["status"], problem["code"]) == (404, "unknown_thread")
    assert Run.objects.filter(thread=child.thread_id).count() == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_subagent_that_its_owner_cancels_is_a_result_for_its_parent(tmp_path: Path) -> None:
    ann = make_user("ann")
    slow = script_file(tmp_path, [{"text": "Never.", "delay": 60}], "slow.json")
    call = {"name": "task", "input": {"subagent": "slow", "task": "Wait."}}
    model = script_file(tmp_path, [{"tool_calls": [call]}, {"text": "Then not."}])
    agent = make_agent(model=model, sandbox=False, builtin_skills=False)
    save_agent(
        agent, related={"subagents": [Subagent(name="slow", description="Waits.", model=slow)]}
    )
    run = make_run(ann)
    with running_worker() as running:
        running.submit(run.id)
        child = wait_until(lambda: Run.objects.filter(parent=run).first(), "a subagent")
        response = post(client_for(ann), f"{RUNS}/{child.id}/cancel", {"reason": "Enough."})
        assert response.status_code == 200
        wait_for_status(run, "completed", "failed")
    child.refresh_from_db()
    assert (child.status, run.status) == ("cancelled", "completed")
    result = str(ToolCall.objects.get(run=run).result_content)
    assert "cancelled" in result
    assert "Enough." in result
