"""Send a mail once, create a draft, or save an attachment.

Gmail has no idempotency keys. So each message has a mark, made of the run and of the approved
content. If an earlier call may have sent the same message, the sent messages are searched for the
mark first. Vel never sends again automatically; only the model can request it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Self

from django.utils import timezone
from pydantic import Field, model_validator

from agents.features.google_workspace.client import gmail_sending
from agents.features.google_workspace.client.errors import GoogleFailed
from agents.features.google_workspace.client.gmail import Mailbox
from agents.features.google_workspace.client.gmail_sending import (
    MAX_ATTACHED,
    File,
    Letter,
    mark_of,
)
from agents.features.google_workspace.client.session import GoogleSession
from agents.features.google_workspace.middleware.inputs import (
    Address,
    GoogleInput,
    Id,
    at_most,
    line,
    text,
    with_google,
)
from agents.middleware.base import ToolResult, error
from agents.middleware.context import ToolContext
from agents.selectors.earlier_calls import earlier_calls
from agents.states import ToolCallStatus
from sandbox.backends.protocol import ABSENT, FileBackend
from sandbox.errors import FileError, SandboxError

SEND = "send_gmail_message"
MOST_RECIPIENTS = 100


class LetterInput(GoogleInput):
    to: Annotated[list[Address], at_most(MOST_RECIPIENTS, 1)]
    subject: Annotated[str, line(900)]
    text: Annotated[str, text(500_000)]
    cc: list[Address] = Field(default_factory=list)
    bcc: list[Address] = Field(default_factory=list)
    reply_to_message_id: Id | None = None
    attachments: Annotated[list[str], at_most(20)] = Field(default_factory=list)

    @model_validator(mode="after")
    def _few_enough(self) -> Self:
        if len(self.to) + len(self.cc) + len(self.bcc) > MOST_RECIPIENTS:
            raise ValueError(f"There may be {MOST_RECIPIENTS} recipients in all.")
        return self


@dataclass(frozen=True, slots=True)
class Unsure:
    """An earlier call for the same message with an unknown result."""

    mark: str
    since_ms: int


async def send_message(context: ToolContext, given: LetterInput) -> ToolResult:
    earlier = await context.in_database(_earlier, context.run_id, context.call_id, given)
    return await with_google(context, partial(_send, context, given, earlier))


async def create_draft(context: ToolContext, given: LetterInput) -> ToolResult:
    def save(session: GoogleSession) -> dict[str, Any]:
        letter, thread = _letter(context, given, session)
        return gmail_sending.save_draft(session, letter, _mark(context.run_id, given), thread)

    return await with_google(context, save)


def _send(
    context: ToolContext,
    given: LetterInput,
    earlier: Sequence[Unsure] | None,
    session: GoogleSession,
) -> dict[str, Any]:
    if earlier is None:
        raise GoogleFailed(
            "Not sent: this run has already sent an identical message. To send it again, change "
            "it.",
            "sent_already",
        )
    for unsure in earlier:
        found = _look_up(session, unsure)
        if found is not None:
            return {"sent": False, "note": "It was sent by an earlier call already.", **found}
    letter, thread = _letter(context, given, session)
    return gmail_sending.send(session, letter, _mark(context.run_id, given), thread)


def _look_up(session: GoogleSession, unsure: Unsure) -> dict[str, Any] | None:
    try:
        return gmail_sending.find_sent(Mailbox(session), unsure.mark, unsure.since_ms)
    except GoogleFailed as failure:
        raise GoogleFailed(
            "Not sent: an earlier call may have sent this message, and the sent messages cannot "
            f"be read. {failure} The user should look there. A message with other words can be "
            "sent.",
            failure.code,
        ) from None


def _earlier(run_id: str, call_id: str, given: LetterInput) -> list[Unsure] | None:
    """Return calls that may have sent the same message; None if this run has certainly sent it."""
    unsure: list[Unsure] = []
    for call in earlier_calls(run_id, call_id, SEND):
        try:
            meant = LetterInput.model_validate(call.effective_input)
        except ValueError:
            continue  # the input of another release
        if meant != given:
            continue
        if call.status == ToolCallStatus.SUCCEEDED:
            if call.run_id == run_id:
                return None
            continue  # another request by the user
        since = call.started_at or timezone.now()
        unsure.append(Unsure(_mark(call.run_id, meant), int(since.timestamp() * 1000)))
    return unsure


def _mark(run_id: str, given: LetterInput) -> str:
    return mark_of(run_id, given.model_dump())


def _letter(context: ToolContext, given: LetterInput, session: GoogleSession) -> tuple[Letter, str]:
    """Return the message to send, and its conversation."""
    files = read_files(context.files(), given.attachments) if given.attachments else []
    if isinstance(files, str):
        raise GoogleFailed(f"Nothing was sent: {files}", "file_error")
    thread = message_id = references = ""
    if given.reply_to_message_id:
        thread, message_id, references = gmail_sending.replied_to(
            Mailbox(session), given.reply_to_message_id
        )
    letter = Letter(
        to=given.to,
        subject=given.subject,
        text=given.text,
        cc=given.cc,
        bcc=given.bcc,
        files=files,
        in_reply_to=message_id,
        references=references,
    )
    return letter, thread


MAX_SAVED = 25 * 1024**2
"""Bytes, Gmail's own limit."""


class SaveAttachmentInput(GoogleInput):
    message_id: Id
    part: str
    path: str


@dataclass(frozen=True, slots=True)
class NotSaved:
    problem: str


async def save_attachment(context: ToolContext, given: SaveAttachmentInput) -> ToolResult:
    """Save an attachment of a mail as a new file; an existing file is not replaced.

    The path comes from the call, not from the mail.
    """

    def save(session: GoogleSession) -> object:
        found, data = Mailbox(session).attachment(given.message_id, given.part, MAX_SAVED)
        try:
            context.files().write_bytes(given.path, data, if_version=ABSENT)
        except (SandboxError, OSError) as problem:
            return NotSaved(str(problem))
        return {"path": given.path, "name": found.name, "type": found.kind, "size": len(data)}

    result = await with_google(context, save)
    if isinstance(result.content, NotSaved):
        return error(f"The file was not saved: {result.content.problem}", "file_error")
    return result


def read_files(backend: FileBackend, paths: Sequence[str]) -> list[File] | str:
    """Return the files to attach, or the problem of one of them.

    Together they can have `MAX_ATTACHED` bytes.
    """
    found: list[File] = []
    left = MAX_ATTACHED
    for path in paths:
        try:
            data = backend.read_bytes(path, left)
        except (FileError, SandboxError, OSError) as problem:
            return f"{problem} (all attachments may have {MAX_ATTACHED:,} bytes)"
        left -= len(data)
        found.append(File(posixpath.basename(path.rstrip("/")) or "file", data))
    return found
