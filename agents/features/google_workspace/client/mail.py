"""Read a message of Gmail's API: headers, text and attachments."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from typing import Any

from agents.features.google_workspace.client.plain_text import PlainText, from_html, plain

MAX_PARTS = 500
SHOWN_HEADERS = ("From", "To", "Cc", "Reply-To", "Date", "Subject")
_CHARSET = re.compile(r'charset="?([A-Za-z0-9._:-]{1,40})', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Attached:
    """An attachment. `attachment_id` is empty if the message contains the bytes."""

    part: str
    name: str
    kind: str
    size: int
    attachment_id: str = ""
    data: str = field(default="", repr=False)


def header(message: dict[str, Any], name: str) -> str:
    """Return the first header of this name: decoded, one line, without invisible characters."""
    for item in _headers(message.get("payload")):
        if str(item.get("name", "")).lower() == name.lower():
            return _decoded(str(item.get("value", "")))
    return ""


def summary(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message's fields for a list."""
    found = {
        "id": str(message.get("id", "")),
        "thread_id": str(message.get("threadId", "")),
        **{name.lower(): text for name in SHOWN_HEADERS[:3] if (text := header(message, name))},
        "date": header(message, "Date"),
        "subject": header(message, "Subject"),
        "labels": [str(label) for label in message.get("labelIds") or ()],
    }
    if snippet := plain(str(message.get("snippet", ""))).text.strip():
        found["snippet"] = snippet
    return found


def whole(message: dict[str, Any], text: PlainText) -> dict[str, Any]:
    """Return a message with its text, which the caller has loaded."""
    read = {**summary(message), "text": text.text}
    read.pop("snippet", None)
    if reply_to := header(message, "Reply-To"):
        read["reply_to"] = reply_to
    if text.left_out:
        read["invisible_characters_left_out"] = text.left_out
    files = [
        {"part": item.part, "name": item.name, "type": item.kind, "size": item.size}
        for item in attachments(message)
    ]
    if files:
        read["attachments"] = files
    return read


def text_part(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return the part with the text: plain if there is one, else HTML."""
    found: dict[str, dict[str, Any]] = {}
    for part in _parts(message):
        kind = str(part.get("mimeType", "")).lower()
        if kind in ("text/plain", "text/html") and not part.get("filename"):
            found.setdefault(kind, part)
    return found.get("text/plain") or found.get("text/html")


def text_of(part: dict[str, Any], data: str) -> PlainText:
    """Return the text in a part's bytes, which are base64url."""
    raw = decoded_bytes(data)
    declared = ""
    for item in _headers(part):
        if str(item.get("name", "")).lower() == "content-type":
            found = _CHARSET.search(str(item.get("value", "")))
            declared = found[1] if found else ""
    text = _as_text(raw, declared)
    return from_html(text) if str(part.get("mimeType")).lower() == "text/html" else plain(text)


def attachments(message: dict[str, Any]) -> list[Attached]:
    """Return every part with a file name, and parts that are neither text nor containers."""
    found = []
    for part in _parts(message):
        kind = str(part.get("mimeType", "")).lower()
        body = part.get("body") or {}
        name = _decoded(str(part.get("filename") or ""))
        if not name and (kind.startswith(("text/", "multipart/")) or not kind):
            continue
        found.append(
            Attached(
                part=str(part.get("partId", "")),
                name=name,
                kind=kind[:100],
                size=int(body.get("size") or 0),
                attachment_id=str(body.get("attachmentId") or ""),
                data=str(body.get("data") or ""),
            )
        )
    return found


def decoded_bytes(data: str) -> bytes:
    """Decode base64url, with or without padding. Return no bytes if it is invalid."""
    try:
        return base64.b64decode(data + "=" * (-len(data) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""


def _parts(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all parts in their order. Not recursive, since mails can nest to any depth."""
    rest = [message.get("payload")]
    for _ in range(MAX_PARTS):
        if not rest:
            return
        part = rest.pop()
        if not isinstance(part, dict):
            continue
        yield part
        inner = part.get("parts")
        if isinstance(inner, list):
            rest += reversed(inner)


def _headers(part: Any) -> list[dict[str, Any]]:
    given = part.get("headers") if isinstance(part, dict) else None
    return [item for item in given or () if isinstance(item, dict)]


def _decoded(value: str) -> str:
    """Decode encoded words (RFC 2047), and return one line."""
    if "=?" in value:
        try:
            value = str(make_header(decode_header(value))) or value
        except (HeaderParseError, LookupError, ValueError):
            pass  # keep the text as it was sent
    return " ".join(plain(value).text.split())[:2_000]


def _as_text(raw: bytes, declared: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        pass
    try:
        return raw.decode(declared or "latin-1", "replace")
    except LookupError:
        return raw.decode("latin-1")
