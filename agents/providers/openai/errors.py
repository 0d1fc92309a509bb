"""Convert failures of OpenAI's APIs, and of servers that implement them, to `ProviderError`s."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agents.providers.base import ProviderError
from agents.providers.errors import CONTEXT_WINDOW, code_of, retry_after

_WORDS = {
    "context_length_exceeded": "context_window",
    "exceed_context_size_error": "context_window",
    "rate_limit_exceeded": "rate_limited",
    "rate_limit_error": "rate_limited",
    "insufficient_quota": "permission",
    "billing_hard_limit_reached": "permission",
    "billing_not_active": "permission",
    "invalid_api_key": "authentication",
    "authentication_error": "authentication",
    "permission_error": "permission",
    "model_not_found": "not_found",
    "not_found_error": "not_found",
    "server_is_overloaded": "overloaded",
    "slow_down": "overloaded",
    "overloaded_error": "overloaded",
    "unavailable_error": "overloaded",
    "string_above_max_length": "too_large",
    "request_too_large": "too_large",
    "invalid_prompt": "invalid_request",
    "invalid_request_error": "invalid_request",
    "BadRequestError": "invalid_request",
}
"""Values of `code` and `type` in an error; the last of some are those of llama.cpp and vLLM."""

_RETRYABLE_CODES = {"rate_limited", "overloaded", "server_error"}
_NEVER_FITS = re.compile(r"request too large|reduce (?:the length|your prompt)", re.IGNORECASE)
"""A 429 for one request with more tokens than the limit of a minute: waiting does not help."""


def status_error(status: int, body: object, headers: Mapping[str, str]) -> ProviderError:
    """Return the error for a status other than 200; `body` is its JSON, or its text."""
    error = _inner(body)
    message = _message(error, body)
    code, retryable = code_of(status)
    told = _told(error)
    if told in {"context_window", "too_large"} or (status == 429 and told == "permission"):
        code, retryable = told, False
    elif status >= 500 and told == "overloaded":
        code = told
    if status == 429 and _NEVER_FITS.search(message):
        code, retryable = "too_large", False
    if code in {"invalid_request", "too_large"} and CONTEXT_WINDOW.search(message):
        code = "context_window"
    if headers.get("x-should-retry") == "false":
        retryable = False
    return ProviderError(message, code=code, retryable=retryable, retry_after=retry_after(headers))


def event_error(error: Mapping[str, object]) -> ProviderError:
    """Return the error for an error in a stream with the status 200."""
    status = error.get("code")
    if isinstance(status, str) and status.isdigit():
        status = int(status)
    if isinstance(status, int) and 400 <= status < 600:
        return status_error(status, error, {})
    message = _message(error, error)
    code = _told(error) or "server_error"
    if code == "invalid_request" and CONTEXT_WINDOW.search(message):
        code = "context_window"
    if code == "rate_limited" and _NEVER_FITS.search(message):
        code = "too_large"
    return ProviderError(message, code=code, retryable=code in _RETRYABLE_CODES)


def _inner(body: object) -> Mapping[str, object]:
    """Return the error object: the field `error`, or the body itself (older servers)."""
    if not isinstance(body, Mapping):
        return {}
    inner = body.get("error")
    return inner if isinstance(inner, Mapping) else body


def _message(error: Mapping[str, object], body: object) -> str:
    for told in (error.get("message"), error.get("error"), error.get("detail")):
        if isinstance(told, str) and told:
            return told
    return str(body)[:2000] if body else "the server gave no reason"


def _told(error: Mapping[str, object]) -> str | None:
    for name in ("code", "type"):
        word = error.get(name)
        if isinstance(word, str) and word in _WORDS:
            return _WORDS[word]
    return None
