"""Errors of requests to Google, with messages for the model and for people."""

from __future__ import annotations

import json
import math
from email.utils import parsedate_to_datetime
from typing import Any

from django.utils import timezone

from agents.hidden_text import visible

RATE_REASONS = frozenset(
    {"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded", "dailyLimitExceeded"}
)
SCOPE_REASONS = frozenset({"insufficientPermissions", "ACCESS_TOKEN_SCOPE_INSUFFICIENT"})
OFF_REASONS = frozenset({"accessNotConfigured", "SERVICE_DISABLED"})
_QUOTED = 300
UNKNOWN = " Whether it was done is not known: look there first."


class GoogleFailed(Exception):
    """Google refused a request or could not be reached. The message has no part of a credential.

    `sent` is None if Google may have carried out the request. `status` is that of HTTP, or 0
    without an answer.
    """

    def __init__(
        self, message: str, code: str, *, sent: bool | None = False, status: int = 0
    ) -> None:
        super().__init__(message)
        self.code = code
        self.sent = sent
        self.status = status


class KeyProblem(Exception):
    """The pasted text is not a usable credential. The message has no part of it."""


def missing_scope(scopes: tuple[str, ...]) -> GoogleFailed:
    wanted = f"the scope {scopes[0]}" if scopes else "another scope"
    return GoogleFailed(
        f"The Google credential has no permission for this: it needs {wanted}. Ask the user to "
        "connect Google again under Connections with it.",
        "missing_scope",
        status=403,
    )


def unreachable(error: BaseException, *, unknown: bool) -> GoogleFailed:
    """Return the error for a failed connection. It names only the kind of the cause.

    `unknown`: Google may have carried out the request.
    """
    if unknown:
        return GoogleFailed(
            "The connection to Google broke." + UNKNOWN, "outcome_unknown", sent=None
        )
    kind = type(error).__name__
    return GoogleFailed(f"Google could not be reached ({kind}): try again later.", "connection")


def refusal(
    status: int, body: bytes, retry_after: str, needs: tuple[str, ...], *, writes: bool
) -> GoogleFailed:
    """Return the error for an unsuccessful answer of Gmail's or Calendar's API.

    `retry_after` is the header. `needs` are the scopes that the request needs. After a server error
    the outcome of a request that `writes` is unknown.
    """
    said, reasons = _said(body)
    quoted = f": {said}" if said else "."
    if status == 429 or (status == 403 and reasons & RATE_REASONS):
        text, code = f"Google wants fewer calls: wait {_wait(retry_after)}.", "ratelimited"
    elif status == 403 and reasons & SCOPE_REASONS:
        return missing_scope(needs)
    elif status == 403 and reasons & OFF_REASONS:
        text = "This API is not switched on in the Google Cloud project of the credential: an "
        text, code = text + "administrator must enable it there.", "service_disabled"
    elif status == 401:
        text = "Google does not accept the credential: connect Google again."
        code = "invalid_credentials"
    elif status == 404:
        text, code = (
            "Google knows nothing by that id: list again and take an id from there.",
            ("not_found"),
        )
    elif status == 412:
        text = "It has changed since it was read: read it again and decide again."
        code = "changed_meanwhile"
    elif status == 410:
        text, code = "It was deleted.", "gone"
    elif status >= 500:
        # A server error can come after the change was made.
        text, code = f"Google has a fault ({status}): try again later.", "connection"
        if writes:
            text, code = f"Google has a fault ({status}).{UNKNOWN}", "outcome_unknown"
        return GoogleFailed(text, code, sent=None if writes else False, status=status)
    else:
        text, code = f"Google refused ({status}){quoted}", f"http_{status}"
    return GoogleFailed(text, code, status=status)


def _said(body: bytes) -> tuple[str, frozenset[str]]:
    """Return Google's error message, shortened, and its reasons."""
    try:
        error: Any = json.loads(body)["error"]
        message = error.get("message", "")
        inner = [item.get("reason") for item in error.get("errors") or ()]
        inner += [item.get("reason") for item in error.get("details") or ()]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return "", frozenset()
    text = visible(message)[:_QUOTED] if isinstance(message, str) else ""
    return text, frozenset(reason for reason in inner if isinstance(reason, str))


def _wait(retry_after: str) -> str:
    """Return the pause of a `Retry-After` header (seconds or a date), by default a minute."""
    try:
        if retry_after.strip().isascii() and retry_after.strip().isdigit():
            seconds = int(retry_after.strip()[:9])
        else:
            until = parsedate_to_datetime(retry_after)
            seconds = math.ceil((until - timezone.now()).total_seconds())
    except (ValueError, TypeError):
        return "a minute"
    return f"{min(max(seconds, 1), 86_400)} s"
