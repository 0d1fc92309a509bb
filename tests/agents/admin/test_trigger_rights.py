"""Permissions for schedules and webhooks in the admin: actions and visible fields."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from agents.features.budgets.models import Budget
from agents.features.inbound_webhooks.actions import DayBudget
from agents.features.inbound_webhooks.deliveries import count_refusal
from agents.features.inbound_webhooks.models import InboundWebhook, InboundWebhookRefusal
from agents.features.schedules.models import Schedule
from agents.models import AuditEntry, Run
from tests.agents.admin.test_triggers import HOOKS, SCHEDULES, staff, typed
from tests.agents.api.rows import make_agent, make_user
from tests.agents.features.inbound_webhooks.rows import make_inbound_webhook
from tests.agents.features.schedules.rows import make_due, make_schedule

pytestmark = pytest.mark.django_db


def with_rights(*verbs: str) -> Client:
    """Return a client with the permissions of these verbs, such as view, for both models."""
    user, client = staff("olga")
    names = [f"{verb}_{kind}" for verb in verbs for kind in ("schedule", "inboundwebhook")]
    rights = Permission.objects.filter(
        content_type__app_label__startswith="vel_", codename__in=names
    )
    user.user_permissions.set(rights)
    return client


def hook_fields(**fields: object) -> dict[str, object]:
    return typed(signing="standard", per_minute="5", **fields)


def test_making_needs_the_right_to_make():
    client = with_rights("view", "change", "delete")
    agent = make_agent()
    for url, fields in ((SCHEDULES, typed), (HOOKS, hook_fields)):
        assert client.get(f"{url}add/").status_code == 403
        assert client.post(f"{url}add/", fields(agent=agent.pk)).status_code == 403


@pytest.mark.parametrize(
    ("verbs", "status"),
    [(("view", "delete"), 403), (("view", "change"), 403), (("view", "change", "delete"), 302)],
)
def test_deleting_needs_the_right_to_delete_and_to_change(verbs: tuple[str, ...], status: int):
    """The service has the same rule, so no page offers an action that is then refused."""
    client = with_rights(*verbs)
    ada, agent = make_user("ada"), make_agent()
    rows: list[Any] = [make_schedule(ada, agent=agent), make_inbound_webhook(ada, agent=agent)[0]]
    for url, row in zip((SCHEDULES, HOOKS), rows, strict=True):
        answer = client.post(f"{url}{row.pk}/delete/", {"post": "yes"})
        assert answer.status_code == status
        assert type(row).objects.exists() == (status == 403)


def test_several_are_deleted_as_one_is():
    """The budgets are deleted, too, and the audit log has an entry for each row."""
    client = with_rights("view", "change", "delete")
    ada, agent = make_user("ada"), make_agent()
    for number in range(2):
        make_schedule(ada, agent=agent, name=f"S{number}")
        make_inbound_webhook(ada, agent=agent, budget=DayBudget(max_tokens=9))
    for url, model in ((SCHEDULES, Schedule), (HOOKS, InboundWebhook)):
        chosen = list(model.objects.values_list("pk", flat=True))
        act = {"action": "delete_selected", "_selected_action": chosen, "post": "yes"}
        assert client.post(url, act).status_code == 302
    assert not Schedule.objects.exists()
    assert not InboundWebhook.objects.exists()
    assert not Budget.objects.exists()
    for action in ("schedule.deleted", "hook.deleted", "budget.removed"):
        assert AuditEntry.objects.filter(action=action).count() == 2, action


def test_only_superusers_see_other_user_names():
    """Users who create their own rows cannot see other user names."""
    _, client = staff("olga")
    make_user("ada-the-other")
    for url in (SCHEDULES, HOOKS):
        assert "ada-the-other" not in client.get(f"{url}add/").content.decode()
    _, root = staff("root", superuser=True)
    for url in (SCHEDULES, HOOKS):
        assert "ada-the-other" in root.get(f"{url}add/").content.decode()


def test_a_superuser_changes_a_row_that_keeps_its_owner():
    ada, eve = make_user("ada"), make_user("eve")
    mine = make_agent("mine", owner=ada, everyone=False)
    hers = make_agent("hers", owner=eve, everyone=False)
    schedule = make_schedule(ada, agent=mine)
    hook, _ = make_inbound_webhook(ada, agent=mine)
    _, client = staff("root", superuser=True)
    for url, row, fields in ((SCHEDULES, schedule, typed), (HOOKS, hook, hook_fields)):
        page = f"{url}{row.pk}/change/"
        named = fields(agent=mine.pk, name="Named anew", owner=eve.pk)
        assert client.post(page, {**named, "signing": "github"}).status_code == 302
        # The owner may not use this agent, although the superuser may.
        refused = client.post(page, {**named, "agent": hers.pk, "name": "Not saved"})
        assert refused.status_code == 200
        assert "The owner has no access to an agent" in refused.content.decode()
        row.refresh_from_db()
        assert (row.name, row.owner, row.agent) == ("Named anew", ada, mine)
    assert InboundWebhook.objects.get().signing == "standard"


def test_an_operator_sees_only_a_part_of_anothers_webhook():
    """The page shows the webhook's refused requests, but not the budget, which has its own page."""
    ada = make_user("ada")
    hook, _ = make_inbound_webhook(ada, budget=DayBudget(max_tokens=777))
    count_refusal(hook.pk, "signature")
    count_refusal("", "strangers")
    client = with_rights("view", "change")
    page = client.get(f"{HOOKS}{hook.pk}/change/").content.decode()
    assert "signature" in page
    assert "strangers" not in page
    assert "777" not in page
    assert "max_tokens_a_day" not in page
    assert "tokens a day" not in page
    assert InboundWebhookRefusal.objects.count() == 2


