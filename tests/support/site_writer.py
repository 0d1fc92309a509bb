"""A process that writes to a site's database on command, in the role of a worker or a person.

It reads one command a line on stdin, as `{"do": "append", "run": …}`, and answers each with one
line on stdout after the commit.
"""

import json
import sys
import time
from datetime import timedelta
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.auth.models import Permission
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone

from agents.events.append import append_events, dump
from agents.events.catalogue.runs import RunSuspended
from agents.events.catalogue.tool_calls import ToolCalled
from agents.features.inbound_webhooks.actions import create_inbound_webhook
from agents.features.inbound_webhooks.models import (
    InboundWebhook,
    InboundWebhookDelivery,
    InboundWebhookRefusal,
)
from agents.features.schedules.actions import save_schedule
from agents.features.schedules.models import Schedule, ScheduleFiring
from agents.models import (
    Agent,
    ApiToken,
    ApprovalRequest,
    Effect,
    Message,
    MessageRole,
    ProcessKind,
    Run,
    RunClock,
    ToolCall,
    Upload,
)
from agents.policy import AskTerms
from agents.selectors.visible import APPROVE
from agents.services.agent_definitions.actions import save_agent
from agents.services.approvals.asking import ask_about_proposal, digest_of, requested_event
from agents.services.machines.processes import Reporter
from agents.services.runs.delegation import child_ended
from agents.services.runs.start import RunRequest, create_run
from agents.services.runs.wake import lock_with_parent
from agents.services.tokens import create_token
from agents.states import ApprovalStatus, RunStatus, ToolCallStatus, WaitReason
from memory.actions.changes import write_file
from memory.edits import MemoryEdit
from memory.models import MemoryFile
from memory.proposals import MEMORY_EDIT
from skills_app.actions.library import import_skill
from skills_app.library.sources.archive import read_archive
from tests.support.raw_events import RawEvent, append_raw
from tests.support.skill_zips import hostile_files, zipped
from tests.support.subagents import delegate

User = get_user_model()
ASSISTANT = "assistant"


def make_user(
    name: str, password: str | None = None, approver: bool = False, admin: bool = False
) -> None:
    user = User.objects.create_user(name, password=password, is_staff=admin, is_superuser=admin)
    if approver:
        app, codename = APPROVE.split(".")
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )


def sign_in(user: str) -> str:
    """Create a session and return its key."""
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
    """Create an API token and return its secret."""
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
    # No worker has this executor, so workers of other tests do not claim the run.
    request = RunRequest(
        agent=ASSISTANT, message=message, thread=thread, queue=True, executor="tests"
    )
    return create_run(request, owner=person).run.id


def make_schedule(owner: str) -> str:
    """Create a schedule with one started and one refused run."""
    person = User.objects.get(username=owner)
    row = Schedule(
        owner=person,
        agent=Agent.objects.get(slug=ASSISTANT),
        name="Every morning, a report with a name that goes on and on",
        message="Report of {{ date }}\n" + "long " * 200,
        cron="30 8 * * mon-fri",
        time_zone="Europe/Vienna",
    )
    schedule = save_schedule(row, by=person)
    run = make_run(owner, "Report")
    now = timezone.now()
    for outcome, detail, of in (
        ("started", "", run),
        ("refused", "The budget of " + "ada" * 40 + " is used up for now.", None),
    ):
        ScheduleFiring.objects.create(
            schedule=schedule, due_at=now, outcome=outcome, detail=detail, run_id=of, missed=3
        )
        now -= timedelta(days=1)
    return schedule.pk


def make_inbound_webhook(owner: str) -> str:
    """Create a webhook with one accepted and several refused requests."""
    person = User.objects.get(username=owner)
    agent = Agent.objects.get(slug=ASSISTANT)
    hook = InboundWebhook(
        owner=person, agent=agent, name="Issues", message="Look at {{ body.issue.title }}"
    )
    create_inbound_webhook(hook, by=person)
    run = make_run(owner, "Look at Rain")
    long = '{"loc": ["body", "issue"], "msg": "' + "too long " * 30 + "x" * 300 + '"}'
    for number, (outcome, detail, of) in enumerate(
        (("started", "", run), ("refused", "No budget.", None), ("refused", long, None))
    ):
        InboundWebhookDelivery.objects.create(
            hook=hook,
            key=f"msg_{number}",
            body_sha256="",
            size=2_000,
            outcome=outcome,
            detail=detail,
            repeats=number,
            run_id=of,
        )
    now = timezone.now()
    InboundWebhookRefusal.objects.create(
        subject=hook.pk, day=now.date(), reason="signature", count=7, last_at=now
    )
    return hook.pk


