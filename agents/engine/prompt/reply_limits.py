"""What a reply may be, whatever server it came from: the last look before it is believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.providers.base import Block, PartDelta, PartStarted, ProviderError, Reply
from agents.structured_output.levels import MOST_LEVELS, nests_too_deep

MOST_BYTES = 4_000_000
"""Of one reply in UTF-8, its thoughts and inputs of tools included. The longest have about a
million."""
MOST_VALUES = 60_000
"""Fields and items in the inputs of one reply. Each takes a hundred bytes of memory, and again in
each copy; no model's longest reply has room for so many."""
MOST_PARTS = 1_000
"""Texts, thoughts and calls."""
MOST_TOKENS = 1_000_000_000
LONGEST_WORD = 200
"""Of the model's name, as its row has it."""
LONGEST_REASON = 50


@dataclass(slots=True)
class ReplyLimits:
    """Counts what comes. Raises `ProviderError`, which no further attempt follows."""

    parts: int = 0
    size: int = 0

    def count(self, event: PartStarted | PartDelta) -> None:
        if isinstance(event, PartStarted):
            self.parts += 1
        else:
            self.size += len(event.text.encode("utf-8", "replace"))
        if self.parts > MOST_PARTS:
            raise _unusable(f"it has over {MOST_PARTS:,} parts")
        if self.size > MOST_BYTES:
            raise _unusable(f"it has over {MOST_BYTES:,} bytes")


def check_reply(reply: Reply) -> None:
    """Raises `ProviderError` for figures that are no counts, and for words that no row takes.

    A negative count would give a limit back what others have used.
    """
    usage = reply.usage
    figures = (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning)
    if not all(type(figure) is int and 0 <= figure <= MOST_TOKENS for figure in figures):
        raise _unusable("its figures of tokens are no counts")
    if len(reply.blocks) > MOST_PARTS:
        raise _unusable(f"it has over {MOST_PARTS:,} parts")
    if _values(reply.blocks) > MOST_VALUES:
        raise _unusable(f"the inputs of its calls have over {MOST_VALUES:,} fields and items")
    if any(nests_too_deep(block.get("input")) for block in reply.blocks):
        raise _unusable(f"the input of a call nests deeper than {MOST_LEVELS} levels")
    for word, longest in ((reply.model, LONGEST_WORD), (reply.stop_reason, LONGEST_REASON)):
        if not isinstance(word, str) or len(word) > longest or not word.isprintable():
            raise _unusable("its model or the reason why it stops is no name")


def _values(blocks: Sequence[Block]) -> int:
    """Fields and items in the inputs of calls, or a number above the limit."""
    count = 0
    todo: list[object] = [block.get("input") for block in blocks]
    while todo and count <= MOST_VALUES:
        value = todo.pop()
        if isinstance(value, dict | list):
            count += len(value)
            todo.extend(value.values() if isinstance(value, dict) else value)
    return count


def _unusable(reason: str) -> ProviderError:
    return ProviderError(f"The model's reply cannot be used: {reason}.", code="malformed_stream")
