"""Every endpoint that changes data writes an audit entry, or is listed here with a reason.

`test_no_endpoint_is_forgotten` fails for an endpoint that is in neither `SCENARIOS` nor `WITHOUT`.
Add a new endpoint to one of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.db.models.signals import post_save
from django.urls import reverse
from rest_framework.test import APIClient

from agents.api.urls import urlpatterns
from agents.demo.task import database_path
from agents.features.budgets.actions import save_budget
from agents.features.budgets.models import Budget
from agents.features.credentials.models import Credential
from agents.features.databases.actions import save_connection
from agents.features.databases.models import DatabaseConnection
from agents.features.google_workspace.actions import save_google_key
from agents.features.mcp_client.actions import save_server, store_listing
from agents.features.mcp_client.models import McpServer
from agents.features.mcp_client.protocol.definitions import read_listing
from agents.features.notifications.actions import save_target
from agents.features.notifications.models import NotificationTarget
from agents.features.provider_keys.actions import set_key
from agents.features.schedules.actions import save_schedule
from agents.features.schedules.models import Schedule
from agents.features.slack.actions import save_slack_token
from agents.models import Agent, AuditEntry, Door, Machine, Run, Thread
from agents.models.database_clock import database_now
from agents.services.agent_definitions.actions import save_agent
from agents.services.runs.start import RunRequest, create_run
from agents.services.tokens import create_token
from agents.states import RunStatus
from memory.actions.changes import write_file
from skills_app.actions.own_skills import create_own_skill
from tests.agents.api.rows import (
    ask_approval,
    client_with,
    make_agent,
    make_run,
    make_user,
)
from tests.agents.features.inbound_webhooks.rows import make_inbound_webhook
from tests.support.google_workspace_server import GoogleServer, authorized_user, google_server
from tests.support.skill_zips import zipped
from tests.support.skills import package, store_skill
from tests.support.slack_server import TOKEN, SlackServer, slack_server

pytestmark = pytest.mark.django_db

WITHOUT = {
    ("runs", "post"): "a run's own rows have its owner, time and message",
    ("chat", "post"): "begins a run",
    ("run-fork", "post"): "starts a run in a new thread",
    ("run-resume", "post"): "starts a run of the same thread",
    ("policy-rehearse", "post"): "changes nothing",
    ("thread", "patch"): "the title of an own conversation",
    ("thread-mark", "patch"): "where an own conversation is listed",
    ("files", "post"): "a file for an own conversation; its snapshots record it",
    ("uploads", "post"): "a file for one's own conversation",
    ("upload", "delete"): "a file of an own conversation",
    ("database-test", "post"): "changes nothing",
    ("notification-target-test", "post"): "changes nothing",
    ("notification-retry", "post"): "the row of the message records it",
}


@pytest.fixture
def _each_in_a_transaction() -> Iterator[None]:
    """Check that each entry is written in a transaction, in addition to the one of the test."""
    own = len(connection.atomic_blocks)

    def check(**kwargs: Any) -> None:
        assert len(connection.atomic_blocks) > own

    post_save.connect(check, sender=AuditEntry)
    yield
    post_save.disconnect(check, sender=AuditEntry)


@pytest.fixture
def google(settings: Any) -> Iterator[GoogleServer]:
    with google_server() as server:
        settings.VEL = {**settings.VEL, **server.settings}
        yield server


@pytest.fixture
def no_model_server(settings: Any) -> None:
    """A base URL without a server: a test of a key fails immediately."""
    settings.VEL = {**settings.VEL, "OPENAI_API_KEY": "", "OPENAI_BASE_URL": "http://127.0.0.1:9"}


@pytest.fixture
def slack(settings: Any) -> Iterator[SlackServer]:
    with slack_server() as server:
        settings.VEL = {**settings.VEL, "SLACK_URL": server.url}
        yield server


class World:
    """A superuser `root`, an agent of root's, and a client."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.root = make_user("root", superuser=True)
        self.agent = make_agent("writer", owner=self.root)
        self.client = APIClient()
        self.client.force_login(self.root)

    def run(self) -> Run:
        return make_run(self.root)

    def own_skill(self) -> Any:
        text = {"name": "own", "description": "d", "instructions": "i"}
        return create_own_skill(self.agent, by=self.root, **text)

    def library_skill(self) -> Any:
        return store_skill(package(self.directory, "beans")).skill


