"""Save and remove notification targets, and write the messages to them."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage, get_connection
from django.core.validators import validate_email
from django.db import transaction

from agents.features.notifications.models import Notification, NotificationTarget, TargetKind
from agents.features.notifications.webhook import new_secret, parse_webhook_url
from agents.hidden_text import one_line
from agents.kernel.notices import Message, NoticeKind, kind_of
from agents.secret_text import HIDDEN
from agents.services.audit import changes_between, record
from agents.services.errors import InvalidRequest, NotFound
from agents.services.outside_address import LONGEST_URL
from agents.settings import PageSettings


def check_target(kind: str, address: str) -> None:
    """Raise `InvalidRequest` if messages cannot be sent to the address."""
    if kind == TargetKind.WEBHOOK:
        parse_webhook_url(address)
    elif kind == TargetKind.EMAIL:
        check_address(address)
    else:
        raise InvalidRequest(f"Invalid kind. Expected one of {', '.join(TargetKind.values)}.")
    if len(address) > LONGEST_URL:
        raise InvalidRequest(f"An address has at most {LONGEST_URL} characters.")


@transaction.atomic
def save_target(target: NotificationTarget) -> str | None:
    """Store a target. Return its secret if a new one was made, to be shown this once, else None.

    A webhook with a changed URL gets a new secret, so that the old receiver cannot sign messages
    for the new one. Raises `InvalidRequest`.
    """
    check_target(target.kind, target.address)
    before = NotificationTarget.objects.select_for_update(no_key=True).filter(pk=target.pk).first()
    created_secret: str | None = None
    if target.kind != TargetKind.WEBHOOK:
        target.secret = ""
    elif before is None or not before.secret or before.address != target.address:
        target.secret = created_secret = new_secret()
    else:
        target.secret = before.secret
    target.save()
    changes = changes_between(None if before is None else _told(before), _told(target))
    if created_secret is not None:
        changes["secret"] = (None, HIDDEN)
    action = "notification_target.created" if before is None else "notification_target.changed"
    record(action, target, name=_name(target), changes=changes)
    return created_secret


@transaction.atomic
def renew_secret(target_id: str) -> str:
    """Give a webhook a new secret and return it. The old one is not used again.

    Raises `NotFound`, and `InvalidRequest` for other targets.
    """
    target = NotificationTarget.objects.select_for_update(no_key=True).filter(pk=target_id).first()
    if target is None:
        raise NotFound("There is no such target.")
    if target.kind != TargetKind.WEBHOOK:
        raise InvalidRequest("Only webhooks have a secret.")
    target.secret = new_secret()
    target.save(update_fields=["secret"])
    record("notification_target.secret_renewed", target, name=_name(target))
    return target.secret


@transaction.atomic
def remove_target(target_id: str) -> None:
    """Remove a target and the record of its messages. Raises `NotFound`."""
    # Locked first, so that a message that is being written is removed with the target.
    target = NotificationTarget.objects.select_for_update().filter(pk=target_id).first()
    if target is None:
        raise NotFound("There is no such target.")
    record("notification_target.removed", target, name=_name(target))
    target.delete()


def _name(target: NotificationTarget) -> str:
    """Return a name without a webhook's path, which can contain a secret."""
    if target.kind != TargetKind.WEBHOOK:
        return f"{target.kind} {target.address}"
    return f"{target.kind} {urlsplit(target.address).hostname or ''}"


def _told(target: NotificationTarget) -> dict[str, object]:
    address = hashlib.sha256(target.address.encode()).hexdigest()[:16]
    return {
        "address": _name(target),
        "address_sha256": address,
        "agent": target.agent.slug if target.agent else None,
        "is_active": target.is_active,
    }


TEST = "test"
SMTP_SECONDS = 10
"""Seconds that the mail server may take for one answer."""


class NothingToTell(Exception):
    """The subject of a message was deleted."""


def webhook_body(notification: Notification) -> bytes:
    """Return the JSON of a message, as `{id, type, request: {…}}`; times in ISO 8601.

    Raises `NothingToTell`.
    """
    kind, message = _content(notification)
    return _json({"id": notification.id, "type": kind.type, kind.field: dict(message.data)})


def notification_mail(notification: Notification) -> EmailMessage:
    """Return the e-mail of a message. Raises `NothingToTell`."""
    _, message = _content(notification)
    address = notification.target.address
    return mail(address, notification.id, message.subject, "\n".join(message.lines))


def _content(notification: Notification) -> tuple[NoticeKind, Message]:
    kind = kind_of(notification.type)
    message = None if kind is None else kind.message(notification.subject_id)
    if kind is None or message is None:
        raise NothingToTell("its subject was deleted")
    return kind, message


def test_body(message_id: str) -> bytes:
    return _json({"id": message_id, "type": TEST})


def test_mail(address: str, message_id: str) -> EmailMessage:
    text = "This address hears of requests for approval.\n\n" + PageSettings.now().PUBLIC_URL
    return mail(address, message_id, "a test message", text)


def mail(address: str, message_id: str, subject: str, text: str) -> EmailMessage:
    """Return an e-mail. Attempts share a `message_id`, so that servers can detect duplicates."""
    check_address(address)
    return EmailMessage(
        subject=f"[Vel] {one_line(subject, 200)}",
        body=text,
        to=[address],
        headers={"Message-ID": f"<{message_id}@vel>", "Auto-Submitted": "auto-generated"},
        connection=get_connection(timeout=SMTP_SECONDS),
    )


def check_address(address: str) -> None:
    """Raise `InvalidRequest` unless it is one plain e-mail address."""
    try:
        validate_email(address)
    except ValidationError:
        raise InvalidRequest("Enter one e-mail address, for example ada@example.org.") from None
    if not address.isascii():
        raise InvalidRequest("The e-mail address must have only ASCII characters.")


def _json(data: dict[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode("ascii")
