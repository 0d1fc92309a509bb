"""Match triggers: phrases of a skill's author that suggest the skill if a message has them.

`*` in a trigger matches any text. Triggers are not regular expressions, so the time is linear in
the message for any trigger.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from skills_app.library.search.tokens import STOP, fold, stem, stems

MAX_MESSAGE = 10_000
"""The number of characters of a message that are examined."""
MAX_TRIGGER = 200
"""A trigger with more characters is not a phrase and matches nothing."""
LEAST_PART = 3
"""The number of UTF-8 bytes that one part between stars needs. Other triggers match nothing."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message, prepared for the comparison with many triggers."""

    text: str
    stems: str

    @classmethod
    def of(cls, text: str) -> Message:
        beginning = text[:MAX_MESSAGE]
        return cls(fold(beginning), _joined(stems(beginning)))


def matching(triggers: Iterable[str], message: Message) -> str | None:
    """Return the first of `triggers` that occurs in `message`, None if there is none."""
    return next((trigger for trigger in triggers if matches(trigger, message)), None)


def matches(trigger: str, message: Message) -> bool:
    """Return whether `trigger` occurs in `message`, regardless of case and accents.

    Without `*`, the words of the trigger must follow each other in any inflection ("query" in
    "queries"), or the exact phrase must occur between word borders. With `*`, its parts must occur
    in order, from one word border to another. A single stop word ("the") matches nothing.
    """
    if len(trigger) > MAX_TRIGGER:
        return False
    if "*" in trigger:
        parts = _parts(trigger)
        return _says_something(parts) and _parts_in_order(parts, message.text)
    phrase, words = _phrase(trigger)
    if words.strip() in STOP:
        return False
    return bool(words and words in message.stems) or _at_borders(phrase, message.text)


def _says_something(parts: tuple[str, ...]) -> bool:
    """Return whether a part is informative. `*e*` and `*the*` are not: every message has them."""
    return any(
        len(part.strip().encode()) >= LEAST_PART and stem(part.strip()) not in STOP
        for part in parts
    )


@lru_cache(maxsize=10_000)
def _phrase(trigger: str) -> tuple[str, str]:
    found = stems(trigger)
    # ".py" is more than the word in it, so it must occur unchanged.
    words = _joined(found) if found and all(c.isalnum() or c in " -_'’" for c in trigger) else ""
    return fold(trigger).strip(), words


@lru_cache(maxsize=10_000)
def _parts(trigger: str) -> tuple[str, ...]:
    return tuple(fold(trigger).strip().split("*"))


def _joined(found: list[str]) -> str:
    return f" {' '.join(found)} " if found else ""


def _parts_in_order(parts: tuple[str, ...], text: str) -> bool:
    """Return whether `parts`, the texts between stars, occur in `text` in order.

    Empty parts at the ends match everything.
    """
    if not any(part.strip() for part in parts):
        return False
    first, *middle, last = parts
    at = _find(first, text, 0, end_too=False)
    for part in middle:
        if at < 0:
            return False
        found = text.find(part, at)
        at = found + len(part) if found >= 0 else -1
    return at >= 0 and _find(last, text, at, start_too=False) >= 0


def _at_borders(phrase: str, text: str) -> bool:
    return bool(phrase) and _find(phrase, text, 0) >= 0


def _find(part: str, text: str, start: int, *, start_too: bool = True, end_too: bool = True) -> int:
    """Return the end of the first `part` between word borders from `start` on; -1 if none.

    `start_too` and `end_too` tell at which ends a word border is required.
    """
    if not part:
        return start
    at = text.find(part, start)
    while at >= 0:
        end = at + len(part)
        if not (start_too and _inside_word(text, at)) and not (end_too and _inside_word(text, end)):
            return end
        at = text.find(part, at + 1)
    return -1


def _inside_word(text: str, at: int) -> bool:
    """Return whether text[at - 1] and text[at] belong to one word."""
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()
