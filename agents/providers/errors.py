"""Failures of model calls that are the same for all providers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from time import time

from agents.providers.base import ProviderError

MIN_SECRET = 8
"""A shorter key is not secret: servers without authentication accept any key."""
CONTEXT_WINDOW = re.compile(
    r"prompt is too long|context (?:limit|window|length|size)|exceed_context_size", re.IGNORECASE
)
"""Most servers have no error code for it; the last forms are those of llama.cpp and vLLM."""

_STATUS_CODES = {
    401: "authentication",
    402: "permission",
    403: "permission",
    404: "not_found",
    413: "too_large",
    429: "rate_limited",
    503: "overloaded",
    529: "overloaded",
}


def code_of(status: int) -> tuple[str, bool]:
    """Return (the code for the HTTP status of an error, whether another call may succeed)."""
    retryable = status in {408, 409, 429} or status >= 500
    code = _STATUS_CODES.get(status) or ("server_error" if retryable else "invalid_request")
    return code, retryable


def hide_key(error: ProviderError, api_key: str) -> None:
    """Remove the key from a server's error message, which goes to logs and watchers."""
    if len(api_key) >= MIN_SECRET and api_key in error.message:
        error.message = error.message.replace(api_key, "(key)")
        error.args = (error.message,)


def stalled(seconds: float) -> ProviderError:
    """Return the error for a stream without data for longer than the idle timeout."""
    return ProviderError(
        f"the model sent nothing for {seconds:g} seconds", code="stalled", retryable=True
    )


def connection_lost(url: str, reason: str) -> ProviderError:
    """Return the error for a connection that failed or was lost."""
    return ProviderError(
        f"no connection to the model at {url}: {reason}", code="connection", retryable=True
    )


def malformed(reason: str) -> ProviderError:
    """Return the error for a stream that ends early or has invalid data."""
    return ProviderError(
        f"the model's stream is malformed: {reason}", code="malformed_stream", retryable=True
    )


def endless(reason: str) -> ProviderError:
    """Return the error for an answer that is too large. It is not retryable."""
    return ProviderError(f"the model's server cannot be used: {reason}", code="malformed_stream")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of `retry-after-ms` or `retry-after`, which may be a date.

    Returns None without a valid one.
    """
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        wish = headers.get("retry-after")
        if not wish:
            return None
        if wish.replace(".", "", 1).isdigit():
            return float(wish)
        return max(0.0, parsedate_to_datetime(wish).timestamp() - time())
    except (ValueError, OverflowError):
        return None
