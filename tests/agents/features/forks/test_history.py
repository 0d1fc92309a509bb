"""The part of the conversation that a fork has at its start."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from agents.events.append import dump
from agents.models import (
    ApprovalGrant,
    Compaction,
    CompactionAuthor,
    Message,
    MessageImage,
    MessageRole,
    Run,
    Thread,
    ToolCall,
    Upload,
)
from agents.services.agent_definitions.actions import save_agent
from agents.services.files.uploads import store_uploads
from agents.states import RunStatus, ToolCallStatus
from skills_app.models import ActiveSkill, SkillUse, UseKind
from tests.agents.api.rows import (
    answer_run,
    client_for,
    make_agent,
    make_run,
    make_user,
    post,
    problem_of,
)
from tests.agents.api.test_transcript import call, say, text
from tests.support.skills import package, store_skill

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    """Create a run that ends in its second turn; its agent has no sandbox."""
    make_agent(sandbox=False)
    run = make_run(make_user("ann"), message="First question")
    answer_run(run, "First answer")
    say(run, 2, text("Second answer"))
    return run


def fork(run: Run, by: User | None = None, **body: Any) -> Any:
    asked = {"files": "none", **body}
    return post(client_for(by or run.owner), f"/api/v1/runs/{run.id}/fork", asked)


def forked(run: Run, **body: Any) -> Thread:
    response = fork(run, **body)
    assert response.status_code == 201, response.json()
    return Thread.objects.get(pk=response.json()["thread"]["id"])


def said(thread: Thread) -> list[str]:
    rows = Message.objects.filter(run__thread=thread).order_by("run__number", "turn")
    return [row.text for row in rows]


def later_run(run: Run, message: str = "Later question") -> Run:
    later = make_run(run.owner, thread=run.thread_id, message=message)
    answer_run(later, "Later answer")
    return later


def test_later_turns_and_runs_are_not_copied(run: Run) -> None:
    call(run, 1, "early")
    call(run, 2, "late")
    later = later_run(run)
    call(later, 1, "later")
    thread = forked(run, step=1)
    assert said(thread) == ["First question", "First answer"]
    calls = ToolCall.objects.filter(run__thread=thread)
    assert list(calls.values_list("call_id", flat=True)) == ["early"]
    whole = ["First question", "First answer", "Second answer"]
    # The earlier runs have all their turns.
    assert said(forked(later, step=0)) == [*whole, "Later question"]


def test_calls_that_had_begun_may_have_happened(run: Run) -> None:
    for status in (ToolCallStatus.STARTED, ToolCallStatus.WAITING, ToolCallStatus.SUCCEEDED):
        call(run, 2, status, "done" if status == ToolCallStatus.SUCCEEDED else None, status=status)
    copies = ToolCall.objects.filter(run__thread=forked(run))
    begun, waiting, succeeded = (json.loads(row.result) for row in copies.order_by("position"))
    assert "its outcome is unknown" in begun
    assert waiting.startswith("Not run: the conversation was forked")
    assert succeeded == "done"
    closed = copies.filter(status="cancelled", is_error=True, code="forked")
    assert closed.exclude(finished_at=None).count() == 2


def test_a_permission_that_a_call_used_is_not_the_copys(run: Run) -> None:
    grant = ApprovalGrant.objects.create(
        agent=run.thread.agent,
        tool="ls",
        max_uses=1,
        created_by=run.owner,
        expires_at=timezone.now() + timedelta(days=1),
    )
    call(run, 1, grant=grant)
    assert ToolCall.objects.get(run__thread=forked(run)).grant is None


@pytest.mark.slow
@pytest.mark.both_databases
def test_copied_replies_cost_nothing(run: Run) -> None:
    Message.objects.filter(run=run, turn=1).update(input_tokens=70, cost_microusd=9)
    client = client_for(run.owner)
    before = client.get("/api/v1/usage").json()
    copy = Message.objects.get(run__thread=forked(run), turn=1)
    assert (copy.input_tokens, copy.cost_microusd) == (0, 0)
    assert client.get("/api/v1/usage").json() == before


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"status": RunStatus.PENDING}, "pending"),
        ({"message_refused": True}, "message_blocked"),
    ],
)
def test_messages_that_the_agent_has_not_received_are_not_forked(
    run: Run, fields: dict[str, str], code: str
) -> None:
    Run.objects.filter(pk=run.pk).update(**fields)
    response = fork(run)
    assert (response.status_code, problem_of(response)["code"]) == (409, code)
    assert Thread.objects.count() == 1


def test_a_subagents_run_is_not_forked(run: Run) -> None:
    child = make_run(run.owner)
    Run.objects.filter(pk=child.pk).update(parent=run)
    assert problem_of(fork(child))["code"] == "subagent"


def test_a_blocked_message_is_in_no_fork(run: Run) -> None:
    blocked = make_run(run.owner, thread=run.thread_id, message="Bad words")
    Run.objects.filter(pk=blocked.pk).update(status="failed", message_refused=True)
    assert "Bad words" not in said(forked(later_run(run)))


def test_an_older_version_needs_every_right_to_change_the_agent(run: Run) -> None:
    agent = run.thread.agent
    agent.interrupt_on = {"write_file": True}
    save_agent(agent)
    for codename in ("change_agent", "configure_sandbox"):
        run.owner.user_permissions.add(Permission.objects.get(codename=codename))
        assert problem_of(fork(run, message="Again"))["code"] == "agent_changed"
    run.owner.user_permissions.add(Permission.objects.get(codename="configure_approval"))
    assert fork(run, message="Again").status_code == 201


def compact(run: Run, number: int, until_turn: int) -> None:
    Compaction.objects.create(
        thread=run.thread,
        run=run,
        number=number,
        until_run=run.number,
        until_turn=until_turn,
        kept_bytes=100,
        by=CompactionAuthor.MODEL,
        opening=f"Summary {number}",
        tokens_before=10,
        tokens_after=1,
    )


@pytest.mark.both_databases
def test_a_summary_of_later_turns_is_not_copied(run: Run) -> None:
    compact(run, 1, 1)
    compact(run, 2, 2)
    later = later_run(run)
    compact(later, 3, 1)
    for step, openings in ((0, []), (1, ["Summary 1"]), (2, ["Summary 1", "Summary 2"])):
        rows = forked(run, step=step).compactions.order_by("number")
        assert [row.opening for row in rows] == openings, step
        assert {row.run.thread_id for row in rows} <= {row.thread_id for row in rows}


@pytest.mark.both_databases
def test_a_skill_that_was_loaded_later_is_not_loaded(run: Run, tmp_path: Path) -> None:
    later = later_run(run)
    for name, where, call_id in (("stew", run, "a"), ("beans", run, "b"), ("rice", later, "c")):
        call(where, 1 if name == "stew" else 2, call_id)
        version = store_skill(package(tmp_path, name))
        SkillUse.objects.create(run=where, version=version, kind=UseKind.LOADED, call_id=call_id)
    for step, names in ((1, ["stew"]), (2, ["stew", "beans"])):
        active = ActiveSkill.objects.filter(thread=forked(run, step=step)).order_by("pk")
        assert list(active.values_list("name", flat=True)) == names


def test_uploads_come_along_only_with_files(run: Run) -> None:
    store_uploads(run.thread, [SimpleUploadedFile("told.txt", b"x")], run=run)
    store_uploads(run.thread, [SimpleUploadedFile("next.txt", b"x")])
    assert not forked(run).uploads.exists()
    thread = forked(run, files="now")
    told, untold = thread.uploads.order_by("pk")
    assert told.run is not None
    assert (told.name, told.run.thread_id, untold.name, untold.run) == (
        "told.txt",
        thread.pk,
        "next.txt",
        None,
    )
    assert Upload.objects.filter(thread=run.thread_id, run=run).get().name == "told.txt"


@pytest.mark.both_databases
def test_pictures_of_a_message_are_the_forks_own(run: Run) -> None:
    image = MessageImage.objects.create(
        thread=run.thread, media_type="image/png", size=3, data=b"png"
    )
    blocks = [{"type": "image", "source": {"type": "stored", "id": image.pk}}]
    Run.objects.filter(pk=run.pk).update(attachments=dump(blocks))
    thread = forked(run)
    copy = MessageImage.objects.get(thread=thread)
    assert bytes(copy.data) == b"png"
    attachments = Run.objects.get(thread=thread).attachments
    assert copy.pk in attachments
    assert image.pk not in attachments
    assert MessageImage.objects.get(thread=run.thread_id).pk == image.pk


def test_a_threads_last_run_is_never_a_copy(run: Run) -> None:
    shape = fork(run).json()["thread"]
    assert (shape["last_run"], shape["last_status"]) == (None, None)
    assert Run.objects.get(thread=shape["id"]).messages.filter(role=MessageRole.USER).exists()
