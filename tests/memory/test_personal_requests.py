"""Requests to change `me/`: only the person whose run asks sees and decides them, at any door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from agents.events.read import stored_events
from agents.features.notifications.models import Notification, NotificationTarget
from agents.middleware.decisions import decide
from agents.models import Agent, ApprovalRequest, AuditEntry, RunEvent, ToolCall
from agents.selectors.visible import approvals_for
from agents.services.approvals.decisions import DecisionRequest
from agents.services.errors import Conflict, NotAllowed, NotFound
from memory.actions.changes import write_file
from memory.actions.purge import purge_history
from memory.erasure import remembered_from
from memory.frames import frames_after, frames_again
from memory.models import MemoryEditRequest, MemoryFile, MemoryRevision
from memory.queries.files import memory_revisions
from tests.agents.api.rows import client_for, make_user
from tests.memory.test_cli import Here, here
from tests.support import site_writer
from tests.support.runs import drive_to_end, make_agent, script_file, start_run

__all__ = ["here"]

pytestmark = pytest.mark.django_db(transaction=True)

FOOD = "me/food.md"
SECRET = "Allergic to nuts."
"""It is in the file, but not in the prompt and not in the call."""
BEFORE = f"Food\n\n{SECRET}\n"
NO_SELF_APPROVAL = {"self_approval": False, "approvals_needed": 2}


@pytest.fixture
def agent() -> Agent:
    """An agent for all users. olga owns it, and gus approves for it. ann has a memory with it."""
    found = make_agent(make_user("olga"), everyone=True, **NO_SELF_APPROVAL)
    approvers = Group.objects.create(name="approvers")
    found.approver_groups.add(approvers)
    make_user("gus").groups.add(approvers)
    make_user("boss", "approve_toolcall", "view_all_runs")
    make_user("root", superuser=True)
    make_user("bob")
    for name, content in (("ann", BEFORE), ("bob", "Likes soup.")):
        person = User.objects.filter(username=name).first() or make_user(name)
        write_file(found, FOOD, content, by=person, source="web")
    return found


OTHERS = ("bob", "olga", "gus", "boss", "root")


def user(name: str) -> User:
    return User.objects.get(username=name)


def asked(**given: Any) -> ApprovalRequest:
    """Return ann's pending request to add a line to her file."""
    run = start_run(user("ann"))
    given = {"content": "Likes tea.", "operation": "append", "reason": "Tea was named.", **given}
    return ApprovalRequest.objects.get(pk=site_writer.ask_memory(run.pk, FOOD, **given))


def content_of(name: str) -> str | None:
    found = MemoryFile.every.filter(person=user(name), path=FOOD)
    return found.values_list("content", flat=True).first()


def answer(decision: str, request: ApprovalRequest, **more: Any) -> DecisionRequest:
    return DecisionRequest(decision, request.digest, **more)


