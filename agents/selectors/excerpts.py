"""Excerpts of the messages that a search for words has found."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Window
from django.db.models.functions import RowNumber

from agents.events.append import dump
from agents.events.read import ROWS_AT_ONCE
from agents.models import Message

BEFORE = 60
"""Characters before the first of the words."""
CHARACTERS = 200
MESSAGES_A_RUN = 3
"""A match can be in the JSON of a message only, so some messages of each run are examined."""
READ_CHARACTERS = 5_000_000
"""The limit for all messages of a page. The other runs have no excerpt."""

_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an excerpt. It has not been escaped, and can have hidden characters."""

    text: str
    is_found: bool


def excerpts_of(run_ids: Collection[str], words: str) -> dict[str, list[Part]]:
    """Return an excerpt of each run in which a text of a message contains `words`.

    Only of messages of people and replies of models. Other runs are missing. Takes
    two queries, which examine no other messages than the search for these runs.
    """
    if not words or not run_ids:
        return {}
    fitting = Message.objects.filter(
        run__in=run_ids, position=0, content__icontains=dump(words)[1:-1]
    )
    place = Window(RowNumber(), partition_by=F("run_id"), order_by=F("turn").asc())
    first = fitting.annotate(place=place).filter(place__lte=MESSAGES_A_RUN).order_by()
    # A message may have a megabyte: sort only the keys.
    rows = Message.objects.filter(pk__in=list(first.values_list("pk", flat=True)))
    contents = rows.order_by("run_id", "turn").values_list("run_id", "content")
    pattern = re.compile(re.escape(words), re.IGNORECASE)
    found: dict[str, list[Part]] = {}
    read = 0
    for run_id, content in contents.iterator(chunk_size=ROWS_AT_ONCE):
        read += len(content)
        if run_id not in found and (excerpt := _excerpt_of(content, pattern)):
            found[run_id] = excerpt
        if read > READ_CHARACTERS:
            break
    return found


def _excerpt_of(content: str, pattern: re.Pattern[str]) -> list[Part]:
    for text in _texts(Message(content=content).blocks):
        if match := pattern.search(text):
            return list(_parts(text, match.start(), pattern))
    return []


def _texts(blocks: list[dict[str, Any]]) -> Iterator[str]:
    for block in blocks:
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            yield block["text"]


def _parts(text: str, at: int, pattern: re.Pattern[str]) -> Iterator[Part]:
    """Yield the text around `at`, with a separate part for each match."""
    start = max(0, at - BEFORE)
    end = max(start + CHARACTERS, at + 1)
    cut = text[start:end]
    yield from _plain(("…" if start else "") + cut[: at - start])
    done = at - start
    for match in pattern.finditer(cut, done):
        yield from _plain(cut[done : match.start()])
        yield Part(_SPACE.sub(" ", match[0]), is_found=True)
        done = match.end()
    rest = cut[done:]
    if done == at - start:  # the words are longer than the excerpt
        yield Part(_SPACE.sub(" ", rest), is_found=True)
        rest = ""
    yield from _plain(rest + ("…" if end < len(text) else ""))


def _plain(text: str) -> Iterator[Part]:
    if text:
        yield Part(_SPACE.sub(" ", text), is_found=False)