Sent = tuple[dict[str, Any], Any, str]
"""The path arguments, the body, and the expected action of the audit entry."""


def _import(world: World) -> Sent:
    return {}, {"yaml": "name: N\nslug: n\n"}, "agent.created"


def _from_template(world: World) -> Sent:
    return {}, {"template": "data-analyst", "name": "Mine"}, "agent.created"


def _put_memory(world: World) -> Sent:
    path = {"agent_id": world.agent.pk, "path": "knowledge/a.md"}
    return path, {"content": "x"}, "memory.changed"


def _delete_memory(world: World) -> Sent:
    write_file(world.agent, "knowledge/a.md", "x", by=world.root, source="api")
    return {"agent_id": world.agent.pk, "path": "knowledge/a.md"}, None, "memory.changed"


def _purge_memory(world: World) -> Sent:
    write_file(world.agent, "knowledge/a.md", "one", by=world.root, source="api")
    write_file(world.agent, "knowledge/a.md", "two", by=world.root, source="api")
    return {"agent_id": world.agent.pk}, {"path": "knowledge/a.md"}, "memory.purged"


def _restore_memory(world: World) -> Sent:
    for text in ("x", "y"):
        write_file(world.agent, "knowledge/a.md", text, by=world.root, source="api")
    body = {"path": "knowledge/a.md", "revision": 1}
    return {"agent_id": world.agent.pk}, body, "memory.changed"


def _make_skill(world: World) -> Sent:
    body = {"name": "own", "description": "d", "instructions": "i"}
    return {"agent_id": world.agent.pk}, body, "skill.stored"


def _change_skill(world: World) -> Sent:
    path = {"agent_id": world.agent.pk, "skill_id": world.own_skill().pk}
    return path, {"instructions": "j"}, "skill.stored"


def _remove_skill(world: World) -> Sent:
    path = {"agent_id": world.agent.pk, "skill_id": world.own_skill().pk}
    return path, None, "skill.deleted"


def _import_skill(world: World) -> Sent:
    files = zipped({"SKILL.md": "---\nname: beans\ndescription: d\n---\nx\n"})
    return {}, {"file": SimpleUploadedFile("beans.zip", files)}, "skill.imported"


def _delete_skill(world: World) -> Sent:
    return {"skill_id": world.library_skill().pk}, None, "skill.deleted"


def _review(world: World) -> Sent:
    version = world.library_skill().versions.get()
    path = {"skill_id": version.skill_id, "number": version.number}
    return path, {"content_hash": version.content_hash}, "skill.reviewed"


def _quarantine(world: World) -> Sent:
    version = world.library_skill().versions.get()
    path = {"skill_id": version.skill_id, "number": version.number}
    return path, {"reason": "odd"}, "skill.quarantined"


def _cancel(world: World) -> Sent:
    return {"run_id": world.run().pk}, {}, "run.cancelled"


def _send_now(world: World) -> Sent:
    request = RunRequest(agent="writer", message="x", key="k", queue=True)
    create_run(request, owner=world.root)
    waiting = create_run(request, owner=world.root).run
    return {"run_id": waiting.pk}, {}, "run.message_sent"


def _cancel_chat(world: World) -> Sent:
    create_run(RunRequest(agent="writer", message="x", key="chat-1"), owner=world.root)
    return {"agent": world.agent.slug, "chat_id": "chat-1"}, {}, "run.cancelled"


def _decide(world: World) -> Sent:
    asked = ask_approval(world.run())
    body = {"decision": "reject", "digest": asked.digest}
    return {"approval_id": asked.pk}, body, "approval.decided"


