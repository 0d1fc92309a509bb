"""The pages of schedules and webhooks: visible rows, and accepted forms."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from agents.features.inbound_webhooks.models import InboundWebhook
from agents.features.schedules.models import Schedule
from agents.models import Run
from tests.agents.api.rows import make_agent, make_user
from tests.agents.features.inbound_webhooks.rows import make_inbound_webhook
from tests.agents.features.schedules.rows import make_schedule
from tests.agents.web.test_triggers import HOOK, SCHEDULE
from tests.support import site_writer

pytestmark = pytest.mark.django_db
GIVEN = "a secret that the sender gave"


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.slow
def test_the_lists_are_of_ones_own_and_of_agents_that_one_may_use():
    """Also for operators, who see the rows of others in the admin."""
    ada, eve = make_user("ada"), make_user("eve")
    eve.user_permissions.set(Permission.objects.filter(codename__endswith="_schedule"))
    agent = make_agent()
    make_agent("secretive", owner=ada, everyone=False)
    schedule = make_schedule(ada, agent=agent, name="Ada's report")
    hook, _ = make_inbound_webhook(ada, agent=agent, name="Ada's issues")
    client = signed_in(eve)
    for path, row in (("/schedules/", schedule), ("/webhooks/", hook)):
        own = client.post(path, (SCHEDULE if row is schedule else HOOK) | {"name": "Mine"})
        assert own.status_code in (200, 302)
        page = client.get(path).content.decode()
        assert "Mine" in page
        assert row.pk not in page
        assert "secretive" not in page
        assert client.get(f"{path}{row.pk}/").status_code == 404
    before = (Schedule.objects.count(), InboundWebhook.objects.count())
    for path, fields in (("/schedules/", SCHEDULE), ("/webhooks/", HOOK)):
        hidden = client.post(path, {**fields, "agent": "secretive"})
        none = client.post(path, {**fields, "agent": "nonsense1"})
        assert (hidden.status_code, none.status_code) == (404, 404)
        problem = hidden.context["problem"]
        assert problem.replace("secretive", "nonsense1") == none.context["problem"]
    assert (Schedule.objects.count(), InboundWebhook.objects.count()) == before


def test_a_run_of_ones_own_fills_in_the_form_of_a_new_schedule():
    ada, eve = make_user("ada"), make_user("eve")
    run = site_writer.make_run("ada", "Look for <b>rain</b>\u202e")
    Run.objects.get(pk=run).thread.__class__.objects.update(title="Rain")
    page = signed_in(ada).get(f"/schedules/?run={run}").content.decode()
    assert 'name="name" required maxlength="100" value="Rain"' in page
    assert "Look for &lt;b&gt;rain&lt;/b&gt;⟨U+202E⟩</textarea>" in page
    assert f'href="/runs/{run}/"' in page
    foreign = signed_in(eve).get(f"/schedules/?run={run}").content.decode()
    assert "rain" not in foreign
    assert f"/runs/{run}/" not in foreign
    assert signed_in(eve).get("/schedules/?run=%00").status_code == 200


def test_a_refused_form_keeps_the_typed_text_and_changes_nothing():
    ada = make_user("ada")
    client = signed_in(ada)
    agent = make_agent()
    schedule = make_schedule(ada, agent=agent, name="Stored name")
    hook, _ = make_inbound_webhook(ada, agent=agent, name="Stored name")
    for path, fields, bad in (
        (f"/schedules/{schedule.pk}/", SCHEDULE, {"cron": "0 0 30 2 *"}),
        (f"/webhooks/{hook.pk}/", HOOK, {"per_minute": "0"}),
    ):
        refused = client.post(path, {**fields, **bad, "name": "Typed name"})
        page = refused.content.decode()
        assert refused.status_code == 400
        assert "<h1>Stored name</h1>" in page
        assert 'value="Typed name"' in page
        # Another button of the page has no fields: the stored values do not change.
        for action in ("nonsense", ""):
            other = client.post(path, {"action": action})
            assert other.status_code == 400
            assert other.context.get("typed") is None
            assert 'value="Stored name"' in other.content.decode()
    assert set(Schedule.objects.values_list("name")) == {("Stored name",)}
    assert set(InboundWebhook.objects.values_list("name")) == {("Stored name",)}


def test_a_form_saves_the_values_that_it_was_filled_with():
    """Saving the form without a change keeps the schedule unchanged."""
    ada = make_user("ada")
    client = signed_in(ada)
    ends_at = datetime(2099, 1, 1, 8, 30, tzinfo=UTC)
    schedule = make_schedule(ada, message="One\nTwo", ends_at=ends_at, overlap="queue")
    path = f"/schedules/{schedule.pk}/"
    given = client.get(path).context["given"]
    typed = {**given, "message": given["message"].replace("\n", "\r\n"), "action": "save"}
    assert client.post(path, typed).status_code == 302
    saved = Schedule.objects.get()
    for name in ("name", "message", "cron", "interval_seconds", "ends_at", "overlap", "due_at"):
        assert getattr(saved, name) == getattr(schedule, name), name
    assert client.post(path, {**typed, "ends_at": "2099-01-01T10:30+02:00"}).status_code == 302
    assert Schedule.objects.get().ends_at == ends_at


@pytest.mark.slow_cases
@pytest.mark.parametrize("number", ["9" * 5_000, "9" * 17, "-1", "1.5", "٣", "²", " "])
def test_invalid_numbers_are_refused(number: str):
    make_agent()
    client = signed_in(make_user("ada"))
    often = {**SCHEDULE, "cron": "", "every_minutes": number}
    assert client.post("/schedules/", often).status_code == 400
    assert client.post("/webhooks/", {**HOOK, "per_minute": number}).status_code == 400
    if number != " ":
        assert client.post("/webhooks/", {**HOOK, "max_tokens_a_day": number}).status_code == 400
    assert not Schedule.objects.exists()
    assert not InboundWebhook.objects.exists()


def test_a_hook_is_paused_and_resumed():
    ada = make_user("ada")
    hook, _ = make_inbound_webhook(ada)
    client = signed_in(ada)
    for action, expected in (("pause", False), ("go_on", True)):
        client.post(f"/webhooks/{hook.pk}/", {"action": action})
        hook.refresh_from_db()
        assert hook.is_enabled == expected


def test_a_secret_that_somebody_typed_is_not_shown():
    """The user who entered it has it already, and others must not see it."""
    make_agent()
    client = signed_in(make_user("ada"))
    made = client.post("/webhooks/", {**HOOK, "signing": "github", "secret": GIVEN})
    hook = InboundWebhook.objects.get()
    assert (made.status_code, hook.secret.reveal()) == (200, GIVEN)
    assert GIVEN not in made.content.decode()
    again = client.post(f"/webhooks/{hook.pk}/", {"action": "rotate", "secret": f"{GIVEN} 2"})
    hook.refresh_from_db()
    assert (again.status_code, hook.secret.reveal()) == (200, f"{GIVEN} 2")
    assert GIVEN not in again.content.decode()


def test_deleting_takes_two_steps():
    """A webhook's address and secret cannot be restored."""
    ada = make_user("ada")
    agent = make_agent()
    hook, _ = make_inbound_webhook(ada, agent=agent)
    schedule = make_schedule(ada, agent=agent)
    client = signed_in(ada)
    for path in (f"/webhooks/{hook.pk}/", f"/schedules/{schedule.pk}/"):
        page = client.get(path).content.decode()
        closed = page.index("<summary>Delete</summary>")
        assert closed < page.index('value="delete"') < page.index("</details>", closed)
        client.post(path, {"action": "delete"})
        assert client.get(path).status_code == 404
