"""The endpoint for signed requests from outside."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.features.inbound_webhooks import deliveries, door
from agents.features.inbound_webhooks.actions import (
    delete_inbound_webhook,
    enable_inbound_webhook,
)
from agents.features.inbound_webhooks.models import (
    InboundWebhook,
    InboundWebhookDelivery,
    InboundWebhookRefusal,
    InboundWebhookSigning,
)
from agents.features.inbound_webhooks.signatures import new_secret
from agents.models import Message, Run
from tests.agents.api.rows import make_agent, make_user
from tests.agents.features.inbound_webhooks.rows import BODY, make_inbound_webhook, send, signed

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("one_minute")]


def refusals() -> dict[tuple[str, str], int]:
    return {(row.subject, row.reason): row.count for row in InboundWebhookRefusal.objects.all()}


def test_a_signed_request_starts_a_run():
    ada = make_user("ada")
    hook, secret = make_inbound_webhook(ada)

    answer = send(hook.pk, signed(secret))

    run = Run.objects.get()
    assert (answer.status_code, answer.json()) == (202, {"run": run.pk, "repeated": False})
    assert (run.owner, run.source, run.trigger) == (ada, "hook", hook.pk)
    assert run.thread.title == "Issues"
    text = Message.objects.get(run=run).text
    assert text.startswith("A request to the webhook Issues started this.")
    assert ">Rain</data-" in text
    assert answer["Cache-Control"].startswith("max-age=0")
    assert secret not in str(InboundWebhook.objects.values())
    assert secret not in repr(InboundWebhook.objects.get().__dict__)


def test_all_that_is_wrong_gets_one_answer():
    """The answer hides whether the hook exists or is paused, and which check failed."""
    ada = make_user("ada")
    agent = make_agent()
    hook, secret = make_inbound_webhook(ada, agent=agent)
    other, others_secret = make_inbound_webhook(ada, agent=agent)
    paused, paused_secret = make_inbound_webhook(ada, agent=agent)
    enable_inbound_webhook(paused.pk, False, by=ada)
    old = int(time.time()) - 301
    good = signed(secret)
    attempts = {
        "unknown": ("0" * 26, good, BODY),
        "odd": ("x", {}, b""),
        "nothing": (hook.pk, {}, BODY),
        "paused": (paused.pk, signed(paused_secret), BODY),
        "another's": (hook.pk, signed(others_secret), BODY),
        "for another": (other.pk, good, BODY),
        "made up": (hook.pk, signed(new_secret()), BODY),
        "old": (hook.pk, signed(secret, at=old), BODY),
        "early": (hook.pk, signed(secret, at=int(time.time()) + 600), BODY),
        "changed": (hook.pk, good, BODY.replace(b"R", b"r")),
        "longer": (hook.pk, good, BODY + b" "),
        "another id": (hook.pk, {**good, "webhook-id": "msg_2"}, BODY),
        "another time": (
            hook.pk,
            {**good, "webhook-timestamp": str(int(good["webhook-timestamp"]) + 1)},
            BODY,
        ),
        "twice": (hook.pk, {**good, "webhook-id": "msg_1,msg_1"}, BODY),
        "huge": (hook.pk, {**good, "webhook-signature": "v1,x " * 200_000}, BODY),
        "github": (hook.pk, {"x-hub-signature-256": "sha256=" + "0" * 64}, BODY),
    }
    answers = {}
    for name, (hook_id, headers, body) in attempts.items():
        answer = send(hook_id, headers, body)
        kept = {key: value for key, value in answer.headers.items() if key != "Expires"}
        answers[name] = (answer.status_code, answer.content, str(kept.get("Content-Type")))

    assert len(set(answers.values())) == 1, answers
    assert answers["unknown"][0] == 404
    assert not Run.objects.exists()
    assert not InboundWebhookDelivery.objects.exists()
    counts = refusals()
    assert counts[("", "unknown")] == 2
    assert counts[(paused.pk, "paused")] == 1
    assert counts[(hook.pk, "signature")] == 12
    assert counts[(other.pk, "signature")] == 1


def test_a_hook_that_is_deleted_during_the_request_is_unknown(monkeypatch: pytest.MonkeyPatch):
    ada = make_user("ada")
    hook, secret = make_inbound_webhook(ada)

    def admit_and_delete(*arguments: Any, **named: Any) -> Any:
        found = deliveries.admit(*arguments, **named)
        if found is not None:
            delete_inbound_webhook(hook.pk, by=ada)
        return found

    monkeypatch.setattr(door, "admit", admit_and_delete)

    unknown = send("x", {})

    answer = send(hook.pk, signed(secret))

    assert (answer.status_code, answer.content) == (404, unknown.content)
    assert not Run.objects.exists()


@pytest.mark.slow
def test_an_unknown_id_costs_as_much_as_a_bad_signature():
    hook, _ = make_inbound_webhook(make_user("ada"))
    bad = signed(new_secret())
    found = {}
    for hook_id in (hook.pk, "0" * 26):
        send(hook_id, bad)  # the first refusal of the day creates a row
        with CaptureQueriesContext(connection) as queries:
            send(hook_id, bad)
        found[hook_id] = [each["sql"].split(" ")[0] for each in queries]
    assert found[hook.pk] == found["0" * 26]

    large = b"x" * 900_000
    times: dict[str, list[float]] = {hook.pk: [], "0" * 26: []}
    for _ in range(15):
        for hook_id, spent in times.items():
            begun = time.thread_time()
            deliveries.admit(hook_id, bad, large, network=f"n{_}{hook_id}")
            spent.append(time.thread_time() - begun)
    known, unknown = (sorted(spent)[4] for spent in times.values())
    assert 0.4 < known / unknown < 2.5


@pytest.mark.both_databases
def test_failures_of_one_address_are_limited_and_write_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
):
    hook, secret = make_inbound_webhook(make_user("ada"))
    monkeypatch.setattr(deliveries, "FAILURES_A_MINUTE", 2)
    codes = [send(hook_id, {}).status_code for hook_id in (hook.pk, "x", hook.pk, "x")]

    assert codes == [404, 404, 429, 429]
    assert sum(refusals().values()) == 2
    # Refusals of others do not block a sender with the secret.
    assert send(hook.pk, signed(secret)).status_code == 202


@pytest.mark.both_databases
def test_the_same_id_is_the_same_run():
    hook, secret = make_inbound_webhook(make_user("ada"))
    first = send(hook.pk, signed(secret)).json()
    now = int(time.time())

    again = send(hook.pk, signed(secret)).json()
    later = send(hook.pk, signed(secret, at=now + 20)).json()  # a sender's own retry
    other = json.dumps({"issue": {"title": "Other"}}).encode()
    mismatch = send(hook.pk, signed(secret, other), other)

    assert again == later == {"run": first["run"], "repeated": True}
    assert (mismatch.status_code, mismatch.json()["code"]) == (409, "delivery_mismatch")
    assert Run.objects.count() == 1
    assert InboundWebhookDelivery.objects.get().repeats == 2
    assert send(hook.pk, signed(secret, message_id="msg_2")).json()["run"] != first["run"]


def test_github_cannot_be_sent_again_under_another_id():
    """GitHub signs neither a time nor the delivery's id."""
    hook, secret = make_inbound_webhook(make_user("ada"), signing=InboundWebhookSigning.GITHUB)
    mac = hmac.new(secret.encode(), BODY, hashlib.sha256).hexdigest()
    answers = [
        send(hook.pk, {"X-Hub-Signature-256": f"sha256={mac}", "X-GitHub-Delivery": str(number)})
        for number in range(3)
    ]

    assert [answer.status_code for answer in answers] == [202] * 3
    assert len({answer.json()["run"] for answer in answers}) == 1


