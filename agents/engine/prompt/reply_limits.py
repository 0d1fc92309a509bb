"""Limits of a reply from any server: the last check before it is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.providers.base import Block, PartDelta, PartStarted, ProviderError, Reply
from agents.structured_output.levels import MOST_LEVELS, nests_too_deep

MOST_BYTES = 4_000_000
"""The limit of one reply in UTF-8, including thoughts and tool inputs. The longest have about a
million."""
MOST_VALUES = 60_000
"""The limit of fields and items in the inputs of one reply. Each takes a hundred bytes of memory,
and again in each copy; no model's longest reply can contain this number."""
MOST_PARTS = 1_000
"""The limit of texts, thoughts and calls."""
MOST_TOKENS = 1_000_000_000
LONGEST_WORD = 200
"""The limit of the model's name in its row."""
LONGEST_REASON = 50


@dataclass(slots=True)
class ReplyLimits:
    """Counts streamed events. Raises `ProviderError`, after which there is no other attempt."""

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
    """Raise `ProviderError` for invalid token counts, and for names that do not fit into rows.

    A negative count would reduce the use that others have caused.
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
    """Return the number of fields and items in the inputs of calls, or a number above the limit."""
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
