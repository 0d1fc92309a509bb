"""Sending what is due: claimed, sent, marked; at least once, each time with the same id."""

from __future__ import annotations

import logging
import secrets
from datetime import datetime, timedelta
from smtplib import SMTPException

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from agents.features.notifications.messages import (
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
"""After so long a message that did not arrive is given up, however few its attempts were."""
LEASE = timedelta(seconds=60)
"""How long a message stays with a sender that says nothing; more than sending may take."""
FIRST_PAUSE, LONGEST_PAUSE = 10.0, 3600.0
"""Seconds after the first failure, three times as long after each further one, an hour at most."""

_PENDING = NotificationStatus.PENDING


def deliver_next(target_id: str) -> bool:
    """Send the message that is longest due to a target. False: there is none, or sending failed.

    Blocks while it sends, for about ten seconds at most; not to be called in a transaction. After
    a failure the target's other messages wait a little too: a receiver that hangs is not asked for
    one after another.
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
    """Take the next due message: of two senders that try, one gets it.

    What nobody needs any more, and what was tried too often or for too long, is marked so.
    """
    while True:
        now = timezone.now()
        due = Notification.objects.filter(
            target_id=target_id, target__is_active=True, status=_PENDING, next_attempt_at__lte=now
        )
        # One that is refused each time must not keep back those that were never tried.
        first = (
            due.only("type", "subject_id", "attempts", "next_attempt_at", "created_at", "error")
            .order_by("attempts", "next_attempt_at", "id")
            .first()
        )
        if first is None:
            return None
        # Only as it was read: whoever claims it moves its time.
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
    """Whether somebody still has to hear of it. Not if the feature that told it was removed."""
    kind = kind_of(notification.type)
    return kind is not None and kind.is_needed(notification.subject_id)


def _give_up(rows: QuerySet[Notification], error: str) -> None:
    rows.update(status=NotificationStatus.GIVEN_UP, next_attempt_at=None, error=error)


def record_delivered(notification_id: str) -> None:
    """It has arrived, whoever may have claimed it since."""
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
    """Note why, and when it is tried again. Nothing, if it was claimed by another meanwhile."""
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
    """When to try again after so many attempts, spread by a fifth so that not all come at once."""
    pause = min(FIRST_PAUSE * 3 ** (attempts - 1), LONGEST_PAUSE)
    spread = 0.9 + secrets.randbelow(201) / 1000
    return timezone.now() + timedelta(seconds=pause * spread)


@transaction.atomic
def retry_notification(notification_id: str) -> Notification:
    """Let a message that was given up, or that waits, be sent at once, as often as a new one.

    Raises `NotFound`, or `Conflict` where nothing is left to be sent.
    """
    found = Notification.objects.select_for_update(of=("self",)).filter(pk=notification_id)
    row = found.select_related("target").first()
    if row is None:
        raise NotFound("There is no such notification.")
    if row.status == NotificationStatus.DELIVERED:
        raise Conflict("It has been delivered.")
    kind = kind_of(row.type)
    if kind is None:
        raise Conflict(f"No installed feature knows messages of the type {row.type}.")
    if not kind.is_needed(row.subject_id):
        raise Conflict(kind.no_longer)
    if not row.target.is_active:
        raise Conflict("Its target is not active: make it active first.")
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
    """Why it failed; None: it arrived."""
    try:
        _send(notification)
    except (DeliveryFailed, NothingToTell, ServiceError) as failed:
        return str(failed)
    except (SMTPException, OSError) as error:
        return f"the mail server refused: {error}"[:1000]
    except Exception as error:
        # A fault of Vel's own is no reason to leave the message claimed for ever.
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
