"""Messages in the formats of webhooks and mail servers."""

from __future__ import annotations

import json
from typing import Any

from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage, get_connection
from django.core.validators import validate_email

from agents.features.notifications.models import Notification
from agents.hidden_text import one_line
from agents.kernel.notices import Message, NoticeKind, kind_of
from agents.services.errors import InvalidRequest
from agents.settings import PageSettings

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
        raise NothingToTell("what it tells of was deleted")
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
        raise InvalidRequest("Write one e-mail address, as ada@example.org.") from None
    if not address.isascii():
        raise InvalidRequest("An e-mail address here has ASCII characters only.")


def _json(data: dict[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode("ascii")
