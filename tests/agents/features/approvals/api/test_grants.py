"""Create, list and revoke grants, and rehearse a policy, over HTTP."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.events.append import dump
from agents.models import Agent, ApprovalGrant, ApprovalRequest, ToolCall
from tests.agents.api.rows import (
    INPUT,
    ask_approval,
    client_for,
    make_agent,
    make_run,
    make_user,
    post,
    problem_of,
)

pytestmark = pytest.mark.django_db

GRANTS = "/api/v1/grants"


def asked(**fields: Any) -> ApprovalRequest:
    make_agent(**fields)
    return ask_approval(make_run(make_user("ann")))


def approve(request: ApprovalRequest, by: User, always: object) -> Any:
    body = {"decision": "approve", "digest": request.digest, "always": always}
    return post(client_for(by), f"/api/v1/approvals/{request.id}/decide", body)


def given(request: ApprovalRequest, by: User, **terms: Any) -> ApprovalGrant:
    answer = approve(request, by, terms)
    assert answer.status_code == 200, answer.content
    return ApprovalGrant.objects.get(request=request)


@pytest.mark.slow
@pytest.mark.both_databases
def test_an_approval_with_always_makes_a_grant_that_is_listed() -> None:
    request = asked()
    ann = request.run.owner
    grant = given(request, ann, match="command", days=3, max_uses=5, reason="Fine.")
    (shown,) = client_for(ann).get(GRANTS).json()["results"]
    assert shown["id"] == grant.id
    assert shown["condition"] == {"command": r"rm\ \-r\ build"}
    assert (shown["agent"], shown["tool"], shown["owner"]) == ("writer", "execute", "ann")
    assert (shown["max_uses"], shown["uses"], shown["reason"]) == (5, 0, "Fine.")
    assert (shown["created_by"], shown["request"]) == ("ann", request.id)
    assert (shown["state"], shown["revoked_at"]) == ("good", None)
    assert timedelta(days=2) < grant.expires_at - timezone.now() < timedelta(days=3)


@pytest.mark.parametrize(
    "always",
    [
        "yes",
        [],
        {"match": "everything"},
        {"days": 0},
        {"days": "many"},
        {"max_uses": 10_001},
        {"for_everybody": "true"},
        {"match": "command", "pattern": 7},
        {"match": "command", "pattern": "("},
        {"match": "command", "pattern": "ls"},
        {"patern": "x"},
    ],
)
def test_terms_that_do_not_fit_approve_nothing(always: object) -> None:
    request = asked()
    answer = approve(request, request.run.owner, always)
    assert answer.status_code == 400
    problem_of(answer)
    request.refresh_from_db()
    assert (request.status, ApprovalGrant.objects.count()) == ("pending", 0)


@pytest.mark.parametrize("always", [{"for_everybody": True}, {"match": "tool"}])
def test_grants_that_only_approvers_may_give_are_refused(always: object) -> None:
    request = asked()
    answer = approve(request, request.run.owner, always)
    assert (answer.status_code, problem_of(answer)["code"]) == (403, "not_allowed")
    request.refresh_from_db()
    assert request.status == "pending"
    assert approve(request, make_user("grace", "approve_toolcall"), always).status_code == 200


def test_null_is_an_ordinary_approval() -> None:
    request = asked()
    assert approve(request, request.run.owner, None).status_code == 200
    assert not ApprovalGrant.objects.exists()


def test_strangers_see_and_revoke_nothing() -> None:
    request = asked()
    grant = given(request, request.run.owner)
    eve = client_for(make_user("eve", "change_agent", "view_all_runs"))
    assert eve.get(GRANTS).json()["results"] == []
    assert post(eve, f"{GRANTS}/{grant.id}/revoke", {}).status_code == 404
    grant.refresh_from_db()
    assert grant.revoked_at is None


@pytest.mark.both_databases
def test_revoking_is_for_once() -> None:
    request = asked()
    grant = given(request, request.run.owner)
    client = client_for(request.run.owner)
    shown = post(client, f"{GRANTS}/{grant.id}/revoke", {}).json()
    assert (shown["revoked_by"], shown["id"], shown["state"]) == ("ann", grant.id, "revoked")
    assert post(client, f"{GRANTS}/{grant.id}/revoke", {}).status_code == 409
    assert client.get(GRANTS).json()["results"] != []
    assert client.get(f"{GRANTS}?good=true").json()["results"] == []
    assert post(client, f"{GRANTS}/{grant.id}/revoke", {"now": True}).status_code == 400


def rehearsal(by: User, agent: Agent, **body: Any) -> Any:
    return post(client_for(by), f"/api/v1/agents/{agent.pk}/policy/rehearse", body)


@pytest.mark.both_databases
def test_a_rehearsal_counts_and_names_calls() -> None:
    request = asked(sandbox=True)
    agent = Agent.objects.get()
    editor = make_user("ed", "change_agent", "view_all_runs")
    rules = [{"tool": "execute", "when": {"command": "rm"}, "action": "deny", "reason": "No."}]
    found = rehearsal(editor, agent, approval_rules=rules, days=2).json()
    assert found["tools"]["execute"]["after"] == {"allow": 0, "ask": 0, "deny": 1}
    (example,) = found["examples"]
    assert example["run"] == request.run_id
    assert (example["after"], example["by"]) == ("deny", "rule 1")
    assert example["input"] == dump(INPUT)
    agent.refresh_from_db()
    assert agent.approval_rules == []


def test_a_rehearsal_shows_no_inputs_of_runs_that_one_may_not_read() -> None:
    asked(sandbox=True)
    editor = make_user("ed", "change_agent")
    rules = [{"tool": "execute", "action": "deny"}]
    answer = rehearsal(editor, Agent.objects.get(), approval_rules=rules)
    assert answer.json()["hidden"] == 1
    assert INPUT["command"] not in answer.content.decode()


@pytest.mark.parametrize(
    "body",
    [
        {"approval_rules": [{"tool": "execute", "when": {"command": "("}, "action": "deny"}]},
        {"approval_rules": {}},
        {"approval_rules": [7]},
        {"interrupt_on": {"execute": {"allow": []}}},
        {"days": 0},
        {"rules": []},
    ],
)
def test_a_policy_that_could_not_be_saved_is_refused(body: dict[str, Any]) -> None:
    agent = make_agent()
    answer = rehearsal(make_user("ed", "change_agent"), agent, **body)
    assert answer.status_code == 400
    problem_of(answer)


def test_a_rehearsal_needs_the_permission_to_change_agents() -> None:
    request = asked()
    agent = Agent.objects.get()
    for who in (request.run.owner, make_user("grace", "approve_toolcall", "view_agent")):
        assert rehearsal(who, agent).status_code == 403
    editor = make_user("ed", "change_agent")
    answer = post(client_for(editor), "/api/v1/agents/nothing/policy/rehearse", {})
    assert answer.status_code == 404
    assert ToolCall.objects.count() == 1
