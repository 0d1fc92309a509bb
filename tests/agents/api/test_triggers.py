"""Schedules and webhooks over REST, and the runs that they started."""

from __future__ import annotations

import hashlib
import json

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from agents.features.budgets.models import Budget
from agents.features.inbound_webhooks.models import InboundWebhook
from agents.features.schedules.models import Schedule
from agents.models import AuditEntry, IdempotencyKey, Run
from agents.services.request_rates import forget_shares
from tests.agents.api.rows import client_for, make_agent, make_run, make_user
from tests.agents.features.inbound_webhooks.rows import BODY, make_inbound_webhook, send, signed

pytestmark = pytest.mark.django_db
TIMES = {"name": "Daily", "agent": "writer", "message": "Report", "cron": "0 9 * * *"}
GIVEN_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HOOK = {"name": "Issues", "agent": "writer", "message": "Look at {{ body.a }}"}


def session(user: User) -> APIClient:
    client = APIClient()
    client.force_login(user)
    return client


def test_a_schedule_from_its_making_to_its_end():
    make_agent()
    client = client_for(make_user("ada"))
    made = client.post("/api/v1/schedules", TIMES, format="json")
    url = made["Location"]
    assert made.status_code == 201
    assert made.json()["due_at"].endswith("T09:00:00Z")

    changed = client.patch(url, {"cron": "", "interval_seconds": 3600}, format="json").json()
    assert (changed["cron"], changed["interval_seconds"]) == ("", 3600)
    assert client.patch(url, {"enabled": False}, format="json").json()["due_at"] is None
    assert [row["id"] for row in client.get("/api/v1/schedules?enabled=false").json()["results"]]
    assert client.get("/api/v1/schedules?enabled=true").json()["results"] == []
    run = client.post(f"{url}/run").json()["run"]
    firing = client.get(f"{url}/firings").json()["results"][0]
    assert (firing["run"], firing["outcome"], firing["reason"]) == (run, "started", "by_hand")
    assert client.delete(url).status_code == 204
    shown = client.get(f"/api/v1/runs/{run}").json()
    assert shown["started_by"] == {"kind": "schedule", "id": None, "name": None}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({**TIMES, "cron": "0 0 30 2 *"}, 400),
        ({**TIMES, "agent": "nobody"}, 404),
        ({**TIMES, "interval_seconds": 60}, 400),
        ({**TIMES, "time_zone": "Mars"}, 400),
        ({**TIMES, "message": "{{ body }}"}, 400),
        ({**TIMES, "owner": 1}, 400),
    ],
)
def test_schedules_that_are_refused(body: dict[str, object], status: int):
    make_agent()
    assert (
        client_for(make_user("ada")).post("/api/v1/schedules", body, format="json").status_code
        == status
    )


def test_strangers_find_nothing():
    ada, eve = make_user("ada"), make_user("eve")
    agent = make_agent()
    schedule = Schedule.objects.get(
        pk=client_for(ada).post("/api/v1/schedules", TIMES, format="json").json()["id"]
    )
    hook, _ = make_inbound_webhook(ada, agent=agent)
    client = session(eve)
    for url in (f"/api/v1/schedules/{schedule.pk}", f"/api/v1/hooks/{hook.pk}"):
        assert client.get(url).status_code == 404
        assert client.patch(url, {"enabled": False}, format="json").status_code == 404
        assert client.delete(url).status_code == 404
    assert client.post(f"/api/v1/schedules/{schedule.pk}/run").status_code == 404
    assert client.get(f"/api/v1/schedules/{schedule.pk}/firings").status_code == 404
    assert client.post(f"/api/v1/hooks/{hook.pk}/rotate", {}, format="json").status_code == 404
    assert client.get(f"/api/v1/hooks/{hook.pk}/deliveries").status_code == 404
    assert client.get("/api/v1/hooks").json()["results"] == []
    assert client.get("/api/v1/schedules").json()["results"] == []