@pytest.mark.both_databases
@pytest.mark.parametrize("name", OTHERS)
def test_only_the_person_sees_and_decides_it(agent: Agent, name: str) -> None:
    request, other = asked(), user(name)
    run = request.run_id
    for decision in ("approve", "reject"):
        with pytest.raises(NotFound):
            decide(request.pk, answer(decision, request), by=other)

    rest = client_for(other)
    assert rest.get("/api/v1/approvals").json()["results"] == []
    assert rest.get(f"/api/v1/approvals/{request.pk}").status_code == 404
    body = {"decision": "reject", "digest": request.digest}
    url = f"/api/v1/approvals/{request.pk}/decide"
    assert rest.post(url, body, format="json").status_code == 404
    events = rest.get(f"/api/v1/runs/{run}/events")
    assert events.status_code == (200 if name in ("boss", "root") else 404)
    assert "Tea was named" not in events.content.decode()

    event = RunEvent.objects.filter(run=run, type="approval.requested").get()
    frames = [*frames_after(event_of(event), other), *frames_again(run, event.seq, other)]
    assert frames == []

    User.objects.filter(pk=other.pk).update(is_staff=True)
    browser = Client()
    browser.force_login(user(name))
    edit = MemoryEditRequest.every.get()
    pages = [
        "/approvals/",
        f"/approvals/{request.pk}/",
        f"/agents/{agent.slug}/knowledge/",
        f"/runs/{run}/",
        "/admin/agents/approvalrequest/",
        f"/admin/agents/approvalrequest/{request.pk}/change/",
        f"/admin/agents/run/{run}/change/",
        "/admin/memory/memoryeditrequest/",
        f"/admin/memory/memoryeditrequest/{edit.pk}/change/",
    ]
    for page in pages:
        shown = browser.get(page).content.decode()
        assert SECRET not in shown, page
        # The call itself is a part of the conversation, which people with permission can read.
        assert "Tea was named" not in shown or f"/run/{run}" in page, page
        assert f"approvalrequest/{request.pk}" not in shown, page
    browser.post(f"/approvals/{request.pk}/decide/", {**body, "reason": ""})
    form = {"action": "reject_selected", "_selected_action": request.pk, "confirmed": "yes"}
    form[f"digest_{request.pk}"] = request.digest
    browser.post("/admin/agents/approvalrequest/", form)
    request.refresh_from_db()
    assert request.status == "pending"
    assert content_of("ann") == BEFORE


def event_of(row: RunEvent) -> Any:
    rows = RunEvent.objects.filter(pk=row.pk).values_list("seq", "type", "data", "created_at")
    return next(iter(stored_events(row.run_id, rows)))


def test_the_command_of_another_account_does_not_show_it(here: Here, agent: Agent) -> None:
    request = asked()
    assert here("approvals", "list")[1].count(request.pk) == 0
    assert here("approvals", "show", request.pk)[0] == 2
    for out in here("runs", "resume", request.run_id, stdin="approve\n")[1:]:
        assert SECRET not in out
        assert request.pk not in out
    assert here("approvals", "decide", request.pk, "approve")[0] == 2
    assert content_of("ann") == BEFORE


def test_it_sends_no_notification_and_appears_in_no_log(agent: Agent) -> None:
    NotificationTarget.objects.create(kind="webhook", address="https://example.org/", secret="s")
    request = asked()
    decide(request.pk, answer("edit", request, input={"content": "No tea."}, reason="I prefer it."),
           by=user("ann"))  # fmt: skip
    assert content_of("ann") == "No tea."
    assert not Notification.objects.exists()
    for entry in AuditEntry.objects.filter(action__startswith="approval."):
        assert "prefer" not in str(vars(entry))
    for entry in AuditEntry.objects.all():
        assert "food" not in str(vars(entry))
    browser = Client()
    browser.force_login(user("root"))
    page = browser.get(f"/admin/agents/run/{request.run_id}/change/").content.decode()
    assert "prefer" not in page
    assert "No tea" not in page
    for row in RunEvent.objects.filter(type__in=("approval.requested", "memory.changed")):
        assert "food" not in row.data
        assert "tea" not in row.data.lower()
    assert "No tea" not in ToolCall.objects.get().result
    assert remembered_from(request.run.thread_id)[0].name == "me/"


@pytest.mark.both_databases
def test_the_person_decides_alone_and_only_the_own_file_changes(agent: Agent) -> None:
    request = asked()
    ann = client_for(user("ann"))
    (shown,) = ann.get("/api/v1/approvals").json()["results"]
    assert shown["memory"]["current_content"] == BEFORE
    assert shown["memory"]["proposed_content"] == f"{BEFORE}Likes tea."
    assert "approve" in shown["allowed_decisions"]
    browser = Client()
    browser.force_login(user("ann"))
    assert "Only you see this request" in browser.get("/approvals/").content.decode()
    body = {"decision": "approve", "digest": request.digest}
    decided = ann.post(f"/api/v1/approvals/{request.pk}/decide", body, format="json")
    assert decided.json()["status"] == "decided"
    assert content_of("ann") == f"{BEFORE}Likes tea."
    assert content_of("bob") == "Likes soup."
    write_file(agent, FOOD, "Likes rice.", by=user("bob"), source="web")
    assert not MemoryRevision.objects.exists()
    ids = {name: memory_revisions(agent.pk, FOOD, user(name).pk)[0].approval_id
           for name in ("ann", "bob")}  # fmt: skip
    assert ids == {"ann": request.pk, "bob": None}


