"""Send mail, create drafts, and check whether a message was sent."""

from __future__ import annotations

import base64
import json
import secrets
from typing import Any

from agents.features.google_workspace.client import access, mail
from agents.features.google_workspace.client.compose import MARK_HEADER, Letter, composed
from agents.features.google_workspace.client.gmail import Mailbox, address
from agents.features.google_workspace.client.session import GoogleSession

LOOKED_AT = 100
"""Number of newest sent messages that are searched."""
MOST_AS_JSON = 3_000_000
"""Bytes; larger messages are uploaded."""
_MINUTE_MS = 60_000


def send(session: GoogleSession, letter: Letter, mark: str, thread_id: str = "") -> dict[str, Any]:
    """Send once: id, thread_id. Raises `GoogleFailed`, whose `sent` has the known result."""
    said = _deliver(
        session, ("messages", "send"), access.SEND_MAIL, composed(letter, mark), thread_id
    )
    return {"sent": True, "id": str(said.get("id", "")), "thread_id": str(said.get("threadId", ""))}


def save_draft(
    session: GoogleSession, letter: Letter, mark: str, thread_id: str = ""
) -> dict[str, Any]:
    """Store a draft in the mailbox: draft_id. Raises `GoogleFailed`."""
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
    """Return the sent message with this mark, or None: id, thread_id.

    It reads the list of messages sent since `since_ms` (Unix time). A search by Message-ID would
    fail if Gmail has replaced it.
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