def test_each_impossible_action_is_reported():
    """An error for one row does not stop the others."""
    user, client = staff("olga")
    agent = make_agent()
    bad, good = (make_schedule(user, agent=agent, name=name) for name in ("Bad", "Good"))
    Schedule.objects.update(is_enabled=False)
    Schedule.objects.filter(pk=bad.pk).update(time_zone="Asia/Nowhere", name="Bad\u202e")
    for action in ("go_on", "run_now"):
        chosen = {"action": action, "_selected_action": [bad.pk, good.pk]}
        page = client.post(SCHEDULES, chosen, follow=True).content.decode()
        assert "Bad⟨U+202E⟩: time_zone" in page
        assert "Good: " in page
    good.refresh_from_db()
    assert good.is_enabled
    assert Run.objects.filter(trigger=good.pk).count() == 1
    hook, _ = make_inbound_webhook(user, agent=agent)
    secret = hook.secret.reveal()
    InboundWebhook.objects.update(owner=make_user("ada"))
    chosen = {"action": "new_secret", "_selected_action": [hook.pk]}
    assert "Only its owner" in client.post(HOOKS, chosen, follow=True).content.decode()
    assert InboundWebhook.objects.get().secret.reveal() == secret


def test_invisible_characters_are_shown():
    user, client = staff("olga")
    schedule = make_schedule(user)
    make_due(schedule)
    schedule.firings.create(due_at=schedule.created_at, outcome="refused", detail="a\u202eb")
    Schedule.objects.update(name="c\u202ed")
    assert "c⟨U+202E⟩d" in client.get(SCHEDULES).content.decode()
    assert "a⟨U+202E⟩b" in client.get(f"{SCHEDULES}{schedule.pk}/change/").content.decode()


def test_ones_own_need_the_right_to_change_here():
    """Only in the admin: the owner can use the pages for users."""
    client = with_rights("view", "add")
    olga = User.objects.get(username="olga")
    agent = make_agent()
    rows: list[Any] = [make_schedule(olga, agent=agent), make_inbound_webhook(olga, agent=agent)[0]]
    for url, row, fields in zip((SCHEDULES, HOOKS), rows, (typed, hook_fields), strict=True):
        named = fields(agent=agent.pk, name="Other")
        assert client.post(f"{url}{row.pk}/change/", named).status_code == 403
        client.post(url, {"action": "pause", "_selected_action": [row.pk]})
        row.refresh_from_db()
        assert (row.name == "Other", row.is_enabled) == (False, True)