def _revoke_grant(world: World) -> Sent:
    asked = ask_approval(world.run())
    body = {"decision": "approve", "digest": asked.digest, "always": {}}
    decided = world.client.post(
        reverse("api:approval-decide", args=[asked.pk]), body, format="json"
    )
    assert decided.status_code == 200, decided.content
    return {"grant_id": asked.grants.get().pk}, {}, "grant.revoked"


def _make_token(world: World) -> Sent:
    return {}, {"name": "t", "scopes": ["read"], "days": 1}, "token.created"


def _end_token(world: World) -> Sent:
    return {"token_id": create_token(world.root)[0].pk}, None, "token.revoked"


def _store_credential(world: World) -> Sent:
    return {}, {"token": TOKEN}, "credential.stored"


def _mcp_server(world: World) -> McpServer:
    """Return a server whose tool list waits to be accepted."""
    row = save_server(McpServer(slug="git", command="mcp-server-git"), by=world.root)
    return store_listing(row.pk, read_listing("git", []), by=world.root)


def _accept_tools(world: World) -> Sent:
    row = _mcp_server(world)
    return {"server_id": row.pk}, {"digest": row.found_digest, "tools": []}, "mcp_server.accepted"


def _store_google_key(world: World) -> Sent:
    return {}, {"key": json.loads(authorized_user())}, "credential.stored"


def _forget_google_key(world: World) -> Sent:
    save_google_key(authorized_user(), by=world.root)
    return {}, None, "credential.removed"


def _forget_credential(world: World) -> Sent:
    save_slack_token(TOKEN, by=world.root)
    return {}, None, "credential.removed"


TIMES = {"name": "Daily", "message": "Report", "cron": "0 9 * * *"}


def _schedule(world: World) -> dict[str, Any]:
    row = Schedule(owner=world.root, agent=world.agent, **TIMES)
    return {"schedule_id": save_schedule(row, by=world.root).pk}


def _make_schedule(world: World) -> Sent:
    return {}, {**TIMES, "agent": "writer"}, "schedule.created"


def _change_schedule(world: World) -> Sent:
    return _schedule(world), {"cron": "0 8 * * *"}, "schedule.changed"


def _delete_schedule(world: World) -> Sent:
    return _schedule(world), None, "schedule.deleted"


def _erase_thread(world: World) -> Sent:
    thread = Thread.objects.create(owner=world.root, agent=world.agent)
    return {"thread_id": thread.pk}, None, "thread.erased"


def _erase_thread_of_another(world: World) -> Sent:
    thread = Thread.objects.create(owner=make_user("zoe"), agent=world.agent)
    return {"key": thread.pk}, {}, "thread.erased"


def _run_schedule(world: World) -> Sent:
    return _schedule(world), {}, "schedule.run"


def _hook(world: World) -> dict[str, Any]:
    return {"hook_id": make_inbound_webhook(world.root, agent=world.agent)[0].pk}


def _make_hook(world: World) -> Sent:
    return {}, {"name": "Issues", "message": "Look", "agent": "writer"}, "hook.created"


def _change_hook(world: World) -> Sent:
    return _hook(world), {"per_minute": 5}, "hook.changed"


def _delete_hook(world: World) -> Sent:
    return _hook(world), None, "hook.deleted"


def _rotate_inbound_webhook(world: World) -> Sent:
    return _hook(world), {}, "hook.rotated"


def _agent(world: World) -> dict[str, Any]:
    return {"agent_id": world.agent.pk}


def _change_agent(world: World) -> Sent:
    return _agent(world), {"max_turns": 3}, "agent.changed"


def _archive_agent(world: World) -> Sent:
    return _agent(world), None, "agent.changed"


def _erase_agent(world: World) -> Sent:
    agent = Agent.objects.create(name="Old", slug="old", is_active=False)
    return {"agent_id": agent.pk}, {}, "agent.deleted"


def _restore_agent(world: World) -> Sent:
    world.agent.max_turns = 3
    save_agent(world.agent)
    return {**_agent(world), "number": 1}, {}, "agent.changed"


def _budget(world: World) -> dict[str, Any]:
    row = Budget(agent=world.agent, period="day", max_tokens=1)
    return {"key": save_budget(row).pk}