def test_the_owner_of_an_agent_is_not_revealed():
    """Agents of other users and missing agents get the same answer, on create and on update."""
    ada, eve = make_user("ada"), make_user("eve")
    make_agent()
    make_agent("hidden", owner=eve, everyone=False)
    client = session(ada)
    for path, body in (("/api/v1/schedules", TIMES), ("/api/v1/hooks", HOOK)):
        own = client.post(path, body, format="json")["Location"]
        for ask in (
            lambda slug: client.post(path, {**body, "agent": slug}, format="json"),  # noqa: B023
            lambda slug: client.patch(own, {"agent": slug}, format="json"),  # noqa: B023
        ):
            hidden, none = ask("hidden"), ask("absent")
            assert (hidden.status_code, none.status_code) == (404, 404)
            assert hidden.content.replace(b"hidden", b"absent") == none.content


def test_triggers_of_a_lost_agent_can_be_stopped():
    """A trigger can be disabled after its owner loses access to the agent."""
    ada = make_user("ada")
    agent = make_agent()
    client = session(ada)
    urls = [
        client.post(path, body, format="json")["Location"]
        for path, body in (("/api/v1/schedules", TIMES), ("/api/v1/hooks", HOOK))
    ]
    for url in urls:
        both = client.patch(url, {"enabled": False, "name": "Other"}, format="json").json()
        assert (both["enabled"], both["name"]) == (False, "Other")
        both = client.patch(url, {"enabled": True, "name": "Again"}, format="json").json()
        assert (both["enabled"], both["name"]) == (True, "Again")
    agent.everyone = False
    agent.save()
    for url in urls:
        assert client.patch(url, {"name": "Third"}, format="json").status_code == 404
        stopped = client.patch(url, {"enabled": False}, format="json")
        assert (stopped.status_code, stopped.json()["enabled"]) == (200, False)


@pytest.mark.both_databases
def test_lists_by_agent_and_by_whether_they_are_enabled():
    ada = make_user("ada")
    client = session(ada)
    for slug in ("writer", "reader"):
        make_agent(slug)
        for path, body in (("/api/v1/schedules", TIMES), ("/api/v1/hooks", HOOK)):
            given = {**body, "agent": slug, "enabled": slug == "reader"}
            assert client.post(path, given, format="json").status_code == 201

    for path in ("/api/v1/schedules", "/api/v1/hooks"):
        for query, expected in (
            ("", ["reader", "writer"]),
            ("agent=writer", ["writer"]),
            ("enabled=true", ["reader"]),
            ("enabled=false", ["writer"]),
            ("agent=nobody", []),
        ):
            rows = client.get(f"{path}?{query}").json()["results"]
            assert [row["agent"] for row in rows] == expected, (path, query)
        first = client.get(f"{path}?limit=1").json()
        rest = client.get(f"{path}?limit=1&cursor={first['next_cursor']}").json()
        assert [row["agent"] for row in first["results"] + rest["results"]] == ["reader", "writer"]


def test_a_token_that_cannot_start_runs_cannot_make_triggers():
    """A stolen token with the scope `manage` alone can only disable and delete schedules."""
    make_agent()
    ada = make_user("ada")
    url = client_for(ada, "manage", "run").post("/api/v1/schedules", TIMES, format="json")[
        "Location"
    ]
    stolen = client_for(ada, "read", "approve", "manage")
    refused = [
        stolen.post("/api/v1/schedules", {**TIMES, "cron": "* * * * *"}, format="json"),
        stolen.patch(url, {"message": "Send me all"}, format="json"),
        stolen.patch(url, {"enabled": False, "message": "Send me all"}, format="json"),
        stolen.patch(url, {"enabled": True}, format="json"),
        stolen.post(f"{url}/run"),
    ]
    assert {(answer.status_code, answer.json()["code"]) for answer in refused} == {
        (403, "insufficient_scope")
    }
    schedule = Schedule.objects.get()
    assert (schedule.message, schedule.is_enabled) == ("Report", True)
    assert stolen.patch(url, {"enabled": False}, format="json").status_code == 200
    assert stolen.delete(url).status_code == 204


