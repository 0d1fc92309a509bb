"""Resume a run that ended without an answer."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.models import Agent, ApprovalRequest, Message, Run
from agents.services.runs.resume_ended import CONTINUE
from agents.states import RunStatus, WaitReason
from tests.agents.api.rows import (
    answer_run,
    ask_approval,
    client_for,
    make_agent,
    make_run,
    make_user,
    post,
    problem_of,
)
from tests.agents.engine.test_model_faults import served
from tests.support import runs
from tests.support.messages_script import ToolUse, Turn

pytestmark = pytest.mark.django_db


def resume(user: User, run: Run, body: Any = None, **headers: str) -> Any:
    return post(client_for(user), f"/api/v1/runs/{run.id}/resume", body or {}, **headers)


def ended(run: Run, status: str = RunStatus.FAILED, **fields: Any) -> Run:
    Run.objects.filter(pk=run.pk).update(status=status, **fields)
    run.refresh_from_db()
    return run


@pytest.fixture
def ann() -> User:
    make_agent()
    return make_user("ann")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_run_at_its_limit_continues_where_it_stopped() -> None:
    user = runs.make_user()
    with served([Turn(text="One.", tool_uses=[ToolUse("ls", {})])]):
        runs.make_agent(user, provider="anthropic", model="claude-sonnet-5-5", max_turns=1)
        run = runs.drive_to_end(runs.start_run(user, "Do it"))
    assert run.status == "failed"
    with served([Turn(text="Done.")]) as server:
        response = resume(user, run)
        assert response.status_code == 201, response.json()
        made = runs.drive_to_end(Run.objects.get(pk=response.json()["id"]))
    assert (made.status, server.violations) == ("completed", [])
    texts = str(server.requests[0].messages)
    assert texts.index("Do it") < texts.index("One.") < texts.index(CONTINUE)
    shape = response.json()
    assert (shape["resumed_from"], shape["thread"]) == (run.id, run.thread_id)
    assert response["Location"] == f"/api/v1/runs/{made.id}"


@pytest.mark.parametrize("status", [RunStatus.FAILED, RunStatus.CANCELLED])
def test_a_resumed_run_gets_a_default_or_the_given_message(ann: User, status: str) -> None:
    run = ended(make_run(ann), status)
    first = Run.objects.get(pk=resume(ann, run).json()["id"])
    assert first.messages.get().text == CONTINUE
    ended(first, status)
    second = resume(ann, first, {"message": "Only the end"}).json()
    assert Message.objects.get(run=second["id"]).text == "Only the end"
    assert second["resumed_from"] == first.id


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("status", "wait", "code", "told"),
    [
        (RunStatus.COMPLETED, "", "completed", "new message"),
        (RunStatus.RUNNING, "", "active", "in progress"),
        (RunStatus.QUEUED, "", "active", "in progress"),
        (
            RunStatus.WAITING,
            WaitReason.APPROVAL,
            "waiting",
            "/api/v1/approvals?status=pending&run=",
        ),
        (RunStatus.WAITING, WaitReason.CHILDREN, "waiting", "subagents"),
        (RunStatus.WAITING, "budget", "waiting", "budget"),
    ],
)
def test_an_active_run_is_not_resumed(
    ann: User, status: str, wait: str, code: str, told: str
) -> None:
    run = ended(make_run(ann), status, wait_reason=wait)
    problem = problem_of(resume(ann, run))
    assert (problem["status"], problem["code"]) == (409, code)
    assert told in problem["detail"]
    assert Run.objects.count() == 1


def test_after_later_messages_there_is_nothing_to_resume(ann: User) -> None:
    run = ended(make_run(ann))
    later = make_run(ann, thread=run.thread_id)
    assert problem_of(resume(ann, run))["code"] == "thread_went_on"
    answer_run(later, "Answered.")
    assert problem_of(resume(ann, run))["code"] == "thread_went_on"
    assert Run.objects.count() == 2


def test_a_blocked_message_and_a_subagents_run_are_not_resumed(ann: User) -> None:
    run = ended(make_run(ann), error_code="guardrail_input", message_refused=True)
    assert problem_of(resume(ann, run))["code"] == "message_blocked"
    other = ended(make_run(ann), parent=run, error_code="")
    assert problem_of(resume(ann, other))["code"] == "subagent"


def test_only_its_owner_resumes_it(ann: User) -> None:
    run = make_run(ann)
    ask_approval(run)
    ended(run)
    operator = make_user("olga", "view_all_runs")
    approver = make_user("paul", "approve_toolcall")
    assert resume(operator, run).status_code == 403
    assert resume(approver, run).status_code == 404
    assert resume(make_user("bob"), run).status_code == 404
    client = client_for(ann, "read", "approve")
    refused = post(client, f"/api/v1/runs/{run.id}/resume", {})
    assert problem_of(refused)["code"] == "insufficient_scope"
    Agent.objects.update(everyone=False)
    assert problem_of(resume(ann, run))["code"] == "unknown_agent"
    assert Run.objects.count() == ApprovalRequest.objects.count() == 1


def test_a_repeated_resume_is_one(ann: User) -> None:
    run = ended(make_run(ann))
    first = resume(ann, run, **{"Idempotency-Key": "k"})
    again = resume(ann, run, **{"Idempotency-Key": "k"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert Run.objects.count() == 2


@pytest.mark.parametrize("body", [{"message": 5}, {"decisions": []}, [], {"message": "x\x00"}])
def test_a_body_that_does_not_fit_is_refused(ann: User, body: Any) -> None:
    run = ended(make_run(ann))
    response = resume(ann, run, body)
    expected = 400 if body else 201  # an empty list is sent as {}
    assert response.status_code == expected
