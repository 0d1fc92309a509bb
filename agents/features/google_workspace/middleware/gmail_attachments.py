"""Copy attachments between mails and the workspace."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from agents.features.google_workspace.client.compose import MAX_ATTACHED, File
from agents.features.google_workspace.client.gmail import Mailbox
from agents.features.google_workspace.client.session import GoogleSession
from agents.features.google_workspace.middleware.credential import with_google
from agents.features.google_workspace.middleware.inputs import GoogleInput, Id
from agents.middleware.base import ToolResult, error
from agents.middleware.context import ToolContext
from sandbox.backends.protocol import ABSENT, FileBackend
from sandbox.errors import FileError, SandboxError

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
    """Write a new file and replace none. Its path comes from the call, not from the mail."""

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
    """Return the files to attach, or the problem of one of them."""
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
