"""Ask a provider's server whether it accepts a key: one request for its list of models.

The request costs no tokens. It follows no redirects, so that no other server gets the key.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus

import anthropic
import httpx2

from agents.hidden_text import one_line
from agents.providers.addresses import origin_of
from agents.providers.transport import tls_context

ANSWER_SECONDS = 10.0
MAX_BYTES = 256 * 1024
LONGEST_MESSAGE = 200
LEAKED = 6
"""A word of the server's message with this number of characters of a key in a row is hidden."""


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """The result for people, in one line without the key.

    `outcome` has no words of the server: it is for the audit log.
    """

    works: bool
    outcome: str
    message: str = ""

    @property
    def text(self) -> str:
        return f"{self.outcome}: {self.message}" if self.message else f"{self.outcome}."


def check_key(maker: str, base_url: str, api_key: str) -> KeyCheck:
    """Request the list of models with this key. Never raises an error of the connection."""
    origin = origin_of(base_url)
    url, headers = _request(maker, base_url.rstrip("/"), api_key)
    try:
        status, body = _answer(url, headers)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        return KeyCheck(False, f"{origin} gave no answer", _safe(reason, api_key))
    message = _safe(_message(body), api_key)
    if 200 <= status < 300:
        return KeyCheck(True, f"{origin} accepted the key (HTTP {status})")
    if status in (401, 403):
        return KeyCheck(False, f"{origin} refused the key (HTTP {status})", message)
    if status == 404:
        outcome = f"{origin} has no list of models (HTTP 404), so the key was not checked"
        return KeyCheck(False, outcome, message)
    if 300 <= status < 400:
        outcome = f"{origin} redirects to another address (HTTP {status}): correct the base URL"
        return KeyCheck(False, outcome)
    return KeyCheck(False, f"{origin} answered with HTTP {status}", message)


def _request(maker: str, base_url: str, api_key: str) -> tuple[str, dict[str, str]]:
    if maker == "anthropic":
        # The header of the key depends on the version of the SDK, which sends it in runs.
        with anthropic.Anthropic(api_key=api_key, base_url=base_url) as client:
            headers = {**client.auth_headers, "anthropic-version": "2023-06-01"}
        return f"{base_url}/v1/models?limit=1", headers
    if maker == "google":
        return f"{base_url}/v1beta/models?pageSize=1", {"x-goog-api-key": api_key}
    return f"{base_url}/models", {"authorization": f"Bearer {api_key}"}


def _answer(url: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Return the status and the start of the body, which is not decompressed."""
    until = time.monotonic() + ANSWER_SECONDS
    client = httpx2.Client(verify=tls_context(), timeout=ANSWER_SECONDS, follow_redirects=False)
    with (
        client,
        client.stream("GET", url, headers={**headers, "accept-encoding": "identity"}) as got,
    ):
        body = b""
        for part in got.iter_raw():
            body += part
            if len(body) > MAX_BYTES or time.monotonic() > until:
                break
        return got.status_code, body[:MAX_BYTES]


def _message(body: bytes) -> str:
    """Return the message of an error in the form of any of the APIs, or ""."""
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if isinstance(found, list) and found:
        found = found[0]
    error = found.get("error") if isinstance(found, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""


def _safe(text: str, api_key: str) -> str:
    """Return `text` in one line, without words that contain a part of the key."""
    parts = {
        spelled[at : at + LEAKED]
        for spelled in (api_key, quote_plus(api_key))
        for at in range(max(1, len(spelled) - LEAKED + 1))
    }
    words = ("(key)" if any(part in word for part in parts) else word for word in text.split())
    return one_line(" ".join(words), LONGEST_MESSAGE)
