"""Park for an approval and continue after the decision: invariants 3 and 4."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.models import ApprovalRequest, Run, StateFile, ToolCall
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.errors import Conflict, InvalidRequest, NotFound
from agents.services.runs.control import cancel_run
from tests.support.runs import (
    drive_to_end,
    event_types,
    events,
    make_agent,
    make_user,
    script_file,
    start_run,
)

pytestmark = pytest.mark.django_db(transaction=True)


def write(path: str, content: str = "x") -> dict[str, Any]:
    return {"name": "write_file", "input": {"path": path, "content": content}}


def parked_run(
    tmp_path: Path, *calls: dict[str, Any], interrupt_on: Any = None
) -> tuple[User, Run, list[ApprovalRequest]]:
    user = make_user()
    model = script_file(tmp_path, [{"tool_calls": list(calls)}, {"text": "Done."}])
    make_agent(user, model=model, interrupt_on=interrupt_on or {"write_file": True})
    run = drive_to_end(start_run(user), until=("waiting",))
    return user, run, pending(run)


def pending(run: Run) -> list[ApprovalRequest]:
    return list(
        ApprovalRequest.objects.filter(run=run, status="pending").order_by("created_at", "id")
    )


def approve(user: User, request: ApprovalRequest, **answer: Any) -> ApprovalRequest:
    values = {"decision": "approve", "digest": request.digest, **answer}
    return decide_approval(request.id, DecisionRequest(**values), by=user)


def test_a_parked_run_holds_nothing(tmp_path: Path) -> None:
    _, run, requests = parked_run(tmp_path, write("/a"))
    run.clock.refresh_from_db()
    clock = run.clock
    assert (run.wait_reason, clock.lease_until, clock.lease_holder) == ("approval", None, "")
    assert [request.tool for request in requests] == ["write_file"]
    assert not StateFile.objects.exists()
    asked = events(run, "approval.requested")[0]
    assert asked["digest"] == requests[0].digest
    assert event_types(run)[-1] == "run.suspended"


def test_an_approved_call_runs_and_the_run_continues(tmp_path: Path) -> None:
    user, run, [request] = parked_run(tmp_path, write("/a", "alpha"))
    approve(user, request)
    run = drive_to_end(run)
    assert run.status == "completed"
    assert bytes(StateFile.objects.get().content) == b"alpha"
    assert ToolCall.objects.get().status == "succeeded"


def test_a_rejection_gives_the_model_the_reason(tmp_path: Path) -> None:
    user, run, [request] = parked_run(tmp_path, write("/a"))
    approve(user, request, decision="reject", reason="wrong file")
    run = drive_to_end(run)
    call = ToolCall.objects.get()
    assert (run.status, call.status) == ("completed", "rejected")
    assert "wrong file" in call.result
    assert not StateFile.objects.exists()


@pytest.mark.slow
def test_an_edit_runs_the_persons_input_and_the_history_keeps_the_models_input(
    tmp_path: Path,
) -> None:
    user, run, [request] = parked_run(tmp_path, write("/a", "model"))
    approve(user, request, decision="edit", input={"path": "/a", "content": "person"})
    run = drive_to_end(run)
    assert run.status == "completed"
    assert bytes(StateFile.objects.get().content) == b"person"
    call = ToolCall.objects.get()
    assert json.loads(call.input)["content"] == "model"
    assert "changed by a person" in call.result


def test_an_edit_that_does_not_fit_the_tool_is_a_result_not_a_crash(tmp_path: Path) -> None:
    user, run, [request] = parked_run(tmp_path, write("/a"))
    approve(user, request, decision="edit", input={"path": 7})
    run = drive_to_end(run)
    assert (run.status, ToolCall.objects.get().status) == ("completed", "invalid")


def test_a_response_is_the_result(tmp_path: Path) -> None:
    user, run, [request] = parked_run(tmp_path, write("/a"))
    approve(user, request, decision="respond", reason="It is there already.")
    run = drive_to_end(run)
    call = ToolCall.objects.get()
    assert (run.status, call.status, call.result_content) == (
        "completed", "answered", "It is there already.",
    )  # fmt: skip


def test_calls_without_approval_run_before_a_request(tmp_path: Path) -> None:
    _, run, requests = parked_run(
        tmp_path, write("/a"), {"name": "ls", "input": {"path": "/"}}, write("/b")
    )
    assert [call.status for call in ToolCall.objects.filter(run=run)] == [
        "waiting",
        "succeeded",
        "waiting",
    ]
    assert len(requests) == 2


@pytest.mark.slow
@pytest.mark.both_databases
def test_the_runs_own_approved_edit_renews_a_pending_request(tmp_path: Path) -> None:
    user, run, [first, second] = parked_run(tmp_path, write("/a"), write("/b"))
    approve(user, first)
    run.refresh_from_db()
    assert run.status == "waiting"
    approve(user, second)
    run = drive_to_end(run, until=("waiting", "completed"))
    assert run.status == "waiting", "the workspace changed after the second was approved"
    second.refresh_from_db()
    [again] = pending(run)
    assert second.status == "superseded"
    assert again.id != second.id
    assert again.digest != second.digest
    assert StateFile.objects.count() == 1
    approve(user, again)
    run = drive_to_end(run)
    assert (run.status, StateFile.objects.count()) == ("completed", 2)


@pytest.mark.both_databases
def test_a_decision_counts_once_and_only_for_the_shown_call(tmp_path: Path) -> None:
    user, _, [request] = parked_run(tmp_path, write("/a"))
    with pytest.raises(Conflict):
        approve(user, request, digest="0" * 64)
    with pytest.raises(InvalidRequest):
        approve(user, request, decision="perhaps")
    with pytest.raises(InvalidRequest):
        approve(user, request, input={"path": "/etc/other", "content": "not what was shown"})
    with pytest.raises(NotFound):
        approve(make_user("eve"), request)
    approve(user, request)
    with pytest.raises(Conflict):
        approve(user, request)
    with pytest.raises(Conflict):
        approve(user, request, decision="reject")


def test_only_the_allowed_decisions_may_be_taken(tmp_path: Path) -> None:
    only = {"write_file": {"allowed_decisions": ["approve", "reject"]}}
    user, _, [request] = parked_run(tmp_path, write("/a"), interrupt_on=only)
    with pytest.raises(InvalidRequest):
        approve(user, request, decision="edit", input={"path": "/b", "content": ""})


def test_a_cancelled_run_takes_its_requests_with_it(tmp_path: Path) -> None:
    user, run, [request] = parked_run(tmp_path, write("/a"))
    cancel_run(run.id, by="ada")
    request.refresh_from_db()
    run.refresh_from_db()
    assert (run.status, request.status) == ("cancelled", "cancelled")
    with pytest.raises(Conflict):
        approve(user, request)
    assert not StateFile.objects.exists()


def test_an_approved_input_is_recognized_after_storage_as_json(
    tmp_path: Path,
) -> None:
    odd = {"replace_all": False, "old_text": "1.0e2 \u00e9", "new_text": "x", "path": "/a"}
    call = {"name": "edit_file", "input": odd}
    user, run, [request] = parked_run(tmp_path, call, interrupt_on={"edit_file": True})
    request.refresh_from_db()
    assert json.dumps(request.input) == json.dumps(odd)
    approve(user, request)
    run = drive_to_end(run, until=("completed", "waiting"))
    assert run.status == "completed", "it was asked again although nothing changed"
