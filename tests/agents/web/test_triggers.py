"""The pages of schedules and webhooks."""

from __future__ import annotations

import pytest
from django.test import Client

from agents.features.budgets.models import Budget
from agents.features.inbound_webhooks.models import InboundWebhook
from agents.features.schedules.models import Schedule
from agents.models import Run
from agents.services.request_rates import forget_shares
from tests.agents.api.rows import make_agent, make_run, make_user
from tests.agents.features.inbound_webhooks.rows import make_inbound_webhook, send, signed

pytestmark = pytest.mark.django_db
SCHEDULE = {
    "name": "Daily",
    "agent": "writer",
    "message": "Report",
    "cron": "0 9 * * *",
    "time_zone": "UTC",
    "thread_policy": "new",
    "overlap": "skip",
    "action": "save",
}
HOOK = {
    "name": "Issues",
    "agent": "writer",
    "message": "Look",
    "signing": "standard",
    "thread_policy": "new",
    "per_minute": "30",
    "max_cost_a_day": "2.50",
    "action": "save",
}


def signed_in(name: str) -> Client:
    client = Client()
    client.force_login(make_user(name))
    return client


def test_a_schedule():
    make_agent()
    client = signed_in("ada")
    bad = client.post("/schedules/", {**SCHEDULE, "cron": "0 0 30 2 *"})
    assert bad.status_code == 400
    assert "Bad day-of-month" in bad.content.decode()
    assert "0 0 30 2 *" in bad.content.decode()
    url = client.post("/schedules/", SCHEDULE)["Location"]
    assert "09:00 UTC" in client.get(url).content.decode()
    client.post(url, {**SCHEDULE, "cron": "", "every_minutes": "90", "ends_at": "2099-01-01T10:00"})
    assert Schedule.objects.get().interval_seconds == 5400
    assert "every 1 h 30 min" in client.get("/schedules/").content.decode()
    Schedule.objects.update(interval_seconds=90)  # set over the API: the form shows whole minutes
    client.post(url, {**SCHEDULE, "cron": "", "every_minutes": "1", "name": "Often"})
    assert Schedule.objects.get(name="Often").interval_seconds == 90
    for text in ({"every_minutes": "x"}, {"ends_at": "soon"}, {"ends_at": "2026-02-30T00:00"}):
        assert client.post(url, {**SCHEDULE, **text}).status_code == 400
    assert client.post(url, {"action": "pause"}).status_code == 302
    assert "Paused" in client.get(url).content.decode()
    client.post(url, {"action": "go_on"})
    run_url = client.post(url, {"action": "run"})["Location"]
    page = client.get(run_url).content.decode()
    assert "by the schedule" in page
    assert url in page
    stranger = signed_in("eve")
    assert stranger.get(url).status_code == 404
    assert stranger.post(url, {"action": "delete"}).status_code == 404
    client.post(url, {"action": "delete"})
    assert not Schedule.objects.exists()
    assert "(removed)" in client.get(run_url).content.decode()


def test_a_hook():
    forget_shares()
    make_agent()
    client = signed_in("ada")
    made = client.post("/webhooks/", HOOK)
    hook = InboundWebhook.objects.get()
    secret = hook.secret.reveal()
    url = f"/webhooks/{hook.pk}/"
    assert secret in made.content.decode()
    assert made["Cache-Control"].count("no-store") == 1
    page = client.get(url).content.decode()
    assert secret not in page
    assert f"/hooks/{hook.pk}" in page
    assert 'value="2.500000"' in page
    run = send(hook.pk, signed(secret)).json()["run"]
    send(hook.pk, {})
    page = client.get(url).content.decode()
    assert f"/runs/{run}/" in page
    assert "1 on" in page
    rotated = client.post(url, {"action": "rotate"}).content.decode()
    hook.refresh_from_db()
    assert hook.secret.reveal() in rotated
    given = "a secret of the sender's"
    for cost in ("x", "NaN", "-1", "1e99"):
        assert client.post(url, {**HOOK, "max_cost_a_day": cost}).status_code == 400
    assert client.post(url, {"action": "rotate", "secret": given}).status_code == 400
    assert given not in client.post(url, {"action": "rotate", "secret": given}).content.decode()
    client.post(url, {**HOOK, "max_cost_a_day": ""})
    assert not Budget.objects.filter(trigger=hook.pk).exists()
    stranger = signed_in("eve")
    for action in ("rotate", "delete", "pause"):
        assert stranger.post(url, {"action": action}).status_code == 404
    client.post(url, {"action": "delete"})
    assert not InboundWebhook.objects.exists()


def test_the_history_can_be_filtered_by_trigger():
    forget_shares()
    client = signed_in("ada")
    from django.contrib.auth.models import User

    ada = User.objects.get()
    hook, secret = make_inbound_webhook(ada)
    by_hook = send(hook.pk, signed(secret)).json()["run"]
    by_person = make_run(ada).pk

    def found(by: str) -> set[str]:
        page = client.get(f"/runs/?by={by}").content.decode()
        return {run for run in Run.objects.values_list("pk", flat=True) if run in page}

    assert found("hook") == {by_hook}
    assert found("person") == {by_person}
    assert found("schedule") == set()
    assert found("") == found("nonsense") == {by_hook, by_person}


@pytest.mark.parametrize("end", ["0001-01-01T00:00+23:59", "9999-12-31T23:59-23:59", "x"])
def test_an_end_beyond_the_calendar(end: str):
    make_agent()
    client = signed_in("ada")
    client.raise_request_exception = False
    assert client.post("/schedules/", {**SCHEDULE, "ends_at": end}).status_code == 400
    assert not Schedule.objects.exists()
