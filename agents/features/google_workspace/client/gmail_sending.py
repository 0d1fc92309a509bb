"""Send mail, create drafts, and check whether a message was sent."""

from __future__ import annotations

import base64
import hashlib
import json
import mimetypes
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any

from agents.features.google_workspace.client import access, mail
from agents.features.google_workspace.client.gmail import Mailbox, address
from agents.features.google_workspace.client.session import GoogleSession
from agents.hidden_text import visible

MARK_HEADER = "X-Vel-Message"
"""A header that Gmail keeps. It may replace the Message-ID."""
MAX_ATTACHED = 18_000_000
"""Limit of all files together, in bytes as they are sent: Gmail's 25 MB."""
_MESSAGE_ID = re.compile(r"<[\x21-\x3b\x3d\x3f-\x7e]{1,250}>")
_REFERENCES = 20


@dataclass(frozen=True, slots=True)
class File:
    name: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Letter:
    """A message to be sent. Its addresses are plain ones; the tool's input checks them."""

    to: Sequence[str]
    subject: str
    text: str
    cc: Sequence[str] = ()
    bcc: Sequence[str] = ()
    files: Sequence[File] = ()
    in_reply_to: str = ""
    """The Message-ID of the answered message."""
    references: str = ""


def mark_of(run_id: str, tool_input: object) -> str:
    """Return a letter's mark: the same for each attempt to send the same input in a run."""
    whole = f"{run_id}\n{json.dumps(tool_input, sort_keys=True)}"
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def composed(letter: Letter, mark: str) -> bytes:
    """Return the message as bytes (RFC 5322). Raises `ValueError` for a line break in a header."""
    message = EmailMessage(policy=SMTP)
    for name, several in (("To", letter.to), ("Cc", letter.cc), ("Bcc", letter.bcc)):
        if several:
            message[name] = ", ".join(several)
    message["Subject"] = letter.subject
    message["Message-ID"] = f"<{mark}@vel.invalid>"
    message[MARK_HEADER] = mark
    if replied := _MESSAGE_ID.findall(letter.in_reply_to)[:1]:
        earlier = [item for item in _MESSAGE_ID.findall(letter.references) if item != replied[0]]
        message["In-Reply-To"] = replied[0]
        message["References"] = " ".join([*earlier[-_REFERENCES:], *replied])
    message.set_content(letter.text)
    for file in letter.files:
        # File names in a workspace can have any characters, also line breaks.
        name = visible(file.name).replace("\n", "_")
        kind, packed = mimetypes.guess_type(name)
        main, _, sub = (kind if kind and not packed else "application/octet-stream").partition("/")
        if main in ("message", "multipart"):
            # As bytes, so that a file is not parsed as parts of this message.
            main, sub = "application", "octet-stream"
        message.add_attachment(file.data, maintype=main, subtype=sub, filename=name)
    return message.as_bytes()


LOOKED_AT = 100
"""Number of newest sent messages that are searched."""
MOST_AS_JSON = 3_000_000
"""Bytes; larger messages are uploaded."""
_MINUTE_MS = 60_000


def send(session: GoogleSession, letter: Letter, mark: str, thread_id: str = "") -> dict[str, Any]:
    """Send a letter, with one request. Return `sent`, `id` and `thread_id`.

    It has the mark of `mark_of`, and belongs to the conversation `thread_id`.

    Raises `GoogleFailed`; its `sent` is None if Gmail may have sent the message.
    """
    said = _deliver(
        session, ("messages", "send"), access.SEND_MAIL, composed(letter, mark), thread_id
    )
    return {"sent": True, "id": str(said.get("id", "")), "thread_id": str(said.get("threadId", ""))}


def save_draft(
    session: GoogleSession, letter: Letter, mark: str, thread_id: str = ""
) -> dict[str, Any]:
    """Store a draft in the mailbox. Return its `draft_id`. Raises `GoogleFailed`."""
    said = _deliver(
        session,
        ("drafts",),
        access.WRITE_DRAFTS,
        composed(letter, mark),
        thread_id,
        inside="message",
    )
    return {"draft_id": str(said.get("id", ""))}


def replied_to(mailbox: Mailbox, message_id: str) -> tuple[str, str, str]:
    """Return a message's thread, its Message-ID and its References."""
    found = mailbox.message(message_id, ("Message-ID", "References"))
    names = ("Message-ID", "References")
    return (str(found.get("threadId", "")), *(mail.header(found, name) for name in names))  # type: ignore[return-value]


def find_sent(mailbox: Mailbox, mark: str, since_ms: int) -> dict[str, Any] | None:
    """Return id and thread_id of the sent message with this mark, or None.

    It searches the newest `LOOKED_AT` messages sent since `since_ms` (Unix time in milliseconds). A
    search by Message-ID would fail if Gmail has replaced it.
    """
    listed = mailbox.session.ask(
        "GET",
        address("messages"),
        access.READ_MAIL,
        query={"labelIds": "SENT", "maxResults": LOOKED_AT},
    )
    for item in listed.get("messages") or ():
        message = mailbox.message(str(item["id"]), (MARK_HEADER,))
        if mail.header(message, MARK_HEADER) == mark:
            return {"id": str(message["id"]), "thread_id": str(message.get("threadId", ""))}
        if int(message.get("internalDate") or 0) < since_ms - _MINUTE_MS:
            break
    return None


def _deliver(
    session: GoogleSession,
    place: tuple[str, ...],
    needs: tuple[str, ...],
    raw: bytes,
    thread_id: str,
    *,
    inside: str = "",
) -> dict[str, Any]:
    """Send JSON, or a multipart upload if JSON would be too long for Google."""
    thread = {"threadId": thread_id} if thread_id else {}
    if len(raw) <= MOST_AS_JSON:
        message = {**thread, "raw": base64.urlsafe_b64encode(raw).decode()}
        body = {inside: message} if inside else message
        return session.ask("POST", address(*place), needs, body=body, writes=True)
    about = json.dumps({inside: thread} if inside else thread).encode()
    border = f"vel-{secrets.token_hex(16)}"
    content = b"".join(
        (
            f"--{border}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n".encode(),
            about,
            f"\r\n--{border}\r\nContent-Type: message/rfc822\r\n\r\n".encode(),
            raw,
            f"\r\n--{border}--\r\n".encode(),
        )
    )
    return session.ask(
        "POST",
        address(*place, upload=True),
        needs,
        query={"uploadType": "multipart"},
        content=(f"multipart/related; boundary={border}", content),
        writes=True,
    )