def test_an_approver_does_not_watch_a_run_with_private_requests_only(agent: Agent) -> None:
    request = asked()
    gus = client_for(user("gus"))
    events = f"/api/v1/runs/{request.run_id}/events"
    assert gus.get(events).status_code == 404
    # With a request about something else, the approver sees the run, but not the private request.
    site_writer.ask_memory(request.run_id, "knowledge/tea.md", "Tea.", call_id="toolu_2")
    assert gus.get(events).status_code == 200
    (shown,) = gus.get("/api/v1/approvals").json()["results"]
    assert shown["memory"]["path"] == "knowledge/tea.md"


def test_a_changed_file_is_asked_about_again_and_stays_private(agent: Agent) -> None:
    request = asked()
    write_file(agent, FOOD, f"{BEFORE}Likes rice.\n", by=user("ann"), source="web")
    with pytest.raises(Conflict):
        decide(request.pk, answer("approve", request), by=user("ann"))
    assert not approvals_for(user("root")).exists()
    again = approvals_for(user("ann")).get(status="pending")
    decide(again.pk, answer("approve", again), by=user("ann"))
    assert content_of("ann") == f"{BEFORE}Likes rice.\nLikes tea."


def test_a_person_who_lost_the_agent_can_only_reject(agent: Agent) -> None:
    request = asked()
    Agent.objects.update(everyone=False)
    with pytest.raises(NotAllowed):
        decide(request.pk, answer("approve", request), by=user("ann"))
    decide(request.pk, answer("reject", request), by=user("ann"))
    assert content_of("ann") == BEFORE


def test_a_purge_erases_the_own_requests_only(agent: Agent) -> None:
    request = asked()
    decide(request.pk, answer("approve", request), by=user("ann"))
    assert purge_history(agent, FOOD, by=user("bob"), source="web").requests == 0
    assert purge_history(agent, FOOD, by=user("ann"), source="web").requests == 1
    edit = MemoryEditRequest.every.get()
    assert (edit.previous_content, edit.proposed_content, edit.reason) == (None, None, "")


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("tool", "given", "requests"),
    [
        ("write_memory", {"path": FOOD, "content": "Tea.", "reason": "Tea was named."}, "wait"),
        ("write_memory", {"path": FOOD, "content": "Tea.", "reason": "Tea was named."}, "continue"),
        ("write_file", {"path": f"/memory/{FOOD}", "content": "Tea."}, "wait"),
        ("edit_file", {"path": f"/memory/{FOOD}", "old_text": BEFORE, "new_text": "Tea."}, "wait"),
    ],
    ids=["wait", "continue", "file", "edit"],
)
def test_the_agent_of_a_conversation_proposes_a_change(
    agent: Agent, tmp_path: Path, tool: str, given: dict[str, Any], requests: str
) -> None:
    turns: list[dict[str, Any]] = [{"tool_calls": [{"name": tool, "input": given}]}]
    agent.model = script_file(tmp_path, [*turns, {"text": "Done."}])
    agent.memory_requests, agent.memory_saving = requests, "save"
    agent.save()
    run = drive_to_end(start_run(user("ann")), until=("waiting", "completed", "failed"))
    assert run.status == ("waiting" if requests == "wait" else "completed")
    request = ApprovalRequest.objects.get()
    assert (request.is_private, request.approvals_needed) == (True, 1)
    assert not approvals_for(user("root")).exists()
    decide(request.pk, answer("approve", request), by=user("ann"))
    assert content_of("ann") == "Tea."
    assert "saved" in ToolCall.objects.get().result or requests == "continue"
