"""Convert failures of the Messages API to `ProviderError`s."""

from __future__ import annotations

from collections.abc import Mapping

from agents.providers.base import ProviderError
from agents.providers.errors import CONTEXT_WINDOW, retry_after

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


def status_error(status: int, message: str, headers: Mapping[str, str]) -> ProviderError:
    """Return the error for a response with another status than 200."""
    retryable = status in _RETRYABLE_STATUS or status >= 500
    code = _STATUS_CODES.get(status) or ("server_error" if retryable else "invalid_request")
    if code in {"invalid_request", "too_large"} and CONTEXT_WINDOW.search(message):
        code = "context_window"
    if headers.get("x-should-retry") == "false":
        retryable = False
    return ProviderError(message, code=code, retryable=retryable, retry_after=retry_after(headers))


def event_error(error_type: str, message: str) -> ProviderError:
    """Return the error for an `error` event in a stream with the status 200."""
    code = _TYPE_CODES.get(error_type, "server_error")
    if code == "invalid_request" and CONTEXT_WINDOW.search(message):
        code = "context_window"
    return ProviderError(message, code=code, retryable=code in _RETRYABLE_CODES)
