"""Texts that repeat facts to the model when the earlier turns of its conversation are left out.

A feature lists sections in its `reminders.SECTIONS`. They come from rows, so that a summary cannot
change them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agents.kernel.features import collect


@dataclass(frozen=True, slots=True)
class ReminderSection:
    """A section of the text that replaces the turns."""

    title: str
    read: Callable[[str], str]
    """Return the text for the thread with this id, in a transaction. Empty: no section."""
    share: float
    """The part of the room for the conversation that the text can take. The rest is cut."""


def reminder_sections() -> list[ReminderSection]:
    return [section for _, section in collect("reminders", "SECTIONS")]
