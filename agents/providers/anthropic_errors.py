"""Failures of the Messages API as `ProviderError`s."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from time import time

from agents.providers.base import ProviderError

_STATUS_CODES = {
    401: "authentication",
    402: "permission",
    403: "permission",
    404: "not_found",
    413: "too_large",
    429: "rate_limited",
    529: "overloaded",
}

_TYPE_CODES = {
    "authentication_error": "authentication",
    "billing_error": "permission",
    "permission_error": "permission",
    "not_found_error": "not_found",
    "invalid_request_error": "invalid_request",
    "request_too_large": "too_large",
    "rate_limit_error": "rate_limited",
    "overloaded_error": "overloaded",
}

_RETRYABLE_STATUS = {408, 409, 429}
_RETRYABLE_CODES = {"rate_limited", "overloaded", "server_error"}
_CONTEXT_WINDOW = re.compile(
    r"prompt is too long|context (?:limit|window|length|size)|exceed_context_size", re.IGNORECASE
)
"""The API has no error code for it; the last forms are llama.cpp's and vLLM's."""


def status_error(status: int, message: str, headers: Mapping[str, str]) -> ProviderError:
    """The error for a response whose status is not 200."""
    retryable = status in _RETRYABLE_STATUS or status >= 500
    code = _STATUS_CODES.get(status) or ("server_error" if retryable else "invalid_request")
    if code in {"invalid_request", "too_large"} and _CONTEXT_WINDOW.search(message):
        code = "context_window"
    if headers.get("x-should-retry") == "false":
        retryable = False
    return ProviderError(message, code=code, retryable=retryable, retry_after=_retry_after(headers))


def event_error(error_type: str, message: str) -> ProviderError:
    """The error for an `error` event in a stream, when the status was 200 already."""
    code = _TYPE_CODES.get(error_type, "server_error")
    if code == "invalid_request" and _CONTEXT_WINDOW.search(message):
        code = "context_window"
    return ProviderError(message, code=code, retryable=code in _RETRYABLE_CODES)


def stalled(seconds: float) -> ProviderError:
    """Nothing came for longer than the idle time-out."""
    return ProviderError(
        f"the model sent nothing for {seconds:g} seconds", code="stalled", retryable=True
    )


def connection_lost(url: str, reason: str) -> ProviderError:
    """The connection could not be made or broke."""
    return ProviderError(
        f"no connection to the model at {url}: {reason}", code="connection", retryable=True
    )


def malformed(reason: str) -> ProviderError:
    """A stream that breaks off or is not what the API sends."""
    return ProviderError(
        f"the model's stream is malformed: {reason}", code="malformed_stream", retryable=True
    )


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds; from `retry-after-ms` or `retry-after`, which may be a date."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        wish = headers.get("retry-after")
        if not wish:
            return None
        if wish.replace(".", "", 1).isdigit():
            return float(wish)
        return max(0.0, parsedate_to_datetime(wish).timestamp() - time())
    except ValueError:
        return None
