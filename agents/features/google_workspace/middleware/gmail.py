"""Gmail tools: search, read, drafts, sending, labels and trash.

Tools that read need no approval; tools that send mail or change a mailbox require it.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from agents.features.google_workspace.client.gmail import Mailbox
from agents.features.google_workspace.client.session import GoogleSession
from agents.features.google_workspace.middleware.gmail_descriptions import described
from agents.features.google_workspace.middleware.gmail_sending import (
    LetterInput,
    SaveAttachmentInput,
    create_draft,
    save_attachment,
    send_message,
)
from agents.features.google_workspace.middleware.inputs import (
    GoogleInput,
    Id,
    PageToken,
    at_most,
    google_tool,
    line,
    with_google,
)
from agents.middleware.base import ToolResult
from agents.middleware.context import ToolContext
from agents.models import Effect

Labels = Annotated[list[Annotated[str, line(225, 1)]], at_most(20)]
Ids = Annotated[list[Id], at_most(50, 1)]


class ListMessagesInput(GoogleInput):
    query: Annotated[str, line(1_000)] = ""
    labels: Labels = Field(default_factory=list)
    limit: int = Field(default=10, ge=1, le=50)
    page: PageToken = ""


class ReadMessageInput(GoogleInput):
    message_id: Id


class ReadThreadInput(GoogleInput):
    thread_id: Id


class NoInput(GoogleInput):
    pass


class ChangeLabelsInput(GoogleInput):
    message_ids: Ids
    add: Labels = Field(default_factory=list)
    remove: Labels = Field(default_factory=list)


class TrashInput(GoogleInput):
    message_ids: Ids


async def _list(context: ToolContext, given: ListMessagesInput) -> ToolResult:
    def ask(session: GoogleSession) -> Any:
        named = {label.upper() for label in given.labels}
        trash = bool(named & {"TRASH", "SPAM"})
        box = Mailbox(session)
        return box.search(given.query, given.labels, given.limit, given.page, trash=trash)

    return await with_google(context, ask)


async def _read(context: ToolContext, given: ReadMessageInput) -> ToolResult:
    return await with_google(context, lambda google: Mailbox(google).read(given.message_id))


async def _read_thread(context: ToolContext, given: ReadThreadInput) -> ToolResult:
    return await with_google(context, lambda google: Mailbox(google).read_thread(given.thread_id))


async def _labels(context: ToolContext, given: NoInput) -> ToolResult:
    return await with_google(context, lambda google: Mailbox(google).labels())


async def _change(context: ToolContext, given: ChangeLabelsInput) -> ToolResult:
    return await with_google(
        context,
        lambda google: Mailbox(google).change_labels(given.message_ids, given.add, given.remove),
    )


async def _trash(context: ToolContext, given: TrashInput) -> ToolResult:
    return await with_google(context, lambda google: Mailbox(google).trash(given.message_ids))


async def _describe_change(context: ToolContext, given: ChangeLabelsInput) -> str:
    return await described(context, given.message_ids, [*given.add, *given.remove])


async def _describe_trash(context: ToolContext, given: TrashInput) -> str:
    return await described(context, given.message_ids)


async def _describe_attachment(context: ToolContext, given: SaveAttachmentInput) -> str:
    return await described(context, [given.message_id])


async def _describe_reply(context: ToolContext, given: LetterInput) -> str:
    """Return the mail that is answered; empty for a letter that answers none."""
    if given.reply_to_message_id is None:
        return ""
    return await described(context, [given.reply_to_message_id])


READING = [
    google_tool(
        "list_gmail_messages",
        "Search mail as in Gmail's search box, newest first; page: next_page of the last answer.",
        ListMessagesInput,
        _list,
        Effect.READ,
    ),
    google_tool("read_gmail_message", "Read a mail.", ReadMessageInput, _read, Effect.READ),
    google_tool(
        "read_gmail_thread", "Read a conversation.", ReadThreadInput, _read_thread, Effect.READ
    ),
    google_tool("list_gmail_labels", "List labels.", NoInput, _labels, Effect.READ),
]
CHANGING = [
    google_tool(
        "save_gmail_attachment",
        "Save an attachment of a mail as a new file.",
        SaveAttachmentInput,
        save_attachment,
        Effect.WRITE,
        _describe_attachment,
    ),
    google_tool(
        "create_gmail_draft",
        "Make a draft.",
        LetterInput,
        create_draft,
        Effect.EXTERNAL,
        _describe_reply,
    ),
    google_tool(
        "send_gmail_message",
        "Send a mail. Attachments are paths of files. A person approves it first.",
        LetterInput,
        send_message,
        Effect.EXTERNAL,
        _describe_reply,
    ),
    google_tool(
        "change_gmail_labels",
        "Add and remove labels. Without INBOX a mail is archived, without UNREAD read.",
        ChangeLabelsInput,
        _change,
        Effect.EXTERNAL,
        _describe_change,
    ),
    google_tool(
        "trash_gmail_messages",
        "Move mails to the trash.",
        TrashInput,
        _trash,
        Effect.EXTERNAL,
        _describe_trash,
    ),
]
