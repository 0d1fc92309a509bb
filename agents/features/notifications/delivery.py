"""Claim due messages, send them and record the result: at least once, each with a constant id."""

from __future__ import annotations

import logging
import secrets
from datetime import datetime, timedelta
from smtplib import SMTPException

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from agents.features.notifications.actions import (
    NothingToTell,
    notification_mail,
    test_body,
    test_mail,
    webhook_body,
)
from agents.features.notifications.models import (
    Notification,
    NotificationStatus,
    NotificationTarget,
    TargetKind,
)
from agents.features.notifications.queue import enqueue_deliveries
from agents.features.notifications.webhook import DeliveryFailed, parse_webhook_url, post
from agents.ids import new_id
from agents.kernel.notices import kind_of
from agents.services.errors import Conflict, NotFound, ServiceError

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 10
MAX_AGE = timedelta(days=1)
"""A message that has not arrived after this time is given up after any number of attempts."""
LEASE = timedelta(seconds=60)
"""How long a message stays claimed by a sender that records no result; more than sending takes."""
FIRST_PAUSE, LONGEST_PAUSE = 10.0, 3600.0
"""Seconds after the first failure. Each further pause is three times as long, an hour at most."""

_PENDING = NotificationStatus.PENDING


def deliver_next(target_id: str) -> bool:
    """Send the next due message of a target. Return whether one was delivered.

    Messages with the fewest attempts come first. Blocks for about ten seconds at most; do not call
    it in a transaction. A failure delays the target's other messages a little too, so that they do
    not all fail one after another.
    """
    notification = claim_next(target_id)
    if notification is None:
        return False
    problem = _try_to_send(notification)
    if problem is None:
        record_delivered(notification.id)
        return True
    record_failure(notification, problem)
    return False


@transaction.atomic
def claim_next(target_id: str) -> Notification | None:
    """Claim and return the next due message, or None. Only one of several senders gets it.

    Marks messages that are obsolete, and gives up those with too many attempts or too old.
    """
    while True:
        now = timezone.now()
        due = Notification.objects.filter(
            target_id=target_id, target__is_active=True, status=_PENDING, next_attempt_at__lte=now
        )
        # Order by attempts: a message that is always refused must not delay new ones.
        first = (
            due.only("type", "subject_id", "attempts", "next_attempt_at", "created_at", "error")
            .order_by("attempts", "next_attempt_at", "id")
            .first()
        )
        if first is None:
            return None
        # Only with the time that was read: another sender that claims it changes the time.
        mine = Notification.objects.filter(
            pk=first.pk, status=_PENDING, next_attempt_at=first.next_attempt_at
        )
        if not _is_needed(first):
            mine.update(status=NotificationStatus.OBSOLETE, next_attempt_at=None)
        elif first.attempts >= MAX_ATTEMPTS:
            lost = "its sender was lost before it could say how it went"
            _give_up(mine, first.error or lost)
        elif first.attempts and first.created_at <= now - MAX_AGE:
            _give_up(mine, first.error or "it could not be sent in time")
        elif mine.update(attempts=F("attempts") + 1, next_attempt_at=now + LEASE):
            return Notification.objects.select_related("target").get(pk=first.pk)


def _is_needed(notification: Notification) -> bool:
    """Return whether the message is still relevant. It is not if its feature was removed."""
    kind = kind_of(notification.type)
    return kind is not None and kind.is_needed(notification.subject_id)


def _give_up(rows: QuerySet[Notification], error: str) -> None:
    rows.update(status=NotificationStatus.GIVEN_UP, next_attempt_at=None, error=error)


def record_delivered(notification_id: str) -> None:
    """Record the delivery, even if another sender has claimed the message since."""
    Notification.objects.filter(pk=notification_id).exclude(
        status=NotificationStatus.DELIVERED
    ).update(
        status=NotificationStatus.DELIVERED,
        delivered_at=timezone.now(),
        next_attempt_at=None,
        error="",
    )


@transaction.atomic
def record_failure(notification: Notification, problem: str) -> None:
    """Record the failure and the next attempt, unless another sender has claimed the message."""
    mine = Notification.objects.filter(
        pk=notification.pk, status=_PENDING, attempts=notification.attempts
    )
    if notification.attempts >= MAX_ATTEMPTS:
        _give_up(mine, problem)
        logger.warning(
            "a notification was given up: %s", problem, extra={"notification": notification.pk}
        )
        return
    later = next_attempt(notification.attempts)
    soon = timezone.now() + timedelta(seconds=FIRST_PAUSE)
    if mine.update(next_attempt_at=later, error=problem):
        Notification.objects.filter(
            target_id=notification.target_id, status=_PENDING, next_attempt_at__lt=soon
        ).exclude(pk=notification.pk).update(next_attempt_at=soon)


def next_attempt(attempts: int) -> datetime:
    """Return the time of the next attempt after `attempts` failures.

    The pause varies by up to 10 %, to spread the load.
    """
    pause = min(FIRST_PAUSE * 3 ** (attempts - 1), LONGEST_PAUSE)
    spread = 0.9 + secrets.randbelow(201) / 1000
    return timezone.now() + timedelta(seconds=pause * spread)


@transaction.atomic
def retry_notification(notification_id: str) -> Notification:
    """Make a message that was given up or is pending due now, with all its attempts.

    Raises `NotFound`, or `Conflict` if there is nothing to send.
    """
    found = Notification.objects.select_for_update(of=("self",)).filter(pk=notification_id)
    row = found.select_related("target").first()
    if row is None:
        raise NotFound("There is no such notification.")
    if row.status == NotificationStatus.DELIVERED:
        raise Conflict("It has been delivered.")
    kind = kind_of(row.type)
    if kind is None:
        raise Conflict(f"No installed feature has messages of the type {row.type}.")
    if not kind.is_needed(row.subject_id):
        raise Conflict(kind.no_longer)
    if not row.target.is_active:
        raise Conflict("Its target is inactive. Activate it first.")
    row.status, row.attempts, row.next_attempt_at = _PENDING, 0, timezone.now()
    row.save(update_fields=["status", "attempts", "next_attempt_at"])
    enqueue_deliveries([row.target_id])
    return row


def send_test(target: NotificationTarget) -> None:
    """Send a test message now and wait for it. Raises `DeliveryFailed`, or `InvalidRequest`."""
    message_id = new_id()
    if target.kind == TargetKind.WEBHOOK:
        post(parse_webhook_url(target.address), target.secret, message_id, test_body(message_id))
        return
    try:
        test_mail(target.address, message_id).send()
    except (SMTPException, OSError) as error:
        raise DeliveryFailed(f"the mail server refused: {error}") from error


def _try_to_send(notification: Notification) -> str | None:
    """Send a message. Return the failure's reason, or None if it arrived."""
    try:
        _send(notification)
    except (DeliveryFailed, NothingToTell, ServiceError) as failed:
        return str(failed)
    except (SMTPException, OSError) as error:
        return f"the mail server refused: {error}"[:1000]
    except Exception as error:
        # An internal error must not leave the message claimed.
        logger.exception("sending failed", extra={"notification": notification.pk})
        return f"internal error: {type(error).__name__}; the worker's log says more"
    return None


def _send(notification: Notification) -> None:
    target = notification.target
    if target.kind == TargetKind.WEBHOOK:
        address = parse_webhook_url(target.address)
        post(address, target.secret, notification.id, webhook_body(notification))
    else:
        notification_mail(notification).send()
