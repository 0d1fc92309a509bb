"""The actions in the admin, with the audit entry that each must write."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from agents.features.budgets.models import Budget
from agents.features.databases.models import DatabaseConnection
from agents.features.inbound_webhooks.models import InboundWebhook
from agents.features.mcp_client.actions import save_server
from agents.features.mcp_client.models import McpServer
from agents.features.notifications.models import NotificationTarget
from agents.features.schedules.models import Schedule
from agents.models import Agent, Machine, Thread
from agents.models.database_clock import database_now
from agents.secret_text import SecretText
from agents.services.tokens import create_token
from agents.states import RunStatus
from tests.agents.admin import rows
from tests.agents.admin.pages import act
from tests.agents.admin.test_agents import form
from tests.agents.admin.test_triggers import typed
from tests.agents.features.inbound_webhooks.rows import make_inbound_webhook
from tests.agents.features.mcp_client.test_admin import form as server_form
from tests.agents.features.schedules.rows import make_schedule

SECRET = "postgresql://me:hunter2@192.0.2.1/x"
TARGET = {"kind": "webhook", "address": "https://example.org/hook/s3cret", "is_active": "on"}
BUDGET = {"period": "day", "max_tokens": 5}
OTHERS = {
    "django_q.Schedule": "django-q2's own",
    "django_q.Success": "django-q2's own",
    "django_q.Failure": "django-q2's own",
    "django_q.OrmQ": "django-q2's own",
    "vel_credentials.Credential add": "tests/agents/features",
    "vel_credentials.Credential delete": "tests/agents/features/slack",
    "agents.Agent export_selected": "changes nothing",
    "agents.ApprovalRequest approve_selected": "the service of the API, tested there",
    "agents.ApprovalRequest reject_selected": "the service of the API, tested there",
    "vel_databases.DatabaseConnection test_selected": "changes nothing",
    "agents.ApprovalGrant revoke_selected": "the service of the API, tested there",
    "vel_notifications.NotificationTarget send_test_message": "changes nothing",
    "vel_notifications.Notification try_again": "sends once more what was to be sent",
}


def _add(model: str, **data: Any) -> Any:
    return lambda client: client.post(reverse(f"admin:{model}_add"), data)


def _change(row: Any, **data: Any) -> Any:
    def send(client: Client) -> Any:
        made = row()
        label = made._meta.label_lower.replace(".", "_")
        return client.post(reverse(f"admin:{label}_change", args=[made.pk]), data)

    return send


def _add_for_agent(model: str, **data: Any) -> Any:
    return lambda client: _add(model, agent=rows.agent().pk, **data)(client)


def _change_of_agent(row: Any, **data: Any) -> Any:
    """Return a change of a row whose form also has the agent."""

    def send(client: Client) -> Any:
        made = row()
        return _change(lambda: made, agent=made.agent_id, **data)(client)

    return send


def _delete(row: Any) -> Any:
    def send(client: Client) -> Any:
        made = row()
        label = made._meta.label_lower.replace(".", "_")
        return client.post(reverse(f"admin:{label}_delete", args=[made.pk]), {"post": "yes"})

    return send


def _act(action: str, row: Any, **more: Any) -> Any:
    return lambda client: act(client, action, row(), **more)


def _agent() -> Agent:
    return rows.agent("helper", name="Helper")


def _inactive() -> Agent:
    return rows.agent("helper", name="Helper", is_active=False)


def _used() -> Agent:
    agent = _ended_thread().agent
    agent.is_active = False
    agent.save()
    return agent


def _budget() -> Budget:
    return Budget.objects.create(agent=rows.agent(), period="day", max_tokens=9)


def _database() -> DatabaseConnection:
    return DatabaseConnection.objects.create(name="shop", url=SecretText.seal(SECRET))


def _host(name: str = "one", **more: Any) -> Machine:
    now = database_now()
    values = {"identity": name, "joined_at": now, "seen_at": now, **more}
    return Machine.objects.create(name=name, **values)


def _draining() -> Machine:
    return _host(is_draining=True)


def _silent() -> Machine:
    return _host(seen_at=database_now() - 1_000)


def _drainable() -> Machine:
    _host("other")
    return _host()


def _target() -> NotificationTarget:
    return NotificationTarget.objects.create(kind="webhook", address=TARGET["address"], secret="x")


def _failed() -> Any:
    return rows.put(rows.run(rows.user()), RunStatus.FAILED)


def _schedule(**fields: Any) -> Schedule:
    return make_schedule(rows.user(), agent=rows.agent(), **fields)


def _hook(**fields: Any) -> InboundWebhook:
    return make_inbound_webhook(rows.user(), agent=rows.agent(), **fields)[0]


def _owned_by_root(model: str, **data: Any) -> Any:
    """Return the creation of a row by a superuser. This form also has the owner."""

    def send(client: Client) -> Any:
        owner = User.objects.get(username="root").pk
        return _add_for_agent(model, owner=owner, **data)(client)

    return send


def _server() -> McpServer:
    return save_server(McpServer(slug="git", command="mcp-server-git"), by=rows.superuser("eve"))


def _ended_thread() -> Thread:
    return rows.put(rows.run(rows.user()), RunStatus.COMPLETED).thread


def user_form(**more: Any) -> dict[str, Any]:
    joined = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    return {"username": "ada", "is_active": "on", **joined, **more}


HOOK = {
    "name": "Issues",
    "message": "{{ body.a }}",
    "signing": "standard",
    "thread_policy": "new",
    "per_minute": "5",
    "is_enabled": "on",
}

DATABASE = {
    "name": "shop",
    "new_url": SECRET,
    "statement_seconds": 30,
    "max_rows": 10,
    "max_bytes": 10_000,
    "hidden_columns": "",
}

DONE: dict[str, tuple[Any, str]] = {
    "agents.Agent add": (_add("agents_agent", **form()), "agent.created"),
    "agents.Agent change": (_change(_agent, **form(max_turns=3)), "agent.changed"),
    "agents.Agent delete": (_delete(_agent), "agent.deleted"),
    "agents.Agent duplicate_selected": (_act("duplicate_selected", _agent), "agent.created"),
    "agents.Agent activate_selected": (
        _act("activate_selected", _inactive, confirmed="activate_selected"),
        "agent.changed",
    ),
    "agents.Agent deactivate_selected": (
        _act("deactivate_selected", _agent, confirmed="deactivate_selected"),
        "agent.changed",
    ),
    "agents.Agent erase_conversations_selected": (
        _act("erase_conversations_selected", _used, confirmed="erase_conversations_selected"),
        "thread.erased",
    ),
    "vel_budgets.Budget add": (_add_for_agent("vel_budgets_budget", **BUDGET), "budget.created"),
    "vel_budgets.Budget change": (_change(_budget, **BUDGET), "budget.changed"),
    "vel_budgets.Budget delete": (_delete(_budget), "budget.removed"),
    "vel_databases.DatabaseConnection add": (
        _add("vel_databases_databaseconnection", **DATABASE),
        "database.created",
    ),
    "vel_databases.DatabaseConnection change": (_change(_database, **DATABASE), "database.changed"),
    "vel_databases.DatabaseConnection delete": (_delete(_database), "database.removed"),
    "agents.Machine drain": (_act("drain", _drainable), "host.drained"),
    "agents.Machine undrain": (_act("undrain", _draining), "host.undrained"),
    "agents.Machine declare_dead": (_act("declare_dead", _silent), "host.declared_dead"),
    "agents.Machine forget": (_act("forget", _silent), "host.forgotten"),
    "vel_notifications.NotificationTarget add": (
        _add("vel_notifications_notificationtarget", **TARGET),
        "notification_target.created",
    ),
    "vel_notifications.NotificationTarget change": (
        _change(_target, **{**TARGET, "is_active": ""}),
        "notification_target.changed",
    ),
    "vel_notifications.NotificationTarget delete": (
        _delete(_target),
        "notification_target.removed",
    ),
    "vel_notifications.NotificationTarget make_new_secret": (
        _act("make_new_secret", _target),
        "notification_target.secret_renewed",
    ),
    "agents.Run cancel_selected": (
        _act("cancel_selected", lambda: rows.run(rows.user()), confirmed="cancel_selected"),
        "run.cancelled",
    ),
    "agents.Run resume_selected": (_act("resume_selected", _failed), "run.resumed"),
    "vel_schedules.Schedule add": (
        _owned_by_root("vel_schedules_schedule", **typed()),
        "schedule.created",
    ),
    "vel_schedules.Schedule change": (
        _change_of_agent(_schedule, **typed(cron="0 7 * * *")),
        "schedule.changed",
    ),
    "vel_schedules.Schedule delete": (_delete(_schedule), "schedule.deleted"),
    "vel_schedules.Schedule pause": (_act("pause", _schedule), "schedule.changed"),
    "vel_schedules.Schedule go_on": (
        _act("go_on", lambda: _schedule(is_enabled=False)),
        "schedule.changed",
    ),
    "vel_schedules.Schedule run_now": (_act("run_now", _schedule), "schedule.run"),
    "vel_inbound_webhooks.InboundWebhook add": (
        _owned_by_root("vel_inbound_webhooks_inboundwebhook", **HOOK),
        "hook.created",
    ),
    "vel_inbound_webhooks.InboundWebhook change": (_change_of_agent(_hook, **HOOK), "hook.changed"),
    "vel_inbound_webhooks.InboundWebhook delete": (_delete(_hook), "hook.deleted"),
    "vel_inbound_webhooks.InboundWebhook pause": (_act("pause", _hook), "hook.changed"),
    "vel_inbound_webhooks.InboundWebhook go_on": (
        _act("go_on", lambda: _hook(is_enabled=False)),
        "hook.changed",
    ),
    "vel_inbound_webhooks.InboundWebhook new_secret": (_act("new_secret", _hook), "hook.rotated"),
    "vel_mcp_client.McpServer add": (
        _add("vel_mcp_client_mcpserver", **server_form()),
        "mcp_server.created",
    ),
    "vel_mcp_client.McpServer change": (
        _change(_server, **server_form(call_seconds="31")),
        "mcp_server.changed",
    ),
    "vel_mcp_client.McpServer delete": (_delete(_server), "mcp_server.removed"),
    "agents.Thread erase_selected": (
        _act("erase_selected", _ended_thread, confirmed="erase_selected"),
        "thread.erased",
    ),
    "agents.ApiToken add": (
        lambda client: _add("agents_apitoken", user=rows.user().pk, scopes=["read"], days=1)(
            client
        ),
        "token.created",
    ),
    "agents.ApiToken revoke_selected": (
        _act("revoke_selected", lambda: create_token(rows.user())[0]),
        "token.revoked",
    ),
    "auth.User add": (
        _add(
            "auth_user",
            username="ada",
            usable_password="true",
            password1="a long enough one",
            password2="a long enough one",
        ),
        "user.created",
    ),
    "auth.User change": (_change(rows.user, **user_form(is_staff="on")), "user.changed"),
    "auth.User delete": (_delete(rows.user), "user.deleted"),
    "auth.Group add": (_add("auth_group", name="team"), "group.created"),
    "auth.Group change": (
        _change(lambda: Group.objects.create(name="team"), name="crew"),
        "group.changed",
    ),
    "auth.Group delete": (_delete(lambda: Group.objects.create(name="team")), "group.deleted"),
}
