"""Characters in names that a reader does not see, or sees elsewhere than they stand."""

from __future__ import annotations

import unicodedata

_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Controls, marks of direction and of joining, halves of characters, separators of lines."""
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols without ink."""


def has_invisible(text: str) -> bool:
    """Whether a name would look like another one, or end a line. Spaces are no such thing."""
    if text.isascii():
        return not text.isprintable()
    return any(
        character in _BLANK or unicodedata.category(character) in _CATEGORIES for character in text
    )
