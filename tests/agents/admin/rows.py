"""Rows in the state of a run of the engine, made without the engine: functions for set-up."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Permission, User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agents.events.append import append_events, dump
from agents.events.catalogue.messages import TextDelta
from agents.models import (
    Agent,
    ApprovalRequest,
    Message,
    MessageRole,
    Run,
    RunClock,
    ToolCall,
)
from agents.policy import AskTerms
from agents.services.agent_definitions.actions import current_version, save_agent
from agents.services.approvals.asking import ask_about_proposal, digest_of
from agents.services.runs.start import RunRequest, create_run
from agents.states import RunStatus, ToolCallStatus, WaitReason
from memory.edits import MemoryEdit
from memory.proposals import MEMORY_EDIT

PASSWORD = "a long enough one"
ALL_DECISIONS = ["approve", "edit", "reject", "respond"]


def superuser(name: str = "root") -> User:
    return User.objects.create_superuser(name, password=PASSWORD)


def user(name: str = "ada") -> User:
    return User.objects.create_user(name, password=PASSWORD)


def staff(name: str, *permissions: str) -> User:
    """Create a staff member with only these permissions of Vel's apps."""
    member = User.objects.create_user(name, password=PASSWORD, is_staff=True)
    found = Permission.objects.filter(
        Q(content_type__app_label="agents") | Q(content_type__app_label__startswith="vel_"),
        codename__in=permissions,
    )
    assert found.count() == len(permissions), permissions
    member.user_permissions.set(found)
    return member


def agent(slug: str = "coder", **fields: Any) -> Agent:
    return save_agent(Agent(slug=slug, **{"name": slug.capitalize(), "everyone": True, **fields}))


def run(owner: User, *, slug: str = "coder", message: str = "Do it.", **request: Any) -> Run:
    """Create a queued run of `owner`, as `create_run` does."""
    if not Agent.objects.filter(slug=slug).exists():
        agent(slug)
    return create_run(RunRequest(agent=slug, message=message, **request), owner=owner).run


def put(run: Run, status: str, *, wait_reason: str = WaitReason.NONE, **fields: Any) -> Run:
    """Set the run to this state, as a driver leaves it."""
    now = timezone.now()
    times = {"started_at": now - timedelta(seconds=75)} if status != RunStatus.QUEUED else {}
    if status in (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED):
        times["ended_at"] = now
    Run.objects.filter(pk=run.pk).update(status=status, wait_reason=wait_reason, **times, **fields)
    run.refresh_from_db()
    return run


def child(parent: Run, *, number: int) -> Run:
    made = Run.objects.create(
        thread=parent.thread,
        number=number,
        parent=parent,
        agent_version=current_version(parent.thread.agent),
        owner=parent.owner,
        source="task",
    )
    RunClock.objects.create(run=made)
    return made


def reply(run: Run, turn: int, text: str, *, calls: int = 0) -> Message:
    RunClock.objects.filter(run=run).update(turn=turn)
    return Message.objects.create(
        run=run,
        turn=turn,
        role=MessageRole.ASSISTANT,
        content=dump([{"type": "text", "text": text}]),
        stop_reason="tool_use" if calls else "end_turn",
        model="claude-sonnet-5-5",
        input_tokens=1_200,
        output_tokens=90,
    )


def call(
    run: Run,
    turn: int,
    tool: str = "execute",
    tool_input: dict[str, Any] | None = None,
    *,
    position: int = 0,
    status: str = ToolCallStatus.SUCCEEDED,
    result: object = "done",
    **fields: Any,
) -> ToolCall:
    now = timezone.now()
    ran = status in (ToolCallStatus.SUCCEEDED, ToolCallStatus.FAILED)
    return ToolCall.objects.create(
        run=run,
        turn=turn,
        position=position,
        call_id=f"toolu_{run.pk[-6:]}_{turn}_{position}",
        tool=tool,
        input=dump({"command": "ls"} if tool_input is None else tool_input),
        effect=fields.pop("effect", "write"),
        status=status,
        result=dump(result) if ran else "",
        started_at=now - timedelta(milliseconds=1_400) if ran else None,
        finished_at=now if ran else None,
        **fields,
    )


def asked(
    run: Run,
    tool: str = "execute",
    tool_input: dict[str, Any] | None = None,
    *,
    turn: int = 1,
    position: int = 0,
    decisions: list[str] = ALL_DECISIONS,
) -> ApprovalRequest:
    """Create a pending request of `run`, which then waits for it."""
    tool_input = {"command": "rm -r build"} if tool_input is None else tool_input
    waiting = call(run, turn, tool, tool_input, position=position, status=ToolCallStatus.WAITING)
    put(run, RunStatus.WAITING, wait_reason=WaitReason.APPROVAL)
    return ApprovalRequest.objects.create(
        run=run,
        tool_call=waiting,
        tool=tool,
        input=tool_input,
        prompt=f"{tool} changes the workspace.",
        allowed_decisions=decisions,
        digest=digest_of(tool, tool_input, 0),
    )


def asked_to_remember(
    run: Run, content: str, path: str = "knowledge/notes.md", **edit: Any
) -> ApprovalRequest:
    """Create a pending request of `run` to keep `content` in the memory, as a driver does."""
    reason = edit.pop("reason", "It was said.")
    given = {"path": path, "content": content, "reason": reason}
    operation = edit.pop("operation", "write")
    waiting = call(run, 1, "write_memory", given, status=ToolCallStatus.WAITING)
    put(run, RunStatus.WAITING, wait_reason=WaitReason.APPROVAL)
    proposal = MEMORY_EDIT.propose(run, MemoryEdit(path, operation, content, reason))
    with transaction.atomic():
        terms = AskTerms(allowed_decisions=tuple(ALL_DECISIONS[:3]), **edit)
        draft = ask_about_proposal(
            run, waiting, MEMORY_EDIT, proposal, terms, prompt="It asks to remember."
        )
        append_events(run.pk, [draft])
    return ApprovalRequest.objects.get(tool_call=waiting)


def events(run: Run, count: int) -> None:
    with transaction.atomic():
        append_events(run.pk, [TextDelta(part_id="p1", text=f"word {n}") for n in range(count)])


def lines(count: int) -> str:
    return "\n".join(f"line {number}: {json.dumps({'n': number})}" for number in range(count))