def _make_budget(world: World) -> Sent:
    return {}, {"agent": "writer", "max_tokens": 1}, "budget.created"


def _change_budget(world: World) -> Sent:
    return _budget(world), {"max_tokens": 2}, "budget.changed"


def _delete_budget(world: World) -> Sent:
    return _budget(world), None, "budget.removed"


def _database(world: World) -> dict[str, Any]:
    row = save_connection(
        DatabaseConnection(name="a"), url=f"sqlite:///{database_path()}", by=world.root
    )
    return {"key": row.pk}


def _make_database(world: World) -> Sent:
    return {}, {"name": "b", "url": f"sqlite:///{database_path()}"}, "database.created"


def _change_database(world: World) -> Sent:
    return _database(world), {"max_rows": 2}, "database.changed"


def _delete_database(world: World) -> Sent:
    return _database(world), None, "database.removed"


def _make_mcp_server(world: World) -> Sent:
    return {}, {"slug": "time", "command": "mcp-server-time"}, "mcp_server.created"


def _change_mcp_server(world: World) -> Sent:
    return {"key": _mcp_server(world).pk}, {"enabled": False}, "mcp_server.changed"


def _delete_mcp_server(world: World) -> Sent:
    return {"key": _mcp_server(world).pk}, None, "mcp_server.removed"


def _target(world: World) -> dict[str, Any]:
    row = NotificationTarget(kind="webhook", address="https://hooks.example.org/a")
    save_target(row)
    return {"key": row.pk}


def _make_target(world: World) -> Sent:
    body = {"kind": "email", "address": "ops@example.org"}
    return {}, body, "notification_target.created"


def _change_target(world: World) -> Sent:
    return _target(world), {"enabled": False}, "notification_target.changed"


def _delete_target(world: World) -> Sent:
    return _target(world), None, "notification_target.removed"


def _renew_target(world: World) -> Sent:
    return _target(world), {}, "notification_target.secret_renewed"


def _make_user(world: World) -> Sent:
    return {}, {"username": "zoe"}, "user.created"


def _change_user(world: World) -> Sent:
    return {"key": make_user("zoe").pk}, {"enabled": False}, "user.changed"


def _delete_user(world: World) -> Sent:
    return {"key": make_user("zoe").pk}, None, "user.deleted"


def _make_group(world: World) -> Sent:
    return {}, {"name": "team"}, "group.created"


def _change_group(world: World) -> Sent:
    return {"key": Group.objects.create(name="team").pk}, {"name": "crew"}, "group.changed"


def _delete_group(world: World) -> Sent:
    return {"key": Group.objects.create(name="team").pk}, None, "group.deleted"


def _end_token_of_another(world: World) -> Sent:
    return {"key": create_token(make_user("zoe"))[0].pk}, {}, "token.revoked"


def _share_credential(world: World) -> Sent:
    return {}, {"provider": "slack", "values": {"token": TOKEN}}, "credential.stored"


def _remove_any_credential(world: World) -> Sent:
    save_slack_token(TOKEN, by=world.root)
    return {"key": Credential.objects.get().pk}, None, "credential.removed"


def _store_provider_key(world: World) -> Sent:
    return {"provider": "openai"}, {"key": "key-of-openai"}, "provider_key.set"


def _remove_provider_key(world: World) -> Sent:
    set_key("openai", "key-of-openai", by=world.root)
    return {"provider": "openai"}, None, "provider_key.removed"


def _test_provider_key(world: World) -> Sent:
    set_key("openai", "key-of-openai", by=world.root)
    return {"provider": "openai"}, {}, "provider_key.tested"


def _machine(world: World, **more: Any) -> dict[str, Any]:
    now = database_now()
    for name in ("a", "b"):
        Machine.objects.create(name=name, identity=name, joined_at=now, seen_at=now)
    Machine.objects.filter(name="a").update(**more)
    return {"key": "a"}


def _drain(world: World) -> Sent:
    return _machine(world), {}, "host.drained"


def _undrain(world: World) -> Sent:
    return _machine(world, is_draining=True), {}, "host.undrained"


