"""Convert failures of the Gemini API to `ProviderError`s."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agents.providers.base import ProviderError
from agents.providers.errors import CONTEXT_WINDOW, code_of, retry_after

_WORDS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
_TOO_LONG = re.compile(r"input token count.*exceeds the maximum", re.IGNORECASE)
_BAD_KEY = {"API_KEY_INVALID", "API_KEY_SERVICE_BLOCKED", "API_KEY_EXPIRED"}
MAX_MESSAGE = 2_000


def status_error(status: int, body: bytes, headers: Mapping[str, str]) -> ProviderError:
    """Return the error for a response with another status than 200."""
    told = _error_in(body)
    message = str(told.get("message") or body[:MAX_MESSAGE].decode("utf-8", "replace").strip())
    error = _error(status, message or f"HTTP status {status}", told, retry_after(headers))
    if headers.get("x-should-retry") == "false":  # a header of a proxy
        error.retryable = False
    return error


def event_error(told: Mapping[str, Any]) -> ProviderError:
    """Return the error for an error in a stream with the status 200."""
    status = told.get("code")
    if not isinstance(status, int):
        status = _WORDS.get(str(told.get("status")), 500)
    return _error(status, str(told.get("message") or told), told, None)


def _error(
    status: int, message: str, told: Mapping[str, Any], wished: float | None
) -> ProviderError:
    message = message[:MAX_MESSAGE]
    code, retryable = code_of(status)
    if code in {"invalid_request", "too_large"} and (
        _TOO_LONG.search(message) or CONTEXT_WINDOW.search(message)
    ):
        code = "context_window"
    elif status == 400 and _details(told, "reason") in _BAD_KEY:
        code = "authentication"
    elif told.get("status") == "FAILED_PRECONDITION":  # no billing, or unavailable in the country
        code = "permission"
    if wished is None:
        wished = _seconds(_details(told, "retryDelay"))
    return ProviderError(message, code=code, retryable=retryable, retry_after=wished)


def _error_in(body: bytes) -> Mapping[str, Any]:
    """Return the error object. For streams, the API sends it in a list."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if isinstance(told, list) and told:
        told = told[0]
    error = told.get("error") if isinstance(told, dict) else None
    return error if isinstance(error, dict) else {}


def _details(told: Mapping[str, Any], name: str) -> str:
    """Return a field of the error's details."""
    details = told.get("details")
    for each in details if isinstance(details, list) else ():
        if isinstance(each, dict) and isinstance(each.get(name), str):
            return str(each[name])
    return ""


def _seconds(text: str) -> float | None:
    try:
        return max(0.0, float(text.removesuffix("s"))) if text else None
    except ValueError:
        return None
