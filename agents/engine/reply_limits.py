"""What a reply may be, whatever server it came from: the last look before it is believed."""

from __future__ import annotations

from dataclasses import dataclass

from agents.providers.base import PartDelta, PartStarted, ProviderError, Reply

MOST_CHARACTERS = 4_000_000
"""Of one reply, its thoughts and inputs of tools included. The longest have about a million."""
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
    characters: int = 0

    def count(self, event: PartStarted | PartDelta) -> None:
        if isinstance(event, PartStarted):
            self.parts += 1
        else:
            self.characters += len(event.text)
        if self.parts > MOST_PARTS:
            raise _unusable(f"it has over {MOST_PARTS:,} parts")
        if self.characters > MOST_CHARACTERS:
            raise _unusable(f"it has over {MOST_CHARACTERS:,} characters")


def check_reply(reply: Reply) -> None:
    """Raises `ProviderError` for figures that are no counts, and for words that no row takes.

    A negative count would give a budget back what others have used.
    """
    usage = reply.usage
    figures = (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning)
    if not all(type(figure) is int and 0 <= figure <= MOST_TOKENS for figure in figures):
        raise _unusable("its figures of tokens are no counts")
    if len(reply.blocks) > MOST_PARTS:
        raise _unusable(f"it has over {MOST_PARTS:,} parts")
    for word, longest in ((reply.model, LONGEST_WORD), (reply.stop_reason, LONGEST_REASON)):
        if not isinstance(word, str) or len(word) > longest or not word.isprintable():
            raise _unusable("its model or the reason why it stops is no name")


def _unusable(reason: str) -> ProviderError:
    return ProviderError(f"The model's reply cannot be used: {reason}.", code="malformed_stream")
