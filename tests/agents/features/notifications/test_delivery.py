"""Rows of messages: written with the request, with few queries, and sent at least once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ

from agents.features.notifications.actions import remove_target, save_target
from agents.features.notifications.delivery import (
    MAX_AGE,
    MAX_ATTEMPTS,
    claim_next,
    deliver_next,
    next_attempt,
    record_delivered,
    record_failure,
    retry_notification,
)
from agents.features.notifications.models import Notification, NotificationTarget
from agents.features.notifications.queue import DELIVER_TASK, due_targets
from agents.models import ApprovalRequest
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.approvals.notices import announce_request
from agents.services.errors import Conflict, NotFound
from tests.agents.engine import by_hand
from tests.agents.features.notifications.waiting import asked, hooked, make_due, webhook
from tests.support.cluster import ROOT, database_url
from tests.support.hang import HANG
from tests.support.receivers import NO_ANSWER, receiver
from tests.support.runs import make_agent, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

PUBLIC = "https://hooks.example.org/vel"


def tasks() -> list[tuple[list[str]]]:
    return [row.task["args"] for row in OrmQ.objects.all() if row.task["func"] == DELIVER_TASK]


# Writing ---------------------------------------------------------------------------------------


def test_a_request_writes_a_row_for_each_active_target_of_its_agent_or_of_all() -> None:
    user, run = by_hand.new_run()
    other = make_agent(user, slug="other", name="Other")
    everyones = webhook(PUBLIC)
    own = webhook(PUBLIC, agent=run.agent_version.agent)
    webhook(PUBLIC, agent=other)
    webhook(PUBLIC, is_active=False)
    [request] = by_hand.parked(run)
    rows = Notification.objects.filter(type="approval.requested", subject_id=request.pk, run=run)
    assert {row.target_id for row in rows} == {everyones.id, own.id}
    assert {(row.status, row.attempts) for row in rows} == {("pending", 0)}
    assert tasks() == [(sorted([everyones.id, own.id]),)]


def test_a_rolled_back_change_sends_nothing() -> None:
    webhook(PUBLIC)
    _, run = by_hand.new_run()
    call = by_hand.a_call()
    writer = by_hand.with_calls(run, call)
    with transaction.atomic():
        by_hand.park(writer, call)
        assert Notification.objects.count() == 1
        transaction.set_rollback(True)
    assert (Notification.objects.count(), tasks()) == (0, [])


def test_the_run_of_one_process_writes_rows_and_asks_no_worker() -> None:
    [request] = asked()
    request.run.executor = "here:1:abc"
    target = webhook(PUBLIC)
    with transaction.atomic():
        announce_request(request)
    assert (tasks(), due_targets()) == ([], [target.id])


def test_parking_costs_one_query_without_targets_and_three_with_two() -> None:
    [request] = asked()
    assert request.run.executor == "pool"  # it is loaded, as when a driver parks it
    with CaptureQueriesContext(connection) as without, transaction.atomic():
        announce_request(request)
    webhook(PUBLIC)
    webhook(PUBLIC)
    with CaptureQueriesContext(connection) as with_two, transaction.atomic():
        announce_request(request)
    begin_and_commit = 2
    assert len(without) <= 1 + begin_and_commit
    # The targets, the rows, the task (and django-q2's query for the queue's length, if any).
    assert len(with_two) <= 4 + begin_and_commit


@pytest.mark.slow
def test_the_search_for_due_messages_uses_its_index() -> None:
    webhook(PUBLIC)
    asked(50)
    due = Notification.objects.filter(status="pending", next_attempt_at__lte=timezone.now())
    if connection.vendor == "sqlite":
        assert "notification_due" in due.order_by("next_attempt_at").explain()
    assert len(due_targets()) == 1


# Sending ---------------------------------------------------------------------------------------


def test_a_message_that_arrives_is_delivered_once() -> None:
    with receiver() as hook, hooked(hook) as target:
        [request] = asked()
        assert deliver_next(target.id)
        assert not deliver_next(target.id)
    [row] = Notification.objects.all()
    assert (row.status, row.attempts, row.error) == ("delivered", 1, "")
    assert row.delivered_at is not None
    assert [got.json["request"]["id"] for got in hook.received] == [request.id]


def test_a_failure_is_tried_again_with_the_same_id() -> None:
    with receiver([500, 200]) as hook, hooked(hook) as target:
        asked()
        assert not deliver_next(target.id)
        row = Notification.objects.get()
        assert (row.status, row.attempts, row.error) == ("pending", 1, "it answered 500")
        pause = row.next_attempt_at - timezone.now()
        assert timedelta(seconds=5) < pause < timedelta(seconds=15)
        assert not deliver_next(target.id), "it is not due yet"
        make_due()
        assert deliver_next(target.id)
    first, second = hook.received
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == row.id
    assert Notification.objects.get().status == "delivered"


def test_pauses_grow_to_an_hour() -> None:
    now = timezone.now()
    pauses = [(next_attempt(n) - now).total_seconds() for n in range(1, MAX_ATTEMPTS)]
    assert 8 < pauses[0] < 13
    assert all(a * 1.5 < b for a, b in pairwise(pauses[:6]))
    assert all(3200 < pause < 4000 for pause in pauses[6:])


def test_it_is_given_up_after_ten_attempts_and_may_be_tried_again_by_hand() -> None:
    with receiver([500]) as hook, hooked(hook) as target:
        asked()
        for _ in range(MAX_ATTEMPTS + 2):
            deliver_next(target.id)
            make_due()
        assert len(hook.received) == MAX_ATTEMPTS
        row = Notification.objects.get()
        assert (row.status, row.error, row.next_attempt_at) == ("given_up", "it answered 500", None)
        hook.answers = [200]
        Notification.objects.update(created_at=timezone.now() - 2 * MAX_AGE)
        retry_notification(row.id)
        assert ([target.id],) in tasks()
        assert deliver_next(target.id)


def test_it_is_given_up_after_a_day() -> None:
    with receiver([500]) as hook, hooked(hook) as target:
        asked()
        deliver_next(target.id)
        Notification.objects.update(created_at=timezone.now() - MAX_AGE)
        make_due()
        deliver_next(target.id)
    assert (Notification.objects.get().status, len(hook.received)) == ("given_up", 1)


@pytest.mark.parametrize("outcome", ["decided", "cancelled", "expired", "superseded"])
def test_messages_about_decided_requests_are_not_sent(outcome: str) -> None:
    with receiver() as hook, hooked(hook) as target:
        asked()
        ApprovalRequest.objects.update(status=outcome)
        assert not deliver_next(target.id)
        row = Notification.objects.get()
        with pytest.raises(Conflict):
            retry_notification(row.id)
    assert (row.status, row.attempts, hook.received) == ("obsolete", 0, [])


def test_a_request_that_is_decided_between_two_attempts_is_not_sent_again() -> None:
    with receiver([500]) as hook, hooked(hook) as target:
        [request] = asked()
        deliver_next(target.id)
        decide_approval(request.id, DecisionRequest("reject"), by=request.run.owner)
        make_due()
        assert not deliver_next(target.id)
    assert (Notification.objects.get().status, len(hook.received)) == ("obsolete", 1)


def test_one_message_that_is_refused_keeps_back_no_other() -> None:
    with receiver([500, 200]) as hook, hooked(hook) as target:
        asked(3)
        refused = Notification.objects.order_by("id").first()
        assert not deliver_next(target.id)
        assert not deliver_next(target.id), "after a failure the others wait a little"
        assert refused is not None
        make_due()
        make_due(pk=refused.pk)  # it has waited longest, but the others were never tried
        assert [deliver_next(target.id) for _ in range(3)] == [True] * 3
        assert hook.received[-1].headers["webhook-id"] == refused.id


def test_an_inactive_target_gets_nothing_until_it_is_active_again() -> None:
    with receiver() as hook, hooked(hook) as target:
        asked()
        target.is_active = False
        save_target(target)
        assert (due_targets(), deliver_next(target.id)) == ([], False)
        target.is_active = True
        save_target(target)
        assert due_targets() == [target.id]
        assert deliver_next(target.id)


# Two senders, and lost ones --------------------------------------------------------------------


def test_of_senders_at_the_same_moment_each_message_gets_one() -> None:
    target = webhook(PUBLIC)
    asked(4)

    def claim_all() -> list[str]:
        mine = []
        while (row := claim_next(target.id)) is not None:
            mine.append(row.id)
        return mine

    won = by_hand.at_once(*[claim_all] * 4)
    ids = [row for mine in won for row in mine]
    assert len(ids) == len(set(ids)) == 4


def test_an_overtaken_sender_records_no_failure_but_records_a_delivery() -> None:
    target = webhook(PUBLIC)
    asked()
    slow = claim_next(target.id)
    make_due()
    fast = claim_next(target.id)
    assert slow is not None
    assert fast is not None
    before = Notification.objects.get().next_attempt_at
    record_failure(slow, "too late")
    row = Notification.objects.get()
    assert (row.error, row.next_attempt_at) == ("", before)
    record_delivered(slow.id)
    record_failure(fast, "it answered 500")
    assert Notification.objects.get().status == "delivered"


SENDER = """
import sys, django
django.setup()
from agents.features.notifications.delivery import deliver_next
deliver_next(sys.argv[1])
"""


@pytest.mark.slow
def test_after_a_killed_sender_a_message_is_sent_again_with_the_same_id() -> None:
    with receiver() as hook, hooked(hook) as target:
        asked()
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
            "DATABASE_URL": database_url(),
            "VEL_WEBHOOK_PRIVATE_HOSTS": hook.host,
            "PYTHONPATH": str(ROOT),
        }
        sender = subprocess.Popen([sys.executable, "-c", SENDER, target.id], env=environment)
        hook.before_answer = sender.kill
        assert sender.wait(HANG) == -signal.SIGKILL
        hook.before_answer = lambda: None
        row = Notification.objects.get()
        assert (row.status, row.attempts) == ("pending", 1)
        assert not deliver_next(target.id), "its lease holds"
        make_due()
        assert deliver_next(target.id)
    first, second = hook.received
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert Notification.objects.get().attempts == 2


def test_a_message_that_kills_each_of_its_senders_is_given_up() -> None:
    target = webhook(PUBLIC)
    asked()
    for _ in range(MAX_ATTEMPTS):
        assert claim_next(target.id) is not None
        make_due()
    assert claim_next(target.id) is None
    row = Notification.objects.get()
    assert row.status == "given_up"
    assert "lost" in row.error


# Removing --------------------------------------------------------------------------------------


def test_a_target_that_is_removed_takes_its_messages_along() -> None:
    target = webhook(PUBLIC)
    asked()
    remove_target(target.id)
    assert Notification.objects.count() == 0
    with pytest.raises(NotFound):
        remove_target(target.id)


@pytest.mark.slow
@pytest.mark.both_databases
def test_a_target_that_is_removed_at_the_moment_of_parking_fails_no_run() -> None:
    target = webhook(PUBLIC)
    _, run = by_hand.new_run()
    call = by_hand.a_call()
    writer = by_hand.with_calls(run, call)
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            by_hand.park(writer, call)
            removal = threads.submit(_remove, target.id)
            if connection.vendor == "postgresql":
                wait_until(lambda: removal.done() or _somebody_waits_for_a_lock())
        removal.result(timeout=HANG)
    assert ApprovalRequest.objects.filter(run=run, status="pending").count() == 1
    assert not NotificationTarget.objects.exists()
    assert not Notification.objects.exists()


def _remove(target_id: str) -> None:
    try:
        remove_target(target_id)
    finally:
        connection.close()


def _somebody_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)"
            " WHERE NOT granted AND datname = current_database()"
        )
        return bool(cursor.fetchone()[0])


def test_a_message_that_cannot_be_built_is_a_failure_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    target = webhook(PUBLIC)
    NotificationTarget.objects.update(secret="no secret")
    asked()
    assert not deliver_next(target.id)
    assert "Create a new secret" in Notification.objects.get().error


def test_a_receiver_that_hangs_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.features.notifications.webhook.SECONDS", 0.5)
    with receiver([NO_ANSWER]) as hook, hooked(hook) as target:
        asked()
        assert not deliver_next(target.id)
        hook.ended.set()
    assert Notification.objects.get().error == "no answer within 0.5 s"
