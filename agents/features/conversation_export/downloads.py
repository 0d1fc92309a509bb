"""A conversation as a download: it is read while it is sent, in parts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from django.utils.text import slugify

from agents.doors.downloads import attachment_headers
from agents.doors.rest.streaming import free_connection
from agents.features.conversation_export.json_form import json_pieces
from agents.features.conversation_export.markdown_form import markdown_pieces
from agents.features.conversation_export.reading import Conversation
from agents.services.open_connections import Place

MARKDOWN, JSON = "markdown", "json"
FORMATS = {MARKDOWN: ("md", "text/markdown; charset=utf-8"), JSON: ("json", "application/json")}
"""The ending of the file name and the content type of each format."""
CHUNK_CHARACTERS = 64_000


def pieces(conversation: Conversation, form: str) -> Iterator[str]:
    return {MARKDOWN: markdown_pieces, JSON: json_pieces}[form](conversation)


def file_name(conversation: Conversation, form: str) -> str:
    """Return a name of ASCII letters, digits and hyphens: `rain-in-june-2026-01-31.md`."""
    title = slugify(conversation.thread.title)[:60].strip("-_") or "conversation"
    return f"{title}-{conversation.thread.created_at:%Y-%m-%d}.{FORMATS[form][0]}"


def download(conversation: Conversation, form: str, place: Place) -> StreamingHttpResponse:
    """Return the conversation as an attachment. `place` is released after the response."""
    return StreamingHttpResponse(
        Chunks(pieces(conversation, form), place),
        content_type=FORMATS[form][1],
        headers=attachment_headers(file_name(conversation, form)),
    )


class Chunks:
    """Pieces of text, joined to longer ones. Django closes it after the response."""

    def __init__(self, texts: Iterator[str], place: Place) -> None:
        self._texts = texts
        self._place = place

    def close(self) -> None:
        self._place.release()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while chunk := await sync_to_async(self._next)():
            yield chunk

    def _next(self) -> bytes:
        """Return some of the text, or nothing at its end."""
        found: list[str] = []
        size = 0
        try:
            for text in self._texts:
                found.append(text)
                size += len(text)
                if size >= CHUNK_CHARACTERS:
                    break
        finally:
            free_connection()  # a slow client can read for hours
        return "".join(found).encode()