def make_signed_inbound_webhook(owner: str, agent: str) -> tuple[str, str]:
    """Create a webhook that starts runs of `agent`. Return its ID and its secret."""
    person = User.objects.get(username=owner)
    hook = InboundWebhook(
        owner=person, agent=Agent.objects.get(slug=agent), name="CI", message="Look"
    )
    return hook.pk, create_inbound_webhook(hook, by=person)


def start_scripted(owner: str, model: str, **agent: Any) -> str:
    """Start a run of a new agent of `owner`, without a sandbox; `model` is its script."""
    person = User.objects.get(username=owner)
    slug = f"{owner}-{Agent.objects.count()}"
    fields = {"name": slug, "slug": slug, "model": model, "sandbox": False, **agent}
    save_agent(Agent(provider="scripted", owner=person, **fields))
    return create_run(RunRequest(agent=slug, message="Do it", queue=True), owner=person).run.id


def make_agent(slug: str, model: str, **agent: Any) -> None:
    """Create an agent for all users, without a sandbox; `model` is its script."""
    fields = {"name": slug, "slug": slug, "model": model, "sandbox": False, **agent}
    save_agent(Agent(provider="scripted", everyone=True, **fields))


@transaction.atomic
def append(
    run: str, events: list[RawEvent], status: str | None = None, is_declared: bool = True
) -> int:
    """Append events and, as the engine does, change the run's status in the same transaction."""
    if status is not None:
        Run.objects.filter(pk=run).update(status=status)
    return append_raw(run, events, is_declared=is_declared)


def pour(run: str, batches: int, size: int, pause: float) -> int:
    """Append `size` deltas again and again, as a worker does, and end the run."""
    for _ in range(batches):
        append(run, [("text.delta", {"part_id": "1.0", "text": "word "})] * size)
        time.sleep(pause)
    return append(run, [("run.completed", {"finish_reason": "end_turn"})], status="completed")


def reply(run: str, text: str) -> None:
    """Store a reply of the model as the message of the run's first turn."""
    content = dump([{"type": "text", "text": text}])
    Message.objects.create(run_id=run, turn=1, role=MessageRole.ASSISTANT, content=content)


def keep(run: str, value: Any, files: list[str]) -> None:
    """Give a run an answer as data, and attached files with these names."""
    row = Run.objects.get(pk=run)
    row.structured_output, row.has_uploads = value, True
    row.save(update_fields=["structured_output", "has_uploads"])
    for number, name in enumerate(files):
        Upload.objects.create(
            thread=row.thread,
            run=row,
            name=f"{run}-{number}",
            path="/sandbox/user_uploads/x",
            original_name=name,
            size=2_000,
        )


@transaction.atomic
def ask(run: str, tool: str, tool_input: dict[str, Any], call_id: str = "toolu_1") -> str:
    """Park the run on an approval request, as the engine does."""
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
    append_events(
        run,
        [
            ToolCalled(call_id=call_id, tool=tool, input=tool_input),
            requested_event(request),
            RunSuspended(reason="approval", approval_ids=[request.id]),
        ],
    )
    return request.id


@transaction.atomic
def ask_memory(
    run: str,
    path: str,
    content: str = "",
    operation: str = "write",
    reason: str = "It was said.",
    call_id: str = "toolu_m",
    approvals_needed: int = 1,
) -> str:
    """Park the run on a request to edit the memory, as the engine does."""
    row = Run.objects.select_related("agent_version").get(pk=run)
    given = {"path": path, "content": content, "reason": reason, "operation": operation}
    call = ToolCall.objects.create(
        run=row,
        turn=1,
        position=ToolCall.objects.filter(run=row).count(),
        call_id=call_id,
        tool="write_memory",
        input=dump(given),
        effect=Effect.READ,
        status=ToolCallStatus.WAITING,
    )
    edit = MemoryEdit(path, operation, content, reason)  # type: ignore[arg-type]
    proposal = MEMORY_EDIT.propose(row, edit)
    terms = AskTerms(approvals_needed=approvals_needed)
    draft = ask_about_proposal(row, call, MEMORY_EDIT, proposal, terms, prompt="")
    Run.objects.filter(pk=run).update(status=RunStatus.WAITING, wait_reason=WaitReason.APPROVAL)
    append_events(run, [draft])
    return draft.approval_id


