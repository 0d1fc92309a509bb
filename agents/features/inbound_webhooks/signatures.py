"""Verify the sender of a request: HMAC-SHA256 over the signed content, in four formats.

Each format defines the signed content and the part that identifies a repeated request. This part is
always signed, and never the time: a sender signs its retry with a new time. No part of a signed
text may contain the separator, so that its reading is unambiguous.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

TOLERANCE = 300
"""Seconds by which a request's time may differ from the server's time."""
MOST_SIGNATURES = 10
"""Limit of one request; further signatures are ignored."""
PREFIX = "whsec_"
SHORTEST_SECRET, LONGEST_SECRET = 16, 200

_ID = re.compile(r"[A-Za-z0-9_:/+=-]{1,150}")
_SECONDS = re.compile(r"[0-9]{1,12}")
_HEX = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Signed:
    """A request's claims. `at` is its time and `message_id` its id, if they are signed.

    `id_field` is the field of a JSON body that has the id, for formats without an id in a header.
    """

    content: bytes
    signatures: tuple[bytes, ...]
    at: int | None
    message_id: str = ""
    id_field: str = ""

    def key(self, body: bytes, value: Any) -> str:
        """Return the key that is the same in each repetition of a request.

        It is the signed id, or else the id in `value` (the content of `body`), or else the hash of
        `body`.
        """
        if self.message_id:
            return self.message_id
        if self.id_field and isinstance(value, dict):
            event_id = value.get(self.id_field)
            if isinstance(event_id, str) and _ID.fullmatch(event_id):
                return event_id
        return hashlib.sha256(body).hexdigest()


def read_signed(signing: str, headers: Mapping[str, str], body: bytes) -> Signed | None:
    """Read the headers of the format `signing`. Return None if they are missing or malformed.

    Header names are lower case.
    """
    return _READERS[signing](headers, body)


def is_genuine(signed: Signed | None, body: bytes, keys: Iterable[bytes], now: float) -> bool:
    """Return whether a signature is by one of the keys, and a signed time is within `TOLERANCE`.

    The duration does not depend on the cause of a failure: a request without a signature is hashed
    as well.
    """
    claim = signed or Signed(body, (bytes(32),), None)
    good = False
    for key in keys:
        expected = hmac.new(key, claim.content, hashlib.sha256).digest()
        for signature in claim.signatures:
            good |= hmac.compare_digest(expected, signature)
    in_time = claim.at is None or abs(now - claim.at) <= TOLERANCE
    return good and in_time and signed is not None


def new_secret() -> str:
    """Return a secret in the format of Standard Webhooks.

    The other formats use its whole text as the key.
    """
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def key_of(signing: str, secret: str) -> bytes:
    """Return the key of a secret. Raises `ValueError` if it is not valid for this format."""
    if not secret.isascii() or not secret.isprintable() or secret != secret.strip():
        raise ValueError("Expected a secret of one line of ASCII characters.")
    if not SHORTEST_SECRET <= len(secret) <= LONGEST_SECRET:
        raise ValueError(f"Expected a secret of {SHORTEST_SECRET} to {LONGEST_SECRET} characters.")
    if signing != "standard":
        return secret.encode()
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("Expected a secret of Standard Webhooks: whsec_ and base64.") from None
    if not 24 <= len(key) <= 64:
        raise ValueError("Expected a secret of Standard Webhooks with 24 to 64 bytes.")
    return key


def sign_standard(secret: str, message_id: str, at: int, body: bytes) -> str:
    """Return the value of `webhook-signature`, for senders and examples."""
    content = f"{message_id}.{at}.".encode() + body
    made = hmac.new(key_of("standard", secret), content, hashlib.sha256).digest()
    return "v1," + base64.b64encode(made).decode()


def _standard(headers: Mapping[str, str], body: bytes) -> Signed | None:
    message_id, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not _ID.fullmatch(message_id) or not _SECONDS.fullmatch(at):
        return None
    found = []
    for entry in headers.get("webhook-signature", "").split(" ")[:MOST_SIGNATURES]:
        version, _, text = entry.partition(",")
        try:
            made = base64.b64decode(text, validate=True)
        except ValueError:
            continue
        if version == "v1" and len(made) == 32:
            found.append(made)
    return Signed(f"{message_id}.{at}.".encode() + body, tuple(found), int(at), message_id)


def _github(headers: Mapping[str, str], body: bytes) -> Signed | None:
    # The time and the delivery's id are not signed, so the body identifies the request.
    found = _hex_signature(headers.get("x-hub-signature-256", ""), "sha256=")
    return Signed(body, found, None) if found else None


def _slack(headers: Mapping[str, str], body: bytes) -> Signed | None:
    at = headers.get("x-slack-request-timestamp", "")
    found = _hex_signature(headers.get("x-slack-signature", ""), "v0=")
    if not found or not _SECONDS.fullmatch(at):
        return None
    return Signed(f"v0:{at}:".encode() + body, found, int(at), id_field="event_id")


def _stripe(headers: Mapping[str, str], body: bytes) -> Signed | None:
    parts = [part.partition("=") for part in headers.get("stripe-signature", "").split(",")]
    times = [value for name, _, value in parts if name.strip() == "t"]
    found = [value for name, _, value in parts if name.strip() == "v1"][:MOST_SIGNATURES]
    if len(times) != 1 or not _SECONDS.fullmatch(times[0]):
        return None
    signatures = tuple(bytes.fromhex(value) for value in found if _HEX.fullmatch(value))
    return Signed(f"{times[0]}.".encode() + body, signatures, int(times[0]), id_field="id")


def _hex_signature(header: str, prefix: str) -> tuple[bytes, ...]:
    text = header.removeprefix(prefix)
    fits = header.startswith(prefix) and _HEX.fullmatch(text) is not None
    return (bytes.fromhex(text),) if fits else ()


_READERS = {"standard": _standard, "github": _github, "slack": _slack, "stripe": _stripe}
