"""The run of an agent may go on while a request to change the memory waits for a person."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.features.approvals.jobs import expire_approval
from agents.features.approvals.pending_responses import pending_responses
from agents.models import ApprovalRequest, Run, ToolCall
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.errors import Conflict
from agents.services.runs.control import cancel_run
from memory.models import MemoryFile, MemoryRevision
from tests.agents.api.rows import client_for
from tests.support.memory import remembered
from tests.support.runs import drive_to_end, events, make_agent, make_user, script_file, start_run

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "knowledge/notes.md"


def remember(content: str, path: str = PATH) -> dict[str, Any]:
    given = {"path": path, "content": content, "reason": "It was said."}
    return {"name": "write_memory", "input": given}


def asked(tmp_path: Path, *calls: dict[str, Any], **fields: Any) -> tuple[User, Run]:
    user = make_user()
    model = script_file(tmp_path, [{"tool_calls": list(calls)}, *[{"text": "Done."}] * 3])
    make_agent(user, model=model, **{"memory_requests": "continue", **fields})
    return user, drive_to_end(start_run(user), until=("waiting", "completed"))


def request_of(run: Run) -> ApprovalRequest:
    return ApprovalRequest.objects.get(run=run, kind="memory", status="pending")


def decide(user: User, request: ApprovalRequest, decision: str, **answer: Any) -> None:
    decide_approval(request.pk, DecisionRequest(decision, request.digest, **answer), by=user)


def stored(path: str = PATH) -> str | None:
    return MemoryFile.objects.filter(path=path).values_list("content", flat=True).first()


@pytest.mark.both_databases
def test_the_run_ends_and_the_decision_changes_the_memory_later(tmp_path: Path) -> None:
    user, run = asked(tmp_path, remember("Ada likes tables."))
    assert run.status == "completed"
    assert "A person is asked" in ToolCall.objects.get().result
    (told,) = events(run, "approval.requested")
    request = request_of(run)
    assert (told["approval_id"], told["call_id"]) == (request.pk, None)
    assert stored() is None
    assert pending_responses(request, user).offered == ("approve", "edit", "reject")

    decide(user, request, "approve")
    revision = MemoryRevision.objects.get()
    assert (revision.source, revision.created_by) == ("approval", user)
    assert stored() == "Ada likes tables."
    run.refresh_from_db()
    assert run.status == "completed"
    assert not events(run, "approval.decided")
    after = drive_to_end(start_run(user, thread=run.thread_id))
    assert after.opening_note == f"Your memory has changed since: {PATH}."


@pytest.mark.parametrize(
    ("decision", "answer", "content"),
    [("reject", {"reason": "No"}, None), ("edit", {"input": {"content": "Mine"}}, "Mine")],
)
def test_other_decisions_after_the_end(
    tmp_path: Path, decision: str, answer: dict[str, Any], content: str | None
) -> None:
    user, run = asked(tmp_path, remember("x"))
    decide(user, request_of(run), decision, **answer)
    assert stored() == content
    assert ApprovalRequest.objects.get().status == "decided"
    assert ToolCall.objects.get().status == "succeeded"


def test_the_rest_api_lists_and_decides_it(tmp_path: Path) -> None:
    user, _ = asked(tmp_path, remember("x"))
    client = client_for(user)
    (shape,) = client.get("/api/v1/approvals?status=pending").json()["results"]
    assert (shape["call_id"], shape["memory"]["path"]) == (None, PATH)
    assert shape["allowed_decisions"] == ["approve", "edit", "reject"]
    url = f"/api/v1/approvals/{shape['id']}/decide"
    answer = {"decision": "approve", "digest": shape["digest"]}
    assert client.post(url, answer, format="json").status_code == 200
    assert stored() == "x"


def test_it_does_not_hold_or_wake_a_run_that_waits_for_another_decision(tmp_path: Path) -> None:
    other = {"name": "ls", "input": {"path": "/"}}
    user, run = asked(tmp_path, remember("x"), other, interrupt_on={"ls": True})
    assert run.status == "waiting"
    (suspended,) = events(run, "run.suspended")
    ls = ApprovalRequest.objects.get(tool="ls")
    assert suspended["approval_ids"] == [ls.pk]
    request = request_of(run)
    decide(user, ls, "approve")
    run = drive_to_end(run)
    assert run.status == "completed"
    decide(user, request, "approve")
    assert stored() == "x"


def test_a_decision_in_between_is_in_the_log_and_the_run_still_waits(tmp_path: Path) -> None:
    other = {"name": "ls", "input": {"path": "/"}}
    user, run = asked(tmp_path, remember("x"), other, interrupt_on={"ls": True})
    decide(user, request_of(run), "approve")
    run.refresh_from_db()
    assert run.status == "waiting"
    assert len(events(run, "approval.decided")) == len(events(run, "memory.changed")) == 1


def test_it_stays_when_the_run_is_cancelled(tmp_path: Path) -> None:
    other = {"name": "ls", "input": {"path": "/"}}
    user, run = asked(tmp_path, remember("x"), other, interrupt_on={"ls": True})
    cancel_run(run.pk, by="ada", reason="enough")
    assert ApprovalRequest.objects.get(tool="ls").status == "cancelled"
    decide(user, request_of(run), "approve")
    assert stored() == "x"


def test_a_file_that_has_changed_is_asked_about_again(tmp_path: Path) -> None:
    user, run = asked(tmp_path, remember("x"))
    first = request_of(run)
    remembered(run.agent_version.agent, notes="Other")
    with pytest.raises(Conflict, match="asks again"):
        decide(user, first, "approve")
    second = request_of(run)
    assert second.pk != first.pk
    decide(user, second, "approve")
    assert stored() == "x"


def test_it_expires_without_waking_anything(tmp_path: Path) -> None:
    _, run = asked(tmp_path, remember("x"), approval_expiry=3600)
    assert not expire_approval()
    ApprovalRequest.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert expire_approval()
    assert ApprovalRequest.objects.get().status == "expired"
    assert stored() is None
    run.refresh_from_db()
    assert run.status == "completed"


def test_a_run_with_many_requests_waits(tmp_path: Path) -> None:
    calls = [remember("x", path=f"knowledge/{number}.md") for number in range(20)]
    user = make_user()
    turns = [{"tool_calls": calls}, {"tool_calls": [remember("x")]}, {"text": "Done."}]
    make_agent(user, model=script_file(tmp_path, turns), memory_requests="continue")
    run = drive_to_end(start_run(user), until=("waiting", "completed"))
    assert run.status == "waiting"
    assert ApprovalRequest.objects.filter(tool_call=None).count() == 20
    assert ApprovalRequest.objects.exclude(tool_call=None).count() == 1


def test_writes_of_the_file_tools_wait(tmp_path: Path) -> None:
    call = {"name": "write_file", "input": {"path": f"/memory/{PATH}", "content": "x"}}
    _, run = asked(tmp_path, call)
    assert run.status == "waiting"