def _declare_dead(world: World) -> Sent:
    return _machine(world, seen_at=0), {}, "host.declared_dead"


def _forget_machine(world: World) -> Sent:
    return _machine(world, dead_at=1, seen_at=0), {}, "host.forgotten"


SCENARIOS: dict[tuple[str, str], Callable[[World], Sent]] = {
    ("agent-import", "post"): _import,
    ("agents", "post"): _from_template,
    ("agent", "patch"): _change_agent,
    ("agent", "delete"): _archive_agent,
    ("agent-erase", "post"): _erase_agent,
    ("agent-version-restore", "post"): _restore_agent,
    ("budgets", "post"): _make_budget,
    ("budget", "patch"): _change_budget,
    ("budget", "delete"): _delete_budget,
    ("databases", "post"): _make_database,
    ("database", "patch"): _change_database,
    ("database", "delete"): _delete_database,
    ("mcp-servers", "post"): _make_mcp_server,
    ("mcp-server", "patch"): _change_mcp_server,
    ("mcp-server", "delete"): _delete_mcp_server,
    ("notification-targets", "post"): _make_target,
    ("notification-target", "patch"): _change_target,
    ("notification-target", "delete"): _delete_target,
    ("notification-target-new-secret", "post"): _renew_target,
    ("users", "post"): _make_user,
    ("user", "patch"): _change_user,
    ("user", "delete"): _delete_user,
    ("groups", "post"): _make_group,
    ("group", "patch"): _change_group,
    ("group", "delete"): _delete_group,
    ("user-thread-erase", "post"): _erase_thread_of_another,
    ("user-token-revoke", "post"): _end_token_of_another,
    ("stored-credentials", "post"): _share_credential,
    ("stored-credential", "delete"): _remove_any_credential,
    ("provider-key", "put"): _store_provider_key,
    ("provider-key", "delete"): _remove_provider_key,
    ("provider-key-test", "post"): _test_provider_key,
    ("machine-drain", "post"): _drain,
    ("machine-undrain", "post"): _undrain,
    ("machine-declare-dead", "post"): _declare_dead,
    ("machine-forget", "post"): _forget_machine,
    ("memory-file", "put"): _put_memory,
    ("memory-file", "delete"): _delete_memory,
    ("memory-purge", "post"): _purge_memory,
    ("memory-restore", "post"): _restore_memory,
    ("agent-skills", "post"): _make_skill,
    ("agent-skill", "put"): _change_skill,
    ("agent-skill", "patch"): _change_skill,
    ("agent-skill", "delete"): _remove_skill,
    ("skills", "post"): _import_skill,
    ("skill", "delete"): _delete_skill,
    ("skill-review", "post"): _review,
    ("skill-quarantine", "post"): _quarantine,
    ("run-cancel", "post"): _cancel,
    ("chat-cancel", "post"): _cancel_chat,
    ("run-send-now", "post"): _send_now,
    ("approval-decide", "post"): _decide,
    ("grant-revoke", "post"): _revoke_grant,
    ("tokens", "post"): _make_token,
    ("token", "delete"): _end_token,
    ("credential-google", "post"): _store_google_key,
    ("credential-google", "delete"): _forget_google_key,
    ("credential-slack", "post"): _store_credential,
    ("credential-slack", "delete"): _forget_credential,
    ("mcp-accept", "post"): _accept_tools,
    ("schedules", "post"): _make_schedule,
    ("schedule", "patch"): _change_schedule,
    ("schedule", "delete"): _delete_schedule,
    ("schedule-run", "post"): _run_schedule,
    ("hooks", "post"): _make_hook,
    ("hook", "patch"): _change_hook,
    ("hook", "delete"): _delete_hook,
    ("thread", "delete"): _erase_thread,
    ("hook-rotate", "post"): _rotate_inbound_webhook,
}
ELSEWHERE = {
    ("restore", "post"): "tests/agents/admin/test_workspace_restore.py",
    ("toolboxes", "post"): "tests/agents/api/managed/test_toolboxes.py",
    ("toolbox", "delete"): "tests/agents/api/managed/test_toolboxes.py",
    ("mcp-fetch", "post"): "tests/agents/features/mcp_client/test_admin.py",
}
"""These need a workspace or a program in the sandbox, so other modules test them."""


