"""Compose a message. It has only content that the approver has seen, and can be found again."""

from __future__ import annotations

import hashlib
import json
import mimetypes
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import SMTP

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
    """Return a letter's mark, which is unique and the same for each attempt in a run."""
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
