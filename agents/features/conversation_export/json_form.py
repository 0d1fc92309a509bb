"""A conversation as JSON, in pieces: see `shapes`."""

from __future__ import annotations

from collections.abc import Iterator

from agents.events.append import dump
from agents.features.conversation_export.reading import Conversation, RunHead, Turn
from agents.features.conversation_export.shapes import (
    FORMAT,
    VERSION,
    show_files,
    show_head,
    show_thread,
    show_turn,
    show_usage,
)
from agents.hidden_text import escaped_json


def json_pieces(conversation: Conversation) -> Iterator[str]:
    """Yield the text of the JSON. Hidden characters are escapes, so terminals can show it."""
    for piece in _pieces(conversation):
        yield escaped_json(piece)


def _pieces(conversation: Conversation) -> Iterator[str]:
    thread = conversation.thread
    head = {
        "format": FORMAT,
        "version": VERSION,
        "exported_at": f"{conversation.read_at:%Y-%m-%dT%H:%M:%S.%fZ}",
        "thread": show_thread(thread),
        "owner": thread.owner.get_username(),
        "usage": show_usage(conversation.usage()),
    }
    yield _open(head)
    yield ',\n"runs":['
    yield from _runs(conversation.parts())
    yield '],\n"subagents":['
    yield from _runs(conversation.parts_of_subagents())
    yield "],\n"
    yield dump(show_files(conversation.files()))[1:]
    yield "\n"


def _runs(parts: Iterator[RunHead | Turn]) -> Iterator[str]:
    head: RunHead | None = None
    comma = ""
    for part in parts:
        if isinstance(part, RunHead):
            yield "\n" if head is None else "]},\n"
            yield _open(show_head(part)) + ',"turns":['
            head, comma = part, ""
        elif head is not None:
            yield f"{comma}\n{dump(show_turn(part, head.run))}"
            comma = ","
    if head is not None:
        yield "]}"


def _open(values: dict[str, object]) -> str:
    """Return a JSON object without its last brace."""
    return dump(values)[:-1]
