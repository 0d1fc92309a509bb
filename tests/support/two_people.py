"""Two people with all kinds of data, each marked with a text that the other's data do not have.

Runs in a site's process and prints `{name: Person as JSON}`.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from agents.events.catalogue.messages import TextCompleted
from tests.support.raw_events import append_raw

if TYPE_CHECKING:
    from tests.support.site import Site

_MAKER = "import django; django.setup(); from tests.support.two_people import main; main()"


@dataclass
class Somebody:
    """A person. `ids` are by the name of the URL parameter."""

    name: str
    mark: str
    token: str = ""
    session: str = ""
    ids: dict[str, list[Any]] = field(default_factory=dict)


def two_people(site: Site) -> tuple[Somebody, Somebody]:
    """Create alice, who sends the requests, and bob. She must not see his data."""
    made = subprocess.run(
        [sys.executable, "-c", _MAKER],
        env=site.environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    alice, bob = json.loads(made.stdout)
    return Somebody(**alice), Somebody(**bob)


def main() -> None:
    print(json.dumps([asdict(make_person(name)) for name in ("alice", "bob")]))


def make_person(name: str) -> Somebody:
    from django.contrib.auth import get_user_model

    from tests.support import site_writer

    mark = f"mark{name}{secrets.token_hex(6)}"
    site_writer.make_user(name)
    person = get_user_model().objects.get(username=name)
    made = Somebody(name, mark, session=site_writer.sign_in(name))
    _agent(made, person)
    _runs(made, person)
    _grant(made, person)
    _tokens(made, person)
    _triggers(made, person)
    return made


def _triggers(made: Somebody, person: Any) -> None:
    from agents.features.inbound_webhooks.actions import create_inbound_webhook
    from agents.features.inbound_webhooks.models import InboundWebhook
    from agents.features.schedules.actions import save_schedule
    from agents.features.schedules.models import Schedule
    from agents.models import Agent

    agent = Agent.objects.get(slug=made.ids["agent"][0])
    same = {"owner": person, "agent": agent, "name": made.mark, "message": made.mark}
    schedule = save_schedule(Schedule(**same, cron="0 9 * * *"), by=person)
    hook = InboundWebhook(**same)
    create_inbound_webhook(hook, by=person)
    made.ids |= {"schedule_id": [schedule.pk], "hook_id": [hook.pk]}


def _agent(made: Somebody, person: Any) -> None:
    from agents.features.credentials.public import Credential
    from agents.features.databases.models import DatabaseConnection
    from agents.models import Agent
    from agents.secret_text import SecretText
    from agents.services.agent_definitions.actions import save_agent
    from memory.actions.changes import write_file
    from skills_app.actions.own_skills import create_own_skill

    agent = save_agent(
        Agent(
            name=f"Agent {made.mark}",
            slug=f"{made.name}s-agent",
            description=made.mark,
            system_prompt=made.mark,
            provider="scripted",
            model="demo",
            owner=person,
            sandbox=False,
        )
    )
    for number in (1, 2):
        write_file(
            agent,
            "knowledge/notes.md",
            f"{made.mark} {number}",
            by=person,
            source="web",
            reason=made.mark,
        )
    skill = create_own_skill(
        agent,
        name=f"skill-of-{made.name}",
        description=f"Use when {made.mark}",
        instructions=f"# {made.mark}",
        by=person,
    )
    database = DatabaseConnection(name=f"db_{made.mark}", description=made.mark)
    database.url = SecretText.seal("sqlite:////nowhere/at/all.sqlite3")
    database.save()
    agent.databases.add(database)
    for provider in ("google", "slack"):
        Credential.objects.create(
            provider=provider,
            owner=person,
            secret=SecretText.seal(f"xoxb-{made.mark}"),
            account=made.mark,
        )
    made.ids |= {
        "agent_id": [agent.pk],
        "agent": [agent.slug],
        "skill_id": [str(skill.pk)],
        "number": [1],
        "path": ["knowledge/notes.md", "SKILL.md"],
    }


def _runs(made: Somebody, person: Any) -> None:
    """Create a run that waits for approval, one that waits for a memory edit, and an ended one."""
    from django.db import transaction
    from django.utils import timezone

    from agents.events.append import append_events, dump
    from agents.features.planning.models import Todo, TodoHeading
    from agents.models import (
        Effect,
        Message,
        MessageRole,
        Run,
        StateFile,
        ToolCall,
        WorkspaceSnapshot,
    )
    from agents.services.runs.start import RunRequest, create_run
    from agents.states import RunStatus, ToolCallStatus
    from tests.support import site_writer

    slug = made.ids["agent"][0]
    runs = []
    for number in range(3):
        asked = RunRequest(agent=slug, message=f"{made.mark} {number}", key=f"{made.name}-{number}")
        runs.append(create_run(asked, owner=person).run)
    waiting, editing, ended = runs
    requests = [
        site_writer.ask(waiting.pk, "execute", {"command": made.mark}),
        site_writer.ask_memory(editing.pk, "knowledge/plan.md", made.mark, reason=made.mark),
    ]
    said = dump([{"type": "text", "text": made.mark}])
    Message.objects.create(
        run=ended, turn=1, role=MessageRole.ASSISTANT, content=said, model="demo", input_tokens=9
    )
    ToolCall.objects.create(
        run=ended,
        turn=1,
        position=0,
        call_id=f"call-{made.name}",
        tool="read_file",
        input=dump({"path": f"/{made.mark}"}),
        effect=Effect.READ,
        status=ToolCallStatus.SUCCEEDED,
        result=dump([{"type": "text", "text": made.mark}]),
    )
    with transaction.atomic():
        append_events(ended.pk, [TextCompleted(part_id="1:0", text=made.mark)])
        append_raw(ended.pk, [("run.completed", {"finish_reason": "end_turn"})])
    Run.objects.filter(pk=ended.pk).update(
        status=RunStatus.COMPLETED, finish_reason="end_turn", ended_at=timezone.now()
    )
    thread = ended.thread
    thread.title = made.mark
    thread.save()
    Todo.objects.create(thread=thread, position=1, content=made.mark)
    TodoHeading.objects.create(thread=thread, current_task=made.mark)
    path = f"/notes-{made.name}.txt"
    StateFile.objects.create(thread=thread, path=path, content=made.mark.encode())
    step = WorkspaceSnapshot.objects.create(
        thread=thread, run=ended, turn=1, position=0, cause="call", manifest="0" * 64, added=1
    )
    child = site_writer.make_child(editing.pk, made.mark)
    made.ids |= {
        "run_id": [run.pk for run in runs] + [child],
        "thread_id": [run.thread_id for run in runs],
        "chat_id": [f"{made.name}-{number}" for number in range(3)],
        "approval_id": requests,
        "digest": [site_writer.approval(request)["digest"] for request in requests],
        "call_id": ["toolu_1", f"call-{made.name}"],
        "step": [step.pk],
        "path": [*made.ids["path"], path],
    }


def _grant(made: Somebody, person: Any) -> None:
    from datetime import timedelta

    from django.utils import timezone

    from agents.models import Agent, ApprovalGrant

    grant = ApprovalGrant.objects.create(
        agent=Agent.objects.get(pk=made.ids["agent_id"][0]),
        tool="execute",
        owner=person,
        reason=made.mark,
        created_by=person,
        expires_at=timezone.now() + timedelta(days=7),
        max_uses=5,
    )
    made.ids["grant_id"] = [grant.pk]


def _tokens(made: Somebody, person: Any) -> None:
    from agents.models import TokenScope
    from agents.services.tokens import create_token

    _, made.token = create_token(person, name=f"fuzz {made.mark}", scopes=TokenScope.values)
    spare, _ = create_token(person, name=made.mark)
    made.ids["token_id"] = [spare.pk]
