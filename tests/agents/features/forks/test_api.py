"""Start a new thread from a step of a run, with its conversation and files, exactly once."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from agents.models import (
    Agent,
    ApprovalRequest,
    IdempotencyKey,
    Message,
    Run,
    RunEvent,
    Thread,
    ToolCall,
)
from agents.services.agent_definitions.actions import save_agent
from agents.services.files.snapshots import snapshot_store
from agents.settings import DataSettings
from tests.agents.api.rows import client_for, make_user, post, problem_of
from tests.agents.api.test_files import body_of
from tests.agents.engine.test_model_faults import served
from tests.agents.snapshots.driven import area, command, play, write
from tests.support import runs
from tests.support.messages_script import ToolUse, Turn

pytestmark = pytest.mark.django_db(transaction=True)


def fork(client: APIClient, run: Run, body: dict[str, Any] | None = None, **headers: str) -> Any:
    return post(client, f"/api/v1/runs/{run.id}/fork", body or {}, **headers)


def ada() -> APIClient:
    return client_for(User.objects.get(username="ada"))


def rows_of(thread: str) -> list[Any]:
    """Return all stored rows of a conversation."""
    kinds = (Message, ToolCall, RunEvent)
    own = [list(kind.objects.filter(run__thread=thread).values()) for kind in kinds]
    return [*own, list(Run.objects.filter(thread=thread).values())]


def said(client: APIClient, thread: str) -> list[tuple[str, str]]:
    found = client.get(f"/api/v1/threads/{thread}/transcript").json()["results"]
    return [(message["role"], json.dumps(message["content"])) for message in found]


TURNS = [
    Turn(text="First.", tool_uses=[ToolUse("write_file", {"path": "/a", "content": "one"})]),
    Turn(
        text="Then.",
        tool_uses=[
            ToolUse("write_todos", {"todos": [{"content": "Sleep", "status": "pending"}]}),
            ToolUse("execute_sql_of_nobody", {}),
        ],
    ),
    Turn(text="Done."),
]


@pytest.fixture
def answered() -> Run:
    """Run three turns of an agent without a sandbox; the model's server checks the requests."""
    user = runs.make_user()
    with served(list(TURNS)):
        runs.make_agent(user, provider="anthropic", model="claude-sonnet-5-5")
        run = runs.drive_to_end(runs.start_run(user, "Do it"))
    assert run.status == "completed", run.error_message
    return run


@pytest.mark.slow
def test_a_fork_continues_from_the_step_with_the_same_conversation(answered: Run) -> None:
    before = rows_of(answered.thread_id)
    with served([Turn(text="Another way.")]) as server:
        response = fork(ada(), answered, {"step": 1, "message": "Try again", "files": "now"})
        assert response.status_code == 201, response.json()
        made = runs.drive_to_end(Run.objects.get(pk=response.json()["run"]["id"]))
    assert made.status == "completed", made.error_message
    assert server.violations == []
    (request,) = server.requests
    texts = json.dumps(request.json["messages"])
    assert "Do it" in texts
    assert "First." in texts
    assert "Then." not in texts
    assert texts.index("Do it") < texts.index("First.") < texts.index("Try again")
    assert rows_of(answered.thread_id) == before
    thread = response.json()["thread"]
    assert (thread["forked_from"], thread["forked_step"]) == (answered.id, 1)
    assert response["Location"] == f"/api/v1/threads/{thread['id']}"
    assert [role for role, _ in said(ada(), thread["id"])] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
    ]


@pytest.mark.slow
def test_usage_of_a_fork_is_not_counted_twice(answered: Run) -> None:
    client = ada()
    usage, listed = client.get("/api/v1/usage").json(), client.get("/api/v1/runs").json()
    assert usage["results"][0]["calls"] == 3
    response = fork(client, answered, {"files": "now"})
    assert response.json()["run"] is None
    assert client.get("/api/v1/usage").json() == usage
    assert client.get("/api/v1/runs").json() == listed
    copy = Run.objects.get(thread=response.json()["thread"]["id"])
    assert (copy.is_copy, copy.status, copy.number) == (True, "completed", answered.number)
    assert copy.clock.total_tokens == 0
    for part in ("", "/transcript", "/tool-calls", "/todos", "/events"):
        assert client.get(f"/api/v1/runs/{copy.id}{part}").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize(("step", "todos"), [(0, []), (1, []), (2, ["Sleep"]), (None, ["Sleep"])])
