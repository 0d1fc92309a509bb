"""Edits of the memory require approval, and the decision makes them once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.models import ApprovalRequest, Run, ToolCall
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.errors import Conflict, InvalidRequest
from memory.actions.edits import store_change
from memory.folders import Change
from memory.limits import MAX_FILE_BYTES
from memory.models import MemoryFile, MemoryRevision, Operation
from tests.support.runs import drive_to_end, events, make_agent, make_user, script_file, start_run

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "knowledge/notes.md"


def remember(content: str, path: str = PATH, **fields: Any) -> dict[str, Any]:
    given = {"path": path, "content": content, "reason": "It was said.", **fields}
    return {"name": "write_memory", "input": given}


def asked(tmp_path: Path, *calls: dict[str, Any]) -> tuple[User, Run, list[ApprovalRequest]]:
    user = make_user()
    model = script_file(tmp_path, [{"tool_calls": list(calls)}, {"text": "Done."}])
    make_agent(user, model=model)
    run = drive_to_end(start_run(user), until=("waiting", "completed"))
    requests = ApprovalRequest.objects.filter(run=run, status="pending").order_by("created_at")
    return user, run, list(requests)


def decide(user: User, request: ApprovalRequest, decision: str, **answer: Any) -> ApprovalRequest:
    return decide_approval(request.id, DecisionRequest(decision, **answer), by=user)


def stored(path: str = PATH) -> str | None:
    return MemoryFile.objects.filter(path=path).values_list("content", flat=True).first()


def written_by_another(run: Run, content: str, base: int = 0) -> None:
    change = Change(PATH, Operation.WRITE, content, base, source="web")
    store_change(run.agent_version.agent_id, change)


def test_nothing_is_written_before_a_person_approves_and_the_decision_writes_it(
    tmp_path: Path,
) -> None:
    user, run, [request] = asked(tmp_path, remember("Ada likes tables."))
    assert (request.kind, stored()) == ("memory", None)
    decide(user, request, "approve")
    assert stored() == "Ada likes tables."
    assert drive_to_end(run).status == "completed"
    assert ToolCall.objects.get().status == "succeeded"
    revision = MemoryRevision.objects.get()
    assert (revision.created_by, revision.source) == (user, "approval")
    assert revision.edit_request == request.memory_edit
    assert events(run, "memory.changed")[0]["path"] == PATH


def test_a_rejection_writes_nothing_and_gives_the_reason(tmp_path: Path) -> None:
    user, run, [request] = asked(tmp_path, remember("x"))
    decide(user, request, "reject", reason="not true")
    assert drive_to_end(run).status == "completed"
    assert stored() is None
    assert "not true" in ToolCall.objects.get().result


def test_an_edit_stores_the_persons_content(tmp_path: Path) -> None:
    user, run, [request] = asked(tmp_path, remember("model"))
    decide(user, request, "edit", input={"content": "person"})
    assert stored() == "person"
    assert drive_to_end(run).status == "completed"
    assert "person" in ToolCall.objects.get().result


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "given", [{"content": "x" * (MAX_FILE_BYTES + 1)}, {}, {"content": 7}, {"content": "x", "a": 1}]
)
def test_an_edit_that_does_not_fit_decides_nothing(tmp_path: Path, given: dict[str, Any]) -> None:
    user, _, [request] = asked(tmp_path, remember("model"))
    with pytest.raises(InvalidRequest):
        decide(user, request, "edit", input=given)
    request.refresh_from_db()
    assert (request.status, stored()) == ("pending", None)


def test_a_file_that_changed_since_is_shown_again(tmp_path: Path) -> None:
    user, run, [request] = asked(tmp_path, remember("mine", operation="append"))
    written_by_another(run, "theirs")
    with pytest.raises(Conflict, match="asks again"):
        decide(user, request, "approve")
    request.refresh_from_db()
    anew = ApprovalRequest.objects.get(run=run, status="pending")
    assert (request.status, anew.digest == request.digest) == ("superseded", False)
    assert anew.memory_edit is not None
    assert anew.memory_edit.proposed_content == "theirs\nmine"
    decide(user, anew, "approve")
    assert stored() == "theirs\nmine"


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (remember("x" * (MAX_FILE_BYTES + 1)), "larger"),
        (remember("x", "../etc/passwd"), "knowledge/"),
        (remember("x", "AGENTS.md"), "read-only"),
        (remember("", operation="delete"), "no knowledge/notes.md"),
        (remember("no head", "skills/report.md"), "head"),
    ],
)
def test_an_invalid_edit_is_refused_before_asking(
    tmp_path: Path, call: dict[str, Any], word: str
) -> None:
    _, run, requests = asked(tmp_path, call)
    assert (run.status, requests) == ("completed", [])
    refused = ToolCall.objects.get()
    assert (refused.status, refused.code) == ("invalid", "memory_refused")
    assert word in refused.result


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"reason": "It was said."}, "`content` is missing"),
        ({"reason": "It was said.", "operation": "append"}, "`content` is missing"),
        ({"reason": "It was said.", "content": " \n"}, "`content` is missing"),
        ({"content": "x"}, "reason"),
        ({"content": "x", "reason": ""}, "reason"),
        ({"content": "x", "reason": " \n "}, "reason"),
        ({"operation": "delete", "reason": ""}, "reason"),
    ],
)
def test_an_edit_without_content_or_reason_makes_no_request(
    tmp_path: Path, given: dict[str, str], word: str
) -> None:
    call = {"name": "write_memory", "input": {"path": PATH, **given}}
    _, run, requests = asked(tmp_path, call)
    assert (run.status, requests) == ("completed", [])
    refused = ToolCall.objects.get()
    assert (refused.status, refused.code) == ("invalid", "invalid_input")
    assert word in refused.result


@pytest.mark.slow
@pytest.mark.both_databases
def test_two_edits_of_one_file_in_one_turn_build_on_each_other(tmp_path: Path) -> None:
    user, run, [first, second] = asked(
        tmp_path, remember("one", operation="append"), remember("two", operation="append")
    )
    decide(user, first, "approve")
    with pytest.raises(Conflict):
        decide(user, second, "approve")
    decide(user, ApprovalRequest.objects.get(run=run, status="pending"), "approve")
    assert stored() == "one\ntwo"
    assert drive_to_end(run).status == "completed"
