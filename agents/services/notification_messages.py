"""What a message says: that something waits and where to look, never what the call contains.

An input may hold secrets and a file's content, and what receives messages is rarely built to keep
them. Tool names and prompts come from people and specifications; they are shown all the same with
hidden characters as code points, and cut.
"""

from __future__ import annotations

import json
from typing import Any

from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage, get_connection
from django.core.validators import validate_email
from django.urls import NoReverseMatch, reverse

from agents.hidden_text import visible
from agents.models import ApprovalRequest, Notification, Schedule, ScheduleFiring
from agents.services.errors import InvalidRequest
from agents.settings import PageSettings

REQUESTED = "approval.requested"
NOT_STARTED = "schedule.not_started"
TEST = "test"
SMTP_SECONDS = 10
"""That the mail server may be silent for."""
_PROMPT_CHARACTERS = 1_000
_NAME_CHARACTERS = 100


def webhook_body(notification: Notification) -> bytes:
    """The JSON of a request: `{id, type, request: {...}}`, or of a scheduled run that was not
    started, `{id, type, schedule: {...}}`; times in ISO 8601."""
    if notification.firing is not None:
        firing = _firing_data(notification.firing)
        return _json({"id": notification.id, "type": NOT_STARTED, "schedule": firing})
    request = _request_of(notification)
    expires = request.expires_at
    data = {
        "id": request.id,
        "kind": request.kind,
        "tool": _line(request.tool),
        "agent": request.run.agent_version.agent.slug,
        "run": request.run_id,
        "prompt": _short(visible(request.prompt), _PROMPT_CHARACTERS),
        "created_at": request.created_at.isoformat(),
        "expires_at": expires.isoformat() if expires else None,
        "url": request_url(request),
    }
    return _json({"id": notification.id, "type": REQUESTED, "request": data})


def _firing_data(firing: ScheduleFiring) -> dict[str, Any]:
    schedule = firing.schedule
    return {
        "id": schedule.id,
        "name": _line(schedule.name),
        "agent": schedule.agent.slug,
        "due_at": firing.due_at.isoformat(),
        "reason": firing.reason,
        "detail": _short(visible(firing.detail), _PROMPT_CHARACTERS),
        "url": schedule_url(schedule),
    }


def _request_of(notification: Notification) -> ApprovalRequest:
    request = notification.request
    assert request is not None  # a constraint: it tells of one or the other
    return request


def schedule_url(schedule: Schedule) -> str:
    """The page of the owner's schedules; in a project without Vel's pages only where to look."""
    try:
        path = reverse("web:schedule", args=[schedule.id])
    except NoReverseMatch:
        path = "/"
    return PageSettings.now().PUBLIC_URL.rstrip("/") + path


def test_body(message_id: str) -> bytes:
    return _json({"id": message_id, "type": TEST})


def request_url(request: ApprovalRequest) -> str:
    """The page where it is decided; in a project without Vel's pages only where to look."""
    try:
        path = reverse("web:approval", args=[request.id])
    except NoReverseMatch:
        path = "/"
    return PageSettings.now().PUBLIC_URL.rstrip("/") + path


def notification_mail(notification: Notification) -> EmailMessage:
    if notification.firing is not None:
        return _firing_mail(notification, notification.firing)
    request = _request_of(notification)
    agent = _line(request.run.agent_version.agent.name)
    tool = _line(request.tool)
    prompt = _short(visible(request.prompt), _PROMPT_CHARACTERS)
    until = request.expires_at
    lines = [
        f"The agent {agent} asks before it calls {tool}.",
        *([f"Why it is asked: {prompt}"] if prompt else []),
        *([f"Without an answer it is rejected at {until:%Y-%m-%d %H:%M} UTC."] if until else []),
        "",
        request_url(request),
    ]
    return mail(
        notification.target.address, notification.id, f"{agent} asks: {tool}", "\n".join(lines)
    )


def _firing_mail(notification: Notification, firing: ScheduleFiring) -> EmailMessage:
    name = _line(firing.schedule.name)
    lines = [
        f"The scheduled run {name} of {firing.due_at:%Y-%m-%d %H:%M} UTC was not started.",
        _short(visible(firing.detail), _PROMPT_CHARACTERS),
        "",
        schedule_url(firing.schedule),
    ]
    return mail(
        notification.target.address, notification.id, f"{name} was not started", "\n".join(lines)
    )


def test_mail(address: str, message_id: str) -> EmailMessage:
    text = "This address hears of requests for approval.\n\n" + PageSettings.now().PUBLIC_URL
    return mail(address, message_id, "a test message", text)


def mail(address: str, message_id: str, subject: str, text: str) -> EmailMessage:
    """`message_id` stays the same when a message is sent again, so that servers see it is one."""
    check_address(address)
    return EmailMessage(
        subject=f"[Vel] {_line(subject, 200)}",
        body=text,
        to=[address],
        headers={"Message-ID": f"<{message_id}@vel>", "Auto-Submitted": "auto-generated"},
        connection=get_connection(timeout=SMTP_SECONDS),
    )


def check_address(address: str) -> None:
    """Raises `InvalidRequest` unless it is one plain e-mail address."""
    try:
        validate_email(address)
    except ValidationError:
        raise InvalidRequest("Write one e-mail address, as ada@example.org.") from None
    if not address.isascii():
        raise InvalidRequest("An e-mail address here has ASCII characters only.")


def _line(text: str, width: int = _NAME_CHARACTERS) -> str:
    """One line of text, which no header can be broken with."""
    return _short(" ".join(visible(text).split()), width)


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _json(data: dict[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode("ascii")