def event_headers(signing: str, secret: str, body: bytes, at: int) -> dict[str, str]:
    """Return headers of a request that Slack or Stripe signed at `at`."""
    start = f"v0:{at}:" if signing == "slack" else f"{at}."
    mac = hmac.new(secret.encode(), start.encode() + body, hashlib.sha256).hexdigest()
    if signing == "slack":
        return {"X-Slack-Request-Timestamp": str(at), "X-Slack-Signature": f"v0={mac}"}
    return {"Stripe-Signature": f"t={at},v1={mac}"}


@pytest.mark.parametrize(("signing", "field"), [("slack", "event_id"), ("stripe", "id")])
def test_a_retry_that_is_signed_again_starts_no_second_run(signing: str, field: str):
    """Slack and Stripe sign each attempt with a new time; only a new id is a new event."""
    hook, secret = make_inbound_webhook(make_user("ada"), signing=signing)
    now = int(time.time())

    def sent(at: int, **values: object) -> dict[str, Any]:
        body = json.dumps({"issue": {"title": "Rain"}, **values}).encode()
        answer = send(hook.pk, event_headers(signing, secret, body, at), body)
        assert answer.status_code == 202
        return answer.json()

    first = sent(now - 200, **{field: "evt_1"})
    assert sent(now, **{field: "evt_1"}) == {"run": first["run"], "repeated": True}
    # Stripe counts the pending deliveries of an event in its body.
    fewer = sent(now, **{field: "evt_1"}, pending_webhooks=0)
    assert fewer == {"run": first["run"], "repeated": True}
    other = sent(now, **{field: "evt_2"})
    assert not other["repeated"]
    without_id = sent(now - 200)
    assert not without_id["repeated"]
    assert sent(now) == {"run": without_id["run"], "repeated": True}
    assert Run.objects.count() == 3


def test_the_challenge_of_slack_is_answered():
    given = "8f742231b10e8888abcd99yyyzzz85a5"
    hook, shown = make_inbound_webhook(
        make_user("ada"), signing=InboundWebhookSigning.SLACK, given=given
    )
    assert shown == given
    body = json.dumps({"type": "url_verification", "challenge": "abc"}).encode()
    at = str(int(time.time()))
    mac = hmac.new(given.encode(), f"v0:{at}:".encode() + body, hashlib.sha256).hexdigest()
    headers = {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": f"v0={mac}"}

    assert send(hook.pk, headers, body).json() == {"challenge": "abc"}
    assert (
        send(hook.pk, {**headers, "X-Slack-Signature": "v0=" + "0" * 64}, body).status_code == 404
    )
    assert not Run.objects.exists()


@pytest.mark.parametrize("challenge", ["x" * 200, "x" * 201])
def test_only_slack_gets_its_challenge_back(challenge: str):
    """Only challenges of at most 200 characters are sent back; longer ones are normal requests."""
    ada, given = make_user("ada"), "8f742231b10e8888abcd99yyyzzz85a5"
    hook, secret = make_inbound_webhook(ada)
    slack, _ = make_inbound_webhook(
        ada, agent=hook.agent, signing=InboundWebhookSigning.SLACK, given=given
    )
    body = json.dumps({"type": "url_verification", "challenge": challenge}).encode()
    at = str(int(time.time()))
    mac = hmac.new(given.encode(), f"v0:{at}:".encode() + body, hashlib.sha256).hexdigest()
    headers = {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": f"v0={mac}"}

    assert send(hook.pk, signed(secret, body), body).status_code == 202
    assert send(slack.pk, headers, body).status_code == (200 if len(challenge) == 200 else 202)
