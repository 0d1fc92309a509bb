from dataclasses import dataclass
from typing import ClassVar

from agents.events.event import Event


@dataclass(frozen=True, kw_only=True)
class WordMissed(Event):
    """The agent looked up a word that the glossary does not contain."""

    type: ClassVar[str] = "glossary.word_missed"

    word: str
    """The word as the agent wrote it."""


EVENTS = [WordMissed]