def test_a_fork_has_the_plan_of_the_step(answered: Run, step: int | None, todos: list[str]) -> None:
    with served([Turn(text="Yes.")]):
        body = {"step": step, "message": "Go on", "files": "none"}
        made = fork(ada(), answered, body).json()["run"]["id"]
    found = ada().get(f"/api/v1/runs/{made}/todos").json()["results"]
    assert [todo["content"] for todo in found] == todos
    again = fork(ada(), Run.objects.get(pk=made), {"files": "none", "step": 0})
    assert again.status_code == 201
    stored = Thread.objects.get(pk=again.json()["thread"]["id"]).todos
    assert list(stored.values_list("content", flat=True)) == todos


@pytest.mark.slow
@pytest.mark.both_databases
def test_files_in_rows_are_copied_where_they_are_known(answered: Run) -> None:
    client = ada()
    unknown = fork(client, answered, {"step": 0})
    assert (unknown.status_code, problem_of(unknown)["code"]) == (409, "files_not_kept")
    made = fork(client, answered, {"step": 1})
    thread = made.json()["thread"]["id"]
    assert made.json()["files"] == {"written": 1, "left_out": []}
    read = client.get(f"/api/v1/threads/{thread}/files/content?path=/a")
    assert body_of(read) == b"one"
    bare = fork(client, answered, {"step": 0, "files": "none"}).json()["thread"]["id"]
    assert client.get(f"/api/v1/threads/{bare}/files").json()["results"] == []


@pytest.mark.slow
def test_calls_that_wait_are_answered_and_the_original_still_waits() -> None:
    user = runs.make_user()
    first = [ToolUse("ls", {}), ToolUse("write_file", {"path": "/a", "content": "x"})]
    with served([Turn(tool_uses=first)]):
        runs.make_agent(
            user,
            provider="anthropic",
            model="claude-sonnet-5-5",
            interrupt_on={"write_file": True},
        )
        run = runs.drive_to_end(runs.start_run(user), until=("waiting",))
    with served([Turn(text="Without it, then.")]) as server:
        made = fork(ada(), run, {"message": "Do not write"}).json()["run"]["id"]
        done = runs.drive_to_end(Run.objects.get(pk=made))
    assert (done.status, server.violations) == ("completed", [])
    results = server.requests[0].json["messages"][2]["content"]
    assert "Not run: the conversation was forked" in json.dumps(results[1])
    assert results[1]["is_error"] is True
    run.refresh_from_db()
    assert run.status == "waiting"
    assert ApprovalRequest.objects.get().status == "pending"


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_a_fork_has_the_files_of_its_step(tmp_path: Path) -> None:
    run = play(
        tmp_path,
        write("a", "first"),
        write("a", "second"),
        command("mkdir -p d && mv a d/b && chmod 755 d/b && ls /nowhere; true"),
    )
    kept = sorted((snapshot_store(run.thread_id).directory / "manifests").iterdir())
    head = (snapshot_store(run.thread_id).directory / "head").read_bytes()
    moved = {"d/b": "second"}
    for step, files in ((1, {"a": "first"}), (2, {"a": "second"}), (3, moved), (None, moved)):
        made = fork(ada(), run, {"step": step}).json()
        where = DataSettings.now().workspaces / made["thread"]["id"] / "workspace"
        found = {
            str(path.relative_to(where)): path.read_text()
            for path in where.rglob("*")
            if path.is_file()
        }
        assert found == files, step
        assert made["files"]["left_out"] == []
        thread = Thread.objects.get(pk=made["thread"]["id"])
        assert {path.stat().st_uid for path in where.rglob("*")} == {where.stat().st_uid}
        if os.geteuid() == 0:
            assert thread.sandbox_uid == where.stat().st_uid != area(run).stat().st_uid
    assert sorted((snapshot_store(run.thread_id).directory / "manifests").iterdir()) == kept
    assert (snapshot_store(run.thread_id).directory / "head").read_bytes() == head
    # Changes in the fork do not change the original.
    later = play(tmp_path, write("d/b", "third"), thread=thread)
    assert (area(later) / "d/b").read_text() == "third"
    assert (area(run) / "d/b").read_text() == "second"


