"""List and decide approval requests over HTTP."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from agents.models import ApprovalRequest
from agents.states import ApprovalStatus, RunStatus, ToolCallStatus
from tests.agents.api.rows import (
    INPUT,
    HttpResponse,
    ask_approval,
    client_for,
    make_agent,
    make_run,
    make_user,
    post,
    problem_of,
)

pytestmark = pytest.mark.django_db

APPROVALS = "/api/v1/approvals"


def asked(*allowed: str) -> ApprovalRequest:
    make_agent()
    run = make_run(make_user("ann"))
    return ask_approval(run, allowed=allowed) if allowed else ask_approval(run)


def decide(client: APIClient, request: ApprovalRequest, **body: Any) -> HttpResponse:
    body = {"decision": "approve", "digest": request.digest, **body}
    return post(client, f"{APPROVALS}/{request.id}/decide", body)


def assert_undecided(request: ApprovalRequest) -> None:
    request.refresh_from_db()
    assert request.status == ApprovalStatus.PENDING
    assert request.tool_call is not None
    assert request.tool_call.status == ToolCallStatus.WAITING


def test_a_request_shows_the_call_to_run() -> None:
    request = asked()
    shape = client_for(request.run.owner).get(f"{APPROVALS}/{request.id}").json()
    assert shape.pop("created_at").endswith("Z")
    assert shape == {
        "id": request.id,
        "run": request.run_id,
        "thread": request.run.thread_id,
        "agent": "writer",
        "kind": "tool",
        "tool": "execute",
        "call_id": "call_0",
        "input": INPUT,
        "memory": None,
        "changes": None,
        "prompt": "",
        "allowed_decisions": ["approve", "edit", "reject", "respond"],
        "approvals_needed": 1,
        "first_approver": None,
        "self_approval": True,
        "digest": request.digest,
        "status": "pending",
        "decision": "",
        "edited_input": None,
        "reason": "",
        "decided_by": None,
        "decided_at": None,
        "expires_at": None,
    }


@pytest.mark.slow
@pytest.mark.both_databases
def test_requests_are_listed_longest_waiting_first_and_filtered() -> None:
    first = asked()
    ann = first.run.owner
    second = ask_approval(make_run(ann))
    ApprovalRequest.objects.filter(pk=second.pk).update(status=ApprovalStatus.EXPIRED)
    client = client_for(ann)

    def listed(query: str) -> list[str]:
        return [row["id"] for row in client.get(f"{APPROVALS}?{query}").json()["results"]]

    assert listed("") == [first.id, second.id]
    assert listed("status=pending") == [first.id]
    assert listed(f"run={second.run_id}") == [second.id]
    page = client.get(f"{APPROVALS}?limit=1").json()
    assert listed(f"limit=1&cursor={page['next_cursor']}") == [second.id]
    assert client.get(f"{APPROVALS}?status=open").status_code == 400


def test_an_approval_continues_the_run() -> None:
    request = asked()
    response = decide(client_for(request.run.owner), request)
    assert response.status_code == 200
    shape = response.json()
    assert (shape["status"], shape["decision"], shape["decided_by"]) == (
        "decided",
        "approve",
        "ann",
    )
    assert shape["decided_at"].endswith("Z")
    request.run.refresh_from_db()
    assert request.run.status == RunStatus.QUEUED


def test_an_edit_runs_the_persons_input() -> None:
    request = asked()
    edited = {"command": "ls"}
    shape = decide(client_for(request.run.owner), request, decision="edit", input=edited).json()
    assert (shape["input"], shape["edited_input"]) == (INPUT, edited)
    request.refresh_from_db()
    assert request.tool_call is not None
    assert request.tool_call.effective_input == edited


def test_an_edit_that_is_too_long_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    request = asked()
    monkeypatch.setattr("agents.services.approvals.decisions.EDIT_CHARACTERS", 100)
    client = client_for(request.run.owner)
    for edited in ({"command": "x" * 100}, {"command": "ls", **{f"k{n}": 1 for n in range(20)}}):
        response = decide(client, request, decision="edit", input=edited)
        assert response.status_code == 400
        assert "shorten it" in response.json()["detail"]
    assert_undecided(request)


def test_an_edit_with_a_field_that_the_tool_does_not_know_decides_nothing() -> None:
    request = asked()
    edited = {**INPUT, "comand": "ls"}
    response = decide(client_for(request.run.owner), request, decision="edit", input=edited)
    assert "no field 'comand'" in problem_of(response)["detail"]
    assert_undecided(request)


def test_a_rejection_carries_its_reason() -> None:
    request = asked()
    client = client_for(request.run.owner)
    shape = decide(client, request, decision="reject", reason="not today").json()
    assert (shape["decision"], shape["reason"]) == ("reject", "not today")


@pytest.mark.parametrize("decision", ["approve", "reject", "respond"])
def test_only_an_edit_may_have_an_input(decision: str) -> None:
    request = asked("approve", "reject", "respond")
    client = client_for(request.run.owner)
    response = decide(client, request, decision=decision, reason="x", input={"command": "evil"})
    assert list(problem_of(response)["errors"]) == ["input"]
    assert_undecided(request)


def test_another_digest_is_a_conflict() -> None:
    request = asked()
    response = decide(client_for(request.run.owner), request, digest="0" * 64)
    assert (response.status_code, problem_of(response)["code"]) == (409, "stale")
    assert_undecided(request)


def test_deciding_twice_is_a_conflict() -> None:
    request = asked()
    client = client_for(request.run.owner)
    assert decide(client, request, decision="reject").status_code == 200
    response = decide(client, request)
    assert (response.status_code, problem_of(response)["code"]) == (409, "stale")
    request.refresh_from_db()
    assert request.decision == "reject"


def test_an_expired_request_is_a_conflict() -> None:
    request = asked()
    ApprovalRequest.objects.filter(pk=request.pk).update(
        expires_at=timezone.now() - timedelta(seconds=1)
    )
    response = decide(client_for(request.run.owner), request)
    assert (response.status_code, problem_of(response)["code"]) == (409, "expired")


def test_the_request_of_a_cancelled_run_is_a_conflict() -> None:
    request = asked()
    client = client_for(request.run.owner)
    post(client, f"/api/v1/runs/{request.run_id}/cancel", {})
    assert decide(client, request).status_code == 409


def test_a_decision_that_is_not_offered_is_refused() -> None:
    request = asked("approve", "reject")
    client = client_for(request.run.owner)
    assert decide(client, request, decision="edit", input={}).status_code == 400
    assert_undecided(request)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"digest": None}, "digest"),
        ({"digest": ""}, "digest"),
        ({"decision": "maybe"}, "decision"),
        ({"decision": ["approve"]}, "decision"),
        ({"decision": "edit", "input": "ls"}, "input"),
        ({"decision": "edit", "input": [1]}, "input"),
        ({"reason": 5}, "reason"),
        ({"by": "root"}, "by"),
    ],
)
def test_a_decision_that_does_not_fit_is_refused_by_field(
    change: dict[str, Any], field: str
) -> None:
    request = asked()
    response = decide(client_for(request.run.owner), request, **change)
    assert response.status_code == 400
    assert list(problem_of(response)["errors"]) == [field]
    assert_undecided(request)


def test_the_digest_is_required_here() -> None:
    request = asked()
    client = client_for(request.run.owner)
    response = post(client, f"{APPROVALS}/{request.id}/decide", {"decision": "approve"})
    assert list(problem_of(response)["errors"]) == ["digest"]
    assert_undecided(request)


def test_only_the_decisions_that_the_reader_may_make_are_allowed() -> None:
    request = asked()
    ApprovalRequest.objects.filter(pk=request.pk).update(self_approval=False)
    boss = make_user("eve", "approve_toolcall")

    def allowed(user: Any) -> list[str]:
        client = client_for(user)
        shape = client.get(f"{APPROVALS}/{request.id}").json()
        (listed,) = client.get(f"{APPROVALS}?status=pending").json()["results"]
        assert listed["allowed_decisions"] == shape["allowed_decisions"]
        found: list[str] = shape["allowed_decisions"]
        return found

    assert allowed(request.run.owner) == ["reject"]
    assert allowed(boss) == ["approve", "edit", "reject", "respond"]
    ApprovalRequest.objects.filter(pk=request.pk).update(
        approvals_needed=2, first_approver=boss, first_approved_at=timezone.now()
    )
    assert "approve" not in allowed(boss)
    decided = decide(client_for(request.run.owner), request, decision="reject").json()
    assert decided["allowed_decisions"] == []


def test_requests_of_others_cannot_be_seen_or_decided() -> None:
    request = asked()
    client = client_for(make_user("bob"))
    assert client.get(APPROVALS).json()["results"] == []
    assert client.get(f"{APPROVALS}?run={request.run_id}").json()["results"] == []
    assert client.get(f"{APPROVALS}/{request.id}").status_code == 404
    assert decide(client, request).status_code == 404
    assert_undecided(request)


def test_an_approver_decides_for_others() -> None:
    request = asked()
    client = client_for(make_user("eve", "approve_toolcall"))
    assert client.get(f"{APPROVALS}/{request.id}").status_code == 200
    assert decide(client, request).json()["decided_by"] == "eve"


def test_a_token_without_the_scope_does_not_decide_even_for_a_superuser() -> None:
    request = asked()
    root: User = make_user("root", superuser=True)
    response = decide(client_for(root, "read", "run"), request)
    assert (response.status_code, problem_of(response)["code"]) == (403, "insufficient_scope")
    assert_undecided(request)
