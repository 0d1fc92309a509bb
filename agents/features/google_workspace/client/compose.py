"""Writing a message: one that says no more than a person was shown, and can be found again."""

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
"""Gmail may give a message another Message-ID than it was sent with: this header stays."""
MAX_ATTACHED = 18_000_000
"""Bytes of all files: 25 MB, Gmail's limit, as they are sent."""
_MESSAGE_ID = re.compile(r"<[\x21-\x3b\x3d\x3f-\x7e]{1,250}>")
_REFERENCES = 20


@dataclass(frozen=True, slots=True)
class File:
    name: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Letter:
    """What is sent. Addresses are plain ones, checked by the tool's input."""

    to: Sequence[str]
    subject: str
    text: str
    cc: Sequence[str] = ()
    bcc: Sequence[str] = ()
    files: Sequence[File] = ()
    in_reply_to: str = ""
    """The Message-ID that is answered."""
    references: str = ""


def mark_of(run_id: str, tool_input: object) -> str:
    """The same for the same letter of the same run, and for no other."""
    whole = f"{run_id}\n{json.dumps(tool_input, sort_keys=True)}"
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def composed(letter: Letter, mark: str) -> bytes:
    """The message as bytes (RFC 5322). Raises `ValueError` for a header that would be two."""
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
        # A file of the workspace may have any name, line breaks and all.
        name = visible(file.name).replace("\n", "_")
        kind, packed = mimetypes.guess_type(name)
        main, _, sub = (kind if kind and not packed else "application/octet-stream").partition("/")
        if main in ("message", "multipart"):
            # As bytes: a file is not to be read as parts of this message.
            main, sub = "application", "octet-stream"
        message.add_attachment(file.data, maintype=main, subtype=sub, filename=name)
    return message.as_bytes()
