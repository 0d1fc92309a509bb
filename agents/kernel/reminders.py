"""Texts that repeat facts to the model when the prompt omits earlier turns of the conversation.

A feature lists sections in its `reminders.SECTIONS`. Their texts come from rows, so that a summary
cannot change the facts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agents.kernel.features import collect


@dataclass(frozen=True, slots=True)
class ReminderSection:
    """A section of the text that replaces the omitted turns."""

    title: str
    read: Callable[[str], str]
    """Returns the text for the thread with this id, in a transaction; "" for no section."""
    share: float
    """The part of the room for the conversation that the text may use. Longer texts are cut."""


def reminder_sections() -> list[ReminderSection]:
    return [section for _, section in collect("reminders", "SECTIONS")]
