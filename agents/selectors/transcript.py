"""Search for words in one thread."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from agents.events.append import dump
from agents.models import Message, ToolCall

MAX_WORDS = 8
MAX_LOOKED_AT = 200
"""Maximum rows of each kind to examine. Matches can be in JSON syntax only."""
EXCERPT = 400
"""Characters of one excerpt."""


@dataclass(frozen=True, slots=True)
class Found:
    """A match. `run` and `turn` are numbers within the thread, `who` is a role or a tool."""

    run: int
    turn: int
    who: str
    excerpt: str


def search_thread(thread_id: str, query: str, limit: int) -> list[Found]:
    """Return messages, calls and results that contain all words of `query`, newest first.

    At most `limit`, among the newest `MAX_LOOKED_AT` rows of each kind that match. Words after the
    first `MAX_WORDS` are ignored. Case does not matter, except for letters outside of ASCII on
    SQLite. A query without words has no results.
    """
    words = query.split()[:MAX_WORDS]
    if not words:
        return []
    found = [*_in_messages(thread_id, words), *_in_calls(thread_id, words)]
    found.sort(key=lambda item: (item.run, item.turn), reverse=True)
    return found[:limit]


def _in_messages(thread_id: str, words: Sequence[str]) -> Iterator[Found]:
    has_all = Q(run__thread_id=thread_id)
    for word in words:
        has_all &= Q(content__icontains=_as_stored(word))
    rows = Message.objects.filter(has_all).exclude(run__message_refused=True)
    rows = rows.order_by("-run__number", "-turn")
    for row in rows.select_related("run").only("run__number", "turn", "role", "content")[
        :MAX_LOOKED_AT
    ]:
        for block in row.blocks:
            if block["type"] == "text" and (excerpt := _excerpt(block["text"], words)):
                yield Found(row.run.number, row.turn, row.role, excerpt)


def _in_calls(thread_id: str, words: Sequence[str]) -> Iterator[Found]:
    has_all = Q(run__thread_id=thread_id)
    for word in words:
        stored = _as_stored(word)
        has_all &= Q(input__icontains=stored) | Q(result__icontains=stored)
    rows = ToolCall.objects.filter(has_all).exclude(tool="search_transcript")
    rows = rows.order_by("-run__number", "-turn", "position").select_related("run")
    for row in rows.only("run__number", "turn", "tool", "input", "result")[:MAX_LOOKED_AT]:
        text = f"{_plain(json.loads(row.input))}\n→ {_plain(row.result_content)}"
        if excerpt := _excerpt(text, words):
            yield Found(row.run.number, row.turn, row.tool, excerpt)


def _as_stored(word: str) -> str:
    """Return the word as it is in JSON text."""
    return dump(word)[1:-1]


def _plain(value: Any) -> str:
    """Return the texts in a value, joined by line breaks."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(f"{key}: {_plain(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "\n".join(_plain(item) for item in value)
    return "" if value is None else str(value)


def _excerpt(text: str, words: Sequence[str]) -> str:
    """Return the text around the longest of the words, or "" if one is missing."""
    low = text.lower()
    places = [low.find(word.lower()) for word in words]
    if min(places) < 0:
        return ""
    # The longest word is probably the most specific.
    start = max(0, low.find(max(words, key=len).lower()) - EXCERPT // 4)
    end = start + EXCERPT
    return ("…" * (start > 0)) + text[start:end].strip() + ("…" * (end < len(text)))