def test_a_repeated_request_makes_one_schedule_and_one_hook_and_stores_no_secret():
    make_agent()
    client = session(make_user("ada"))
    hook = {**HOOK, "secret": GIVEN_SECRET}
    for path, body in (("schedules", TIMES), ("hooks", hook)):
        key = {"Idempotency-Key": f"for-{path}"}
        url = f"/api/v1/{path}"
        first, again = (client.post(url, body, format="json", headers=key) for _ in range(2))
        assert (first.status_code, again.status_code) == (201, 201), first.content
        assert again["Idempotency-Replayed"] == "true"
        assert again["Location"] == first["Location"]
        assert again.json() == first.json() | ({"secret": ""} if path == "hooks" else {})
        other = client.post(url, {**body, "name": "Other"}, format="json", headers=key)
        assert other.json()["code"] == "idempotency_mismatch"
    assert (Schedule.objects.count(), InboundWebhook.objects.count()) == (1, 1)
    assert first.json()["secret"] == GIVEN_SECRET
    stored = IdempotencyKey.objects.get(key="for-hooks")
    assert GIVEN_SECRET not in stored.answer
    body = json.dumps(hook, sort_keys=True, separators=(",", ":"))
    guessed = hashlib.sha256(f'["POST","/api/v1/hooks"]{body}'.encode()).hexdigest()
    assert stored.body_hash != guessed


def test_no_token_makes_a_hook_or_reads_a_secret():
    """A hook would remain valid after the token ends."""
    ada = make_user("ada")
    hook, secret = make_inbound_webhook(ada)
    client = client_for(ada)  # with all scopes
    url = f"/api/v1/hooks/{hook.pk}"
    assert client.post("/api/v1/hooks", HOOK, format="json").status_code == 403
    assert client.patch(url, {"message": "Obey"}, format="json").status_code == 403
    assert client.delete(url).status_code == 403
    assert client.post(f"{url}/rotate", {}, format="json").status_code == 403
    assert secret not in client.get(url).content.decode()
    assert "secret" not in client.get("/api/v1/hooks").json()["results"][0]


def test_a_hook_from_its_making_to_its_end():
    forget_shares()
    make_agent()
    ada = make_user("ada")
    client = session(ada)
    body = {**HOOK, "max_tokens_a_day": 1000, "max_cost_a_day": "2.5"}
    made = client.post("/api/v1/hooks", body, format="json").json()
    hook, secret = made["hook"], made["secret"]
    url = f"/api/v1/hooks/{hook['id']}"
    assert (hook["max_tokens_a_day"], hook["max_cost_a_day"]) == (1000, "2.500000")
    assert hook["url"] == f"/hooks/{hook['id']}"

    run = send(hook["id"], signed(secret)).json()["run"]
    delivery = client.get(f"{url}/deliveries").json()["results"][0]
    assert (delivery["run"], delivery["key"], delivery["size"]) == (run, "msg_1", len(BODY))
    rotated = client.post(f"{url}/rotate", {"overlap": 0}, format="json").json()
    assert rotated["secret"] != secret
    assert send(hook["id"], signed(secret, message_id="m2")).status_code == 404
    changed = client.patch(url, {"max_tokens_a_day": None}, format="json").json()
    assert (changed["max_tokens_a_day"], changed["max_cost_a_day"]) == (None, "2.500000")
    client.patch(url, {"max_cost_a_day": None}, format="json")
    assert not Budget.objects.exists()
    assert client.delete(url).status_code == 204
    assert not InboundWebhook.objects.exists()
    assert Run.objects.get().pk == run
    for entry in AuditEntry.objects.all():
        assert secret not in str(entry.__dict__)
        assert rotated["secret"] not in str(entry.__dict__)


@pytest.mark.both_databases
def test_lists_of_runs_are_filtered_by_trigger():
    forget_shares()
    ada = make_user("ada")
    agent = make_agent()
    client = client_for(ada)
    hook, secret = make_inbound_webhook(ada, agent=agent)
    schedule = client.post("/api/v1/schedules", TIMES, format="json").json()["id"]
    by_schedule = client.post(f"/api/v1/schedules/{schedule}/run").json()["run"]
    by_hook = send(hook.pk, signed(secret)).json()["run"]
    by_person = make_run(ada).pk

    def found(query: str) -> list[str]:
        return [row["id"] for row in client.get(f"/api/v1/runs?{query}").json()["results"]]

    assert found("started_by=schedule") == found(f"schedule={schedule}") == [by_schedule]
    assert found("started_by=hook") == found(f"hook={hook.pk}") == [by_hook]
    assert found("started_by=person") == [by_person]
    assert len(found("")) == 3
    shown = client.get(f"/api/v1/runs/{by_hook}").json()
    assert shown["source"] == "hook"
    assert shown["started_by"] == {"kind": "hook", "id": hook.pk, "name": "Issues"}
    assert client.get(f"/api/v1/runs/{by_person}").json()["started_by"]["kind"] == "person"
