"""Schedules and webhooks in the admin."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from agents.doors.admin.trigger_text import rows_table
from agents.features.budgets.models import Budget
from agents.features.inbound_webhooks.models import InboundWebhook
from agents.features.schedules.models import Schedule
from agents.models import AuditEntry, Run
from tests.agents.api.rows import make_agent, make_user
from tests.agents.features.inbound_webhooks.rows import make_inbound_webhook, send, signed
from tests.agents.features.schedules.rows import fire_all, make_due, make_schedule

pytestmark = pytest.mark.django_db
SCHEDULES, HOOKS = "/admin/vel_schedules/schedule/", "/admin/vel_inbound_webhooks/inboundwebhook/"
RUNS = "/admin/agents/run/"


def staff(name: str, *, superuser: bool = False) -> tuple[User, Client]:
    user = make_user(name, superuser=superuser)
    user.is_staff = True
    user.save()
    if not superuser:
        rights = Permission.objects.filter(
            content_type__app_label__startswith="vel_",
            content_type__model__in=("schedule", "inboundwebhook"),
        )
        user.user_permissions.set(rights)
    client = Client()
    client.force_login(user)
    return user, client


def typed(**fields: object) -> dict[str, object]:
    return {
        "name": "Daily",
        "message": "Report {{ date }}",
        "cron": "0 9 * * *",
        "time_zone": "UTC",
        "thread_policy": "new",
        "overlap": "skip",
        "is_enabled": "on",
        **fields,
    }


def test_a_schedule_is_made_changed_run_and_paused():
    user, client = staff("olga")
    agent = make_agent()
    made = client.post(f"{SCHEDULES}add/", typed(agent=agent.pk))
    assert made.status_code == 302, made.context["adminform"].errors
    schedule = Schedule.objects.get()
    assert (schedule.owner, schedule.due_at is not None) == (user, True)

    bad = client.post(f"{SCHEDULES}{schedule.pk}/change/", typed(agent=agent.pk, cron="0 0 30 2 *"))
    assert b"Bad day-of-month" in bad.content
    assert (
        client.post(f"{SCHEDULES}add/", typed(agent=agent.pk, message="{{ x }}")).status_code == 200
    )
    client.post(f"{SCHEDULES}{schedule.pk}/change/", typed(agent=agent.pk, cron="0 7 * * *"))
    schedule.refresh_from_db()
    assert schedule.cron == "0 7 * * *"
    make_due(schedule)
    fire_all()
    page = client.get(f"{SCHEDULES}{schedule.pk}/change/").content.decode()
    assert f'<td><a href="{RUNS}{Run.objects.get().pk}/change/">' in page
    for action in ("pause", "go_on", "run_now"):
        chosen = {"action": action, "_selected_action": [schedule.pk]}
        assert client.post(SCHEDULES, chosen).status_code == 302
    schedule.refresh_from_db()
    assert schedule.is_enabled
    assert Run.objects.count() == 2
    client.post(f"{SCHEDULES}{schedule.pk}/delete/", {"post": "yes"})
    assert not Schedule.objects.exists()
    actions = set(AuditEntry.objects.filter(kind="schedule").values_list("action", flat=True))
    assert actions == {
        "schedule.created",
        "schedule.changed",
        "schedule.run",
        "schedule.deleted",
    }


def test_operators_do_not_act_as_others():
    ada = make_user("ada")
    agent = make_agent()
    schedule = make_schedule(ada, agent=agent)
    hook, _ = make_inbound_webhook(ada, agent=agent)
    _, client = staff("olga")
    for url, row in ((SCHEDULES, schedule), (HOOKS, hook)):
        page = f"{url}{row.pk}/change/"
        assert client.get(page).status_code == 200
        assert client.post(page, typed(agent=agent.pk, per_minute=3)).status_code == 403
        client.post(url, {"action": "pause", "_selected_action": [row.pk]})
        row.refresh_from_db()
        assert (row.is_enabled, row.message == "Obey") == (False, False)
    # Nothing is created for other users: the owner is the signed-in user.
    client.post(f"{SCHEDULES}add/", typed(agent=agent.pk, owner=ada.pk, name="Mine"))
    assert Schedule.objects.get(name="Mine").owner.get_username() == "olga"
    client.post(SCHEDULES, {"action": "run_now", "_selected_action": [schedule.pk]})
    client.post(HOOKS, {"action": "new_secret", "_selected_action": [hook.pk]})
    assert not Run.objects.exists()
    assert InboundWebhook.objects.get().former_until is None


@pytest.mark.slow
def test_a_hook_shows_its_secret_once():
    _, client = staff("root", superuser=True)
    ada = make_user("ada")
    agent = make_agent()
    fields = {
        "name": "Issues",
        "message": "{{ body.a }}",
        "signing": "github",
        "thread_policy": "new",
        "per_minute": "5",
        "is_enabled": "on",
        "agent": agent.pk,
    }
    shown = client.post(
        f"{HOOKS}add/", {**fields, "owner": ada.pk, "max_tokens_a_day": 9}, follow=True
    ).content.decode()
    hook = InboundWebhook.objects.get()
    assert (hook.owner, Budget.objects.get(trigger=hook.pk).max_tokens) == (ada, 9)
    secret = hook.secret.reveal()
    assert secret in shown
    page = client.get(f"{HOOKS}{hook.pk}/change/").content.decode()
    assert secret not in page
    assert f"/hooks/{hook.pk}" in page
    changed = client.post(f"{HOOKS}{hook.pk}/change/", {**fields, "name": "Other"})
    assert changed.status_code == 302, changed.context["adminform"].errors
    hook.refresh_from_db()
    assert (hook.name, hook.signing, Budget.objects.filter(trigger=hook.pk).count()) == (
        "Other",
        "github",
        0,
    )
    answer = client.post(
        HOOKS, {"action": "new_secret", "_selected_action": [hook.pk]}, follow=True
    ).content.decode()
    hook.refresh_from_db()
    assert hook.secret.reveal() != secret
    assert hook.secret.reveal() in answer
    assert secret not in str([each.__dict__ for each in AuditEntry.objects.all()])


def test_deliveries_to_a_hook_are_a_table():
    _, client = staff("root", superuser=True)
    hook, secret = make_inbound_webhook(make_user("ada"))
    send(hook.pk, signed(secret))
    send(hook.pk, signed("whsec_" + "A" * 43 + "="))
    page = client.get(f"{HOOKS}{hook.pk}/change/").content.decode()
    assert "<td>msg_1</td>" in page
    assert f'<td><a href="{RUNS}{Run.objects.get().pk}/change/">' in page
    assert "<th>why</th>" in page
    assert "<td>signature</td><td>1</td>" in page
    assert "<td>&lt;b&gt;</td>" in rows_table(("why",), [("<b>",)])


def test_a_schedule_lists_the_runs_that_it_started():
    _, client = staff("root", superuser=True)
    schedule = make_schedule(make_user("ada"))
    make_due(schedule)
    fire_all()
    run = Run.objects.get()
    assert run.pk in client.get("/admin/agents/run/?origin=schedule").content.decode()
    for other in ("person", "hook", "agent"):
        assert run.pk not in client.get(f"/admin/agents/run/?origin={other}").content.decode()