@transaction.atomic
def make_child(parent: str, task: str = "Look around", name: str = "explore") -> str:
    """Start a subagent's run of `parent`, as the engine does."""
    return delegate(Run.objects.get(pk=parent), task, name=name)[0].pk


@transaction.atomic
def park(run: str, children: list[str]) -> int:
    """Let a run wait for its subagents, as the engine does."""
    Run.objects.filter(pk=run).update(status=RunStatus.WAITING, wait_reason=WaitReason.CHILDREN)
    Run.objects.filter(pk__in=children).update(is_awaited=True)
    return append_events(run, [RunSuspended(reason="children", child_run_ids=children)])


@transaction.atomic
def end(run: str, status: str, events: list[RawEvent]) -> None:
    """End a subagent's run and notify its parent, as the engine does."""
    row = lock_with_parent(run, Run.objects.get(pk=run).parent_id)
    assert row is not None
    append_raw(run, [*events, (f"run.{status}", {})])
    row.status, row.ended_at = status, timezone.now()
    row.save()
    child_ended(row)


def remember(path: str, content: str, by: str = "ada", agent: str = ASSISTANT) -> int:
    """Write a file of an agent's memory as a person with the permission."""
    person = User.objects.get(username=by)
    return write_file(Agent.objects.get(slug=agent), path, content, by=person, source="web")


def remembered(path: str, agent: str = ASSISTANT) -> str | None:
    files = MemoryFile.objects.filter(agent__slug=agent, path=path)
    return files.values_list("content", flat=True).first()


def allow(user: str, permissions: list[str]) -> None:
    """Grant permissions, given by codename."""
    found = Permission.objects.filter(codename__in=permissions)
    User.objects.get(username=user).user_permissions.add(*found)


def disallow(user: str, permissions: list[str]) -> None:
    """Take permissions back: other tests use the site after this one."""
    found = Permission.objects.filter(codename__in=permissions)
    User.objects.get(username=user).user_permissions.remove(*found)


def bring_skill(by: str, name: str = "beans", hostile: bool = False, **fields: str) -> int:
    """Import a package into the library. Return the skill's ID. `fields` are frontmatter lines."""
    data = zipped(hostile_files(name), name) if hostile else zipped(name=name, **fields)
    package = read_archive(data, f"{name}.zip")
    made = import_skill(package, by=User.objects.get(username=by), source="web")
    return made.version.skill_id


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


def need_approvals(request: str, number: int) -> None:
    ApprovalRequest.objects.filter(pk=request).update(approvals_needed=number)


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


def show_trouble(owner: str, provider_says: str, worker: str) -> None:
    """Give the status page problems to show.

    They are a run that failed because of its model, and a worker with that name.
    """
    failed = make_run(owner)
    Run.objects.filter(pk=failed).update(
        status=RunStatus.FAILED,
        ended_at=timezone.now(),
        error_code="model_rate_limited",
        error_message=provider_says,
    )
    Reporter(ProcessKind.WORKER, worker, 32).report(driven=1)


def newest_run() -> str:
    return Run.objects.order_by("-created_at").values_list("id", flat=True)[0]


def delete_run(run: str) -> None:
    Run.objects.filter(pk=run).delete()


COMMANDS = {
    command.__name__: command
    for command in (
        make_user,
        sign_in,
        sign_out,
        make_token,
        revoke_tokens,
        make_run,
        start_scripted,
        make_agent,
        append,
        pour,
        ask,
        ask_memory,
        make_child,
        make_inbound_webhook,
        make_signed_inbound_webhook,
        make_schedule,
        park,
        end,
        remember,
        remembered,
        allow,
        disallow,
        bring_skill,
        approval,
        need_approvals,
        supersede,
        run,
        show_trouble,
        newest_run,
        reply,
        keep,
        delete_run,
    )
}


def main() -> None:
    for line in sys.stdin:
        command = json.loads(line)
        result = COMMANDS[command.pop("do")](**command)
        print(json.dumps({"result": result}), flush=True)
