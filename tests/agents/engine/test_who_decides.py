"""Denials, two approvers, no self-approval, groups of approvers, and expired requests."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.utils import timezone

from agents.features.approvals.jobs import expire_approval
from agents.models import Agent, ApprovalRequest, Run, StateFile, ToolCall
from agents.selectors.visible import approvals_for, watchable_runs_for
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.errors import Conflict, InvalidRequest, NotAllowed, NotFound
from tests.support.runs import (
    drive_to_end,
    event_types,
    events,
    make_agent,
    make_user,
    script_file,
    start_run,
)

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("frequent_looks"),
]

WRITE = {"name": "write_file", "input": {"path": "/a", "content": "alpha"}}


def run_of(tmp_path: Path, call: dict[str, Any] = WRITE, **fields: Any) -> tuple[User, Run]:
    """Drive a run of ada's with one call until it waits or ends."""
    user = make_user()
    model = script_file(tmp_path, [{"tool_calls": [call]}, {"text": "Done."}])
    make_agent(user, model=model, **{"interrupt_on": {"write_file": True}, **fields})
    return user, drive_to_end(start_run(user), until=("waiting", "completed"))


def request_of(run: Run) -> ApprovalRequest:
    return ApprovalRequest.objects.get(run=run, status="pending")


def approver(name: str) -> User:
    user = make_user(name)
    user.user_permissions.add(Permission.objects.get(codename="approve_toolcall"))
    return User.objects.get(pk=user.pk)


def decide(user: User, request: ApprovalRequest, decision: str = "approve", **answer: Any) -> Any:
    return decide_approval(request.id, DecisionRequest(decision, **answer), by=user)


def test_a_denied_call_is_not_made_or_asked_and_the_model_gets_the_reason(tmp_path: Path) -> None:
    rule = {"tool": "write_*", "action": "deny", "reason": "Nothing is written here."}
    _, run = run_of(tmp_path, approval_rules=[rule])
    call = ToolCall.objects.get()
    assert (run.status, call.status, call.code) == ("completed", "denied", "denied")
    assert "Nothing is written here." in call.result
    assert not StateFile.objects.exists()
    assert not ApprovalRequest.objects.exists()
    assert events(run, "tool.denied")[0]["by"] == "rule 1"


def test_the_first_rule_that_fits_decides(tmp_path: Path) -> None:
    rules = [{"tool": "write_file", "action": "allow"}, {"tool": "*", "action": "deny"}]
    _, run = run_of(tmp_path, approval_rules=rules)
    assert (run.status, ToolCall.objects.get().status) == ("completed", "succeeded")


def test_a_person_cannot_edit_a_call_into_a_denied_one(tmp_path: Path) -> None:
    too_large = {"larger_than": 100}
    rule = {"tool": "write_file", "when": too_large, "action": "deny", "reason": "Too long."}
    user, run = run_of(tmp_path, approval_rules=[rule])
    request = request_of(run)
    with pytest.raises(InvalidRequest, match="Too long"):
        decide(user, request, "edit", input={"path": "/a", "content": "x" * 200})
    request.refresh_from_db()
    assert request.status == "pending"


@pytest.mark.both_databases
def test_two_different_people_must_approve(tmp_path: Path) -> None:
    user, run = run_of(tmp_path, approvals_needed=2)
    grace, request = approver("grace"), request_of(run)
    assert "edit" not in request.allowed_decisions
    first = decide(user, request)
    assert (first.status, first.first_approver) == ("pending", user)
    with pytest.raises(Conflict, match="second person"):
        decide(user, request)
    assert decide(grace, request).decided_by == grace
    assert drive_to_end(run).status == "completed"
    assert "approval.seconded" in event_types(run)


def test_one_person_is_enough_to_reject(tmp_path: Path) -> None:
    user, run = run_of(tmp_path, approvals_needed=2)
    request = request_of(run)
    decide(approver("grace"), request)
    decide(user, request, "reject", reason="no")
    assert drive_to_end(run).status == "completed"
    assert ToolCall.objects.get().status == "rejected"


@pytest.mark.parametrize("decision", ["approve", "edit", "respond"])
def test_with_self_approval_off_nobody_approves_an_own_run(tmp_path: Path, decision: str) -> None:
    user, run = run_of(tmp_path, self_approval=False)
    request = request_of(run)
    answer: dict[str, Any] = {
        "edit": {"input": {"path": "/a", "content": "b"}},
        "respond": {"reason": "It is there."},
    }.get(decision, {})
    with pytest.raises(NotAllowed):
        decide(user, request, decision, **answer)
    user.is_superuser = True
    user.save()
    with pytest.raises(NotAllowed):
        decide(user, request, decision, **answer)
    decide(approver("grace"), request, decision, **answer)


def test_the_owner_may_always_reject(tmp_path: Path) -> None:
    user, run = run_of(tmp_path, self_approval=False)
    assert decide(user, request_of(run), "reject").decision == "reject"


def test_a_group_approves_for_its_agents_and_no_others(tmp_path: Path) -> None:
    _, run = run_of(tmp_path)
    request = request_of(run)
    grace, group = make_user("grace"), Group.objects.create(name="reviewers")
    grace.groups.add(group)
    with pytest.raises(NotFound):
        decide(grace, request)
    assert not watchable_runs_for(grace).exists()
    make_agent(make_user("kurt"), slug="other").approver_groups.add(group)
    with pytest.raises(NotFound):
        decide(grace, request)
    Agent.objects.get(slug="tester").approver_groups.add(group)
    assert list(approvals_for(grace)) == [request]
    assert list(watchable_runs_for(grace)) == [run]
    grace.is_active = False
    with pytest.raises(NotFound):
        decide(grace, request)
    grace.is_active = True
    assert decide(grace, request).decided_by == grace


def test_a_group_watches_only_runs_with_requests() -> None:
    user = make_user()
    agent = make_agent(user)
    run = start_run(user)
    grace, group = make_user("grace"), Group.objects.create(name="reviewers")
    grace.groups.add(group)
    agent.approver_groups.add(group)
    assert list(watchable_runs_for(user)) == [run]
    assert not watchable_runs_for(grace).exists()


@pytest.mark.both_databases
def test_an_unanswered_question_expires_and_the_run_continues(tmp_path: Path) -> None:
    user, run = run_of(tmp_path, approval_expiry=60)
    request = request_of(run)
    assert request.expires_at is not None
    assert not expire_approval()
    ApprovalRequest.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(Conflict, match="expired"):
        decide(user, request)
    assert expire_approval()
    assert not expire_approval()
    request.refresh_from_db()
    call = ToolCall.objects.get()
    assert (request.status, call.status, call.code) == ("expired", "rejected", "expired")
    assert drive_to_end(run).status == "completed"
    assert not StateFile.objects.exists()


@pytest.mark.both_databases
def test_the_workers_find_expired_requests(tmp_path: Path) -> None:
    _, run = run_of(tmp_path, approval_expiry=1)
    assert drive_to_end(run).status == "completed"
    assert ToolCall.objects.get().code == "expired"


def test_the_memory_of_a_shared_agent_is_not_for_its_users_to_change(tmp_path: Path) -> None:
    given = {"path": "knowledge/a.md", "content": "x", "reason": "y"}
    owner, _ = run_of(tmp_path, {"name": "write_memory", "input": given}, everyone=True)
    ada = make_user("guest")
    run = drive_to_end(start_run(ada), until=("waiting",))
    request = request_of(run)
    with pytest.raises(NotAllowed, match="shared"):
        decide(ada, request)
    assert decide(owner, request).decided_by == owner
