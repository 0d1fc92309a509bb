"""A process that writes to a site's database when it is told to, as a worker or a person would.

It reads one command a line on stdin, as `{"do": "append", "run": …}`, and answers each with one
line on stdout when it is committed.
"""

import json
import sys
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.auth.models import Permission
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from agents.events.append import append_events, dump
from agents.models import Agent, ApiToken, ApprovalRequest, Effect, Run, RunClock, ToolCall
from agents.selectors.visible import APPROVE
from agents.services.agents import save_agent
from agents.services.asking import digest_of
from agents.services.runs import RunRequest, create_run
from agents.services.tokens import create_token
from agents.states import ApprovalStatus, RunStatus, ToolCallStatus, WaitReason

User = get_user_model()
ASSISTANT = "assistant"


def migrate() -> None:
    # Not checked: the directory is fit for a test, though not for sandboxes.
    call_command("migrate", verbosity=0, skip_checks=True)


def make_user(name: str, password: str | None = None, approver: bool = False) -> None:
    user = User.objects.create_user(name, password=password)
    if approver:
        app, codename = APPROVE.split(".")
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )


def sign_in(user: str) -> str:
    """The key of a new session."""
    person = User.objects.get(username=user)
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.save()
    return session.session_key


def sign_out(session: str) -> None:
    Session.objects.filter(session_key=session).delete()


def make_token(user: str, scopes: list[str]) -> str:
    """The secret of a new API token."""
    return create_token(User.objects.get(username=user), scopes=scopes)[1]


def revoke_tokens(user: str) -> None:
    ApiToken.objects.filter(user__username=user).update(revoked_at=timezone.now())


def make_run(owner: str, message: str = "Hello", thread: str | None = None) -> str:
    person = User.objects.get(username=owner)
    if not Agent.objects.filter(slug=ASSISTANT).exists():
        save_agent(
            Agent(
                name="Assistant", slug=ASSISTANT, provider="scripted", model="demo", everyone=True
            )
        )
    request = RunRequest(agent=ASSISTANT, message=message, thread=thread, queue=True)
    return create_run(request, owner=person).run.id


@transaction.atomic
def append(run: str, events: list[tuple[str, dict[str, Any]]], status: str | None = None) -> int:
    """Append events and, as the engine does, change the run's status in the same transaction."""
    if status is not None:
        Run.objects.filter(pk=run).update(status=status)
    return append_events(run, events)


@transaction.atomic
def ask(run: str, tool: str, tool_input: dict[str, Any], call_id: str = "toolu_1") -> str:
    """Park the run on a request for approval, as the engine does."""
    call = ToolCall.objects.create(
        run_id=run,
        turn=1,
        position=ToolCall.objects.filter(run_id=run).count(),
        call_id=call_id,
        tool=tool,
        input=dump(tool_input),
        effect=Effect.EXTERNAL,
        status=ToolCallStatus.WAITING,
    )
    request = ApprovalRequest.objects.create(
        run_id=run,
        tool_call=call,
        tool=tool,
        input=tool_input,
        prompt="",
        allowed_decisions=["approve", "edit", "reject", "respond"],
        digest=digest_of(tool, tool_input, 0),
    )
    Run.objects.filter(pk=run).update(status=RunStatus.WAITING, wait_reason=WaitReason.APPROVAL)
    shown = {
        "approval_id": request.id,
        "call_id": call_id,
        "tool": tool,
        "input": tool_input,
        "kind": request.kind,
        "prompt": request.prompt,
        "digest": request.digest,
        "allowed_decisions": request.allowed_decisions,
        "expires_at": None,
    }
    append_events(
        run,
        [
            ("tool.called", {"call_id": call_id, "tool": tool, "input": tool_input}),
            ("approval.requested", shown),
            ("run.suspended", {"reason": "approval", "approval_ids": [request.id]}),
        ],
    )
    return request.id


def approval(request: str) -> dict[str, Any]:
    row = ApprovalRequest.objects.select_related("tool_call").get(pk=request)
    return {
        "status": row.status,
        "decision": row.decision,
        "reason": row.reason,
        "digest": row.digest,
        "edited_input": row.edited_input,
        "by": row.decided_by.get_username() if row.decided_by else None,
    }


def supersede(request: str) -> None:
    ApprovalRequest.objects.filter(pk=request).update(status=ApprovalStatus.SUPERSEDED)


def run(run: str) -> dict[str, Any]:
    row = Run.objects.select_related("thread").get(pk=run)
    return {
        "status": row.status,
        "thread": row.thread_id,
        "owner": row.owner.get_username(),
        "seq": RunClock.objects.get(run=row).seq,
        "cancel_requested": row.clock.cancel_requested,
        "text": row.messages.get(turn=0).text,
    }


def newest_run() -> str:
    return Run.objects.order_by("-created_at").values_list("id", flat=True)[0]


def delete_run(run: str) -> None:
    Run.objects.filter(pk=run).delete()


COMMANDS = {
    command.__name__: command
    for command in (
        migrate,
        make_user,
        sign_in,
        sign_out,
        make_token,
        revoke_tokens,
        make_run,
        append,
        ask,
        approval,
        supersede,
        run,
        newest_run,
        delete_run,
    )
}


def main() -> None:
    for line in sys.stdin:
        command = json.loads(line)
        result = COMMANDS[command.pop("do")](**command)
        print(json.dumps({"result": result}), flush=True)