@pytest.mark.bubblewrap
def test_before_the_first_change_there_were_the_files_from_before(tmp_path: Path) -> None:
    run = play(tmp_path, ("ls", {}), write("a", "first"))
    made = fork(ada(), run, {"step": 1}).json()["thread"]["id"]
    assert list((DataSettings.now().workspaces / made / "workspace").iterdir()) == []
    # An unrecorded command before the oldest stored change may have changed files.
    other = play(tmp_path, command("true"), write("a", "second"), write("a", "third"))
    refused = fork(ada(), other, {"step": 0})
    assert (refused.status_code, problem_of(refused)["code"]) == (409, "files_not_kept")
    assert fork(ada(), other, {"step": 0, "files": "none"}).status_code == 201


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"step": -1}, "step"),
        ({"step": "x"}, "step"),
        ({"step": 4}, ""),
        ({"version": "old"}, "version"),
        ({"files": "all"}, "files"),
        ({"message": 5}, "message"),
        ({"message": " "}, ""),
        ({"thread_key": ""}, "thread_key"),
        ({"owner": "bob"}, "owner"),
    ],
)
def test_invalid_values_make_no_thread(answered: Run, body: dict[str, Any], field: str) -> None:
    response = fork(ada(), answered, {"files": "none", **body})
    assert response.status_code == 400
    if field:
        assert list(problem_of(response)["errors"]) == [field]
    assert Thread.objects.count() == 1


def test_only_its_owner_sees_a_fork(answered: Run) -> None:
    stranger, operator = make_user("bob"), make_user("carol", "view_all_runs")
    Agent.objects.update(everyone=True)
    assert fork(client_for(stranger), answered, {"files": "none"}).status_code == 404
    assert fork(client_for(operator), answered, {"files": "none"}).status_code == 403
    narrow = client_for(User.objects.get(username="ada"), "read", "approve")
    refused = fork(narrow, answered, {"files": "none"})
    assert problem_of(refused)["code"] == "insufficient_scope"
    assert Thread.objects.count() == 1


def test_a_person_who_lost_the_agent_cannot_fork(answered: Run) -> None:
    Agent.objects.update(owner=None)
    response = fork(ada(), answered, {"files": "none"})
    assert (response.status_code, problem_of(response)["code"]) == (404, "unknown_agent")


@pytest.mark.slow
def test_an_older_version_needs_the_permission_to_change_the_agent(answered: Run) -> None:
    agent = Agent.objects.get()
    agent.interrupt_on = {"write_file": True}
    save_agent(agent)
    asked = {"message": "Again", "files": "none"}
    response = fork(ada(), answered, asked)
    assert (response.status_code, problem_of(response)["code"]) == (409, "agent_changed")
    assert Thread.objects.count() == 1
    today = fork(ada(), answered, {**asked, "version": "current"}).json()["run"]["id"]
    assert Run.objects.get(pk=today).agent_version.number == 2
    User.objects.filter(username="ada").update(is_superuser=True)
    old = fork(ada(), answered, asked).json()["run"]["id"]
    assert Run.objects.get(pk=old).agent_version_id == answered.agent_version_id


@pytest.mark.both_databases
def test_a_key_of_a_thread_is_not_taken_twice(answered: Run) -> None:
    asked = {"files": "none", "thread_key": "mine"}
    assert fork(ada(), answered, asked).json()["thread"]["key"] == "mine"
    response = fork(ada(), answered, asked)
    assert (response.status_code, problem_of(response)["code"]) == (409, "key_taken")
    assert Thread.objects.count() == 2


def test_a_repeated_fork_is_one(answered: Run) -> None:
    client = ada()
    asked = {"files": "none", "thread_key": "mine", "message": "Go"}
    first = fork(client, answered, asked, **{"Idempotency-Key": "k"})
    again = fork(client, answered, asked, **{"Idempotency-Key": "k"})
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert again["Idempotency-Replayed"] == "true"
    assert again["Location"] == first["Location"]
    assert Thread.objects.count() == 2
    other = fork(client, answered, {**asked, "step": 0}, **{"Idempotency-Key": "k"})
    assert problem_of(other)["code"] == "idempotency_mismatch"
    assert IdempotencyKey.objects.count() == 1


def test_a_fork_that_fails_in_the_end_leaves_nothing(answered: Run) -> None:
    # The run refuses the message at its creation: the pinned version needs a value.
    agent = Agent.objects.get()
    agent.system_prompt = "For {{context.customer}}."
    save_agent(agent)
    before = set(DataSettings.now().workspaces.glob("*"))
    response = fork(ada(), answered, {"message": "x", "version": "current", "files": "none"})
    assert (response.status_code, problem_of(response)["code"]) == (400, "missing_context")
    assert (Thread.objects.count(), Run.objects.count()) == (1, 1)
    assert set(DataSettings.now().workspaces.glob("*")) == before
