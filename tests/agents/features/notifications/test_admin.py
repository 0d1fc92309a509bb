"""Targets and messages in the admin: checks on saving, secrets shown once, tests, retries."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents.features.notifications.models import Notification, NotificationTarget
from tests.agents.admin import rows
from tests.agents.admin.pages import act, client_of, list_url, messages_of, page_url, text_of
from tests.agents.features.notifications.waiting import email, private, webhook
from tests.support.receivers import receiver

pytestmark = pytest.mark.django_db(transaction=True)

ADD = "admin:vel_notifications_notificationtarget_add"
PUBLIC = "https://hooks.example.org/vel"
SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]{20,}")


def add(client, **fields):
    data = {"kind": "webhook", "address": PUBLIC, "agent": "", "is_active": "on", **fields}
    return client.post(reverse(ADD), data, follow=True)


def given_up(owner="ada", **target):
    target = webhook(PUBLIC, **target)
    request = rows.asked(rows.run(rows.user(owner)))
    return Notification.objects.create(
        target=target,
        type="approval.requested",
        subject_id=request.pk,
        run=request.run,
        status="given_up",
        attempts=10,
        error="\u202eit <b>said",
    )


def test_a_secret_is_made_and_shown_exactly_once():
    client = client_of(rows.superuser())
    response = add(client)
    target = NotificationTarget.objects.get()
    assert SECRET.search(messages_of(response)[0])[0] == target.secret
    for url in (list_url(NotificationTarget), page_url(target), reverse("admin:index")):
        assert target.secret not in text_of(client.get(url))


def test_saving_again_keeps_the_secret_and_another_url_gets_another():
    client = client_of(rows.superuser())
    add(client)
    target = NotificationTarget.objects.get()
    data = {"kind": "webhook", "address": PUBLIC, "agent": "", "secret": "whsec_mine"}
    client.post(page_url(target), data)
    after = NotificationTarget.objects.get()
    assert (after.is_active, after.secret) == (False, target.secret)
    response = client.post(page_url(target), {**data, "address": f"{PUBLIC}2"}, follow=True)
    made = NotificationTarget.objects.get().secret
    assert made not in (target.secret, "whsec_mine")
    assert any(made in message for message in messages_of(response))


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        ("webhook", "https://169.254.169.254/"),
        ("webhook", "http://hooks.example.org/"),
        ("webhook", "ada@example.org"),
        ("email", PUBLIC),
        ("email", "ada@example.org, eve@example.org"),
    ],
)
def test_an_address_that_does_not_fit_is_an_error_of_its_field(kind, address):
    response = add(client_of(rows.superuser()), kind=kind, address=address)
    assert list(response.context["adminform"].form.errors) == ["address"]
    assert not NotificationTarget.objects.exists()


def test_a_test_message_is_sent_and_its_failure_shown():
    client = client_of(rows.superuser())
    with receiver([200, 500]) as hook, private(hook.host):
        target = webhook(hook.url)
        assert "has arrived" in messages_of(act(client, "send_test_message", target))[0]
        assert "answered 500" in messages_of(act(client, "send_test_message", target))[0]
        assert [got.json["type"] for got in hook.received] == ["test", "test"]
        several = [target, *(webhook(hook.url) for _ in range(3))]
        assert "at most" in messages_of(act(client, "send_test_message", *several))[0]
        assert len(hook.received) == 2


def test_a_new_secret_replaces_the_old_one():
    client = client_of(rows.superuser())
    target, address = webhook(PUBLIC), email()
    told = messages_of(act(client, "make_new_secret", target, address))
    made = NotificationTarget.objects.get(pk=target.pk).secret
    assert made != target.secret
    assert made in told[0]
    assert "Only webhooks" in told[1]


@pytest.mark.parametrize("action", ["send_test_message", "make_new_secret"])
def test_acting_on_targets_needs_the_permission_to_change(action):
    with receiver() as hook, private(hook.host):
        target = webhook(hook.url)
        act(client_of(rows.staff("reader", "view_notificationtarget")), action, target)
        assert hook.received == []
    assert NotificationTarget.objects.get().secret == target.secret


def test_a_target_is_removed_with_its_messages():
    row = given_up()
    clerk = client_of(rows.staff("clerk", "view_notificationtarget", "delete_notificationtarget"))
    url = reverse("admin:vel_notifications_notificationtarget_delete", args=[row.target_id])
    assert clerk.post(url, {"post": "yes"}).status_code == 302
    assert not NotificationTarget.objects.exists()
    assert not Notification.objects.exists()
    other = given_up("bob")
    act(clerk, "delete_selected", other.target, post="yes")
    assert not NotificationTarget.objects.exists()


def test_a_message_that_was_given_up_is_tried_again():
    row = given_up()
    client = client_of(rows.superuser())
    assert "tries it again" in messages_of(act(client, "try_again", row))[0]
    row.refresh_from_db()
    assert (row.status, row.attempts) == ("pending", 0)
    Notification.objects.update(status="delivered")
    assert "delivered" in messages_of(act(client, "try_again", row))[0]


def test_trying_again_needs_the_permission_to_change():
    row = given_up()
    act(client_of(rows.staff("reader", "view_notification")), "try_again", row)
    row.refresh_from_db()
    assert row.status == "given_up"


def test_messages_are_only_read_and_errors_are_text():
    row = given_up()
    client = client_of(rows.superuser())
    for url in (list_url(Notification), page_url(row)):
        assert "⟨U+202E⟩it &lt;b&gt;said" in text_of(client.get(url))
    assert client.post(page_url(row), {"status": "delivered"}).status_code == 403
    assert client.get(reverse("admin:vel_notifications_notification_add")).status_code == 403


def test_the_list_needs_no_more_queries_for_many_messages_than_for_one():
    first = given_up()
    client = client_of(rows.superuser())
    with CaptureQueriesContext(connection) as few:
        client.get(list_url(Notification))
    for _ in range(20):
        target = webhook(PUBLIC)
        Notification.objects.create(
            target=target, type=first.type, subject_id=first.subject_id, run=first.run
        )
    with CaptureQueriesContext(connection) as many:
        client.get(list_url(Notification))
    assert len(many) <= len(few) + 1