def test_no_endpoint_is_forgotten():
    there = {
        (pattern.name, method)
        for pattern in urlpatterns
        if (view := getattr(pattern.callback, "view_class", getattr(pattern.callback, "cls", None)))
        for method in ("post", "put", "patch", "delete")
        if hasattr(view, method)
    }

    assert there == set(SCENARIOS) | set(WITHOUT) | set(ELSEWHERE)


@pytest.mark.usefixtures("_each_in_a_transaction", "no_model_server")
@pytest.mark.parametrize("endpoint", sorted(SCENARIOS), ids=" ".join)
def test_it_is_in_the_audit_log(
    endpoint: tuple[str, str], tmp_path: Path, slack: SlackServer, google: GoogleServer
):
    world = World(tmp_path)
    name, method = endpoint
    path, body, action = SCENARIOS[endpoint](world)
    before = set(AuditEntry.objects.values_list("pk", flat=True))
    is_upload = isinstance(body, dict) and "file" in body

    answer = getattr(world.client, method)(
        reverse(f"api:{name}", kwargs=path), body, format="multipart" if is_upload else "json"
    )

    assert answer.status_code in (200, 201, 202, 204), answer.content
    entries = AuditEntry.objects.exclude(pk__in=before)
    entry = entries.get(action=action)
    assert (entry.actor, entry.actor_id) == ("root", str(world.root.pk))
    assert (entry.door, entry.address) == (Door.API, "127.0.0.1")
    assert TOKEN not in str(list(entries.values()))


def test_refused_requests_write_no_entry(tmp_path: Path):
    world = World(tmp_path)
    asked = ask_approval(world.run())
    before = AuditEntry.objects.count()
    stranger = APIClient()
    stranger.force_login(make_user("eve"))
    url = reverse("api:approval-decide", args=[asked.pk])

    stranger.post(url, {"decision": "approve", "digest": asked.digest}, format="json")
    world.client.post(url, {"decision": "approve", "digest": "0" * 64}, format="json")
    stranger.post(reverse("api:run-cancel", args=[asked.run_id]), {}, format="json")

    assert AuditEntry.objects.count() == before


def test_a_token_is_named_by_its_first_characters(tmp_path: Path):
    world = World(tmp_path)
    token, secret = create_token(make_user("ann"), scopes=["read", "run"])
    run = make_run(token.user)

    client_with(secret).post(reverse("api:run-cancel", args=[run.pk]), {}, format="json")

    entry = AuditEntry.objects.get(action="run.cancelled")
    assert (entry.actor, entry.credential) == ("ann", f"token {token.prefix}…")
    assert secret not in str(entry.__dict__)
    Run.objects.filter(pk=run.pk).update(status=RunStatus.CANCELLED)
    world.client.post(reverse("api:run-cancel", args=[run.pk]), {}, format="json")
    assert AuditEntry.objects.filter(action="run.cancelled").count() == 1


@pytest.mark.both_databases
def test_only_operators_read_the_log(tmp_path: Path):
    world = World(tmp_path)
    create_token(world.root)
    ann, operator = make_user("ann"), make_user("olga", "view_auditentry")
    clients = {}
    for user in (ann, operator):
        clients[user] = APIClient()
        clients[user].force_login(user)

    assert clients[ann].get("/api/v1/audit").status_code == 403
    page = clients[operator].get("/api/v1/audit?limit=1").json()
    assert [entry["action"] for entry in page["results"]] == ["token.created"]
    rest = clients[operator].get(f"/api/v1/audit?cursor={page['next_cursor']}").json()
    assert [entry["action"] for entry in rest["results"]] == ["agent.created"]
    found = clients[operator].get("/api/v1/audit?q=writer&kind=agent&door=code").json()
    assert [entry["target"] for entry in found["results"]] == ["writer"]
    for method in ("post", "put", "patch", "delete"):
        assert getattr(clients[operator], method)("/api/v1/audit").status_code == 405
