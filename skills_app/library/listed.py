"""Lists in one string: with commas, with spaces, with parentheses around both."""

from __future__ import annotations

import re

_SEPARATORS = re.compile(r"[,\s]")


def split_commas(text: str) -> list[str]:
    """Split phrases at commas and line ends."""
    return [part.strip() for part in re.split(r"[,\n]", text) if part.strip()]


def split_words(text: str) -> list[str]:
    """Split names at commas and white space."""
    return [part for part in re.split(r"[,\s]+", text) if part]


def split_tools(text: str) -> list[str] | None:
    """Split patterns of tools such as `Read, Bash(git add:*)`.

    Splits at commas and white space outside of parentheses. Returns None for an unmatched
    parenthesis.
    """
    items: list[str] = []
    begin = depth = 0
    for at, character in enumerate(text + " "):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if depth < 0:
                return None
        elif depth == 0 and _SEPARATORS.match(character):
            items.append(text[begin:at])
            begin = at + 1
    return None if depth else [item for item in items if item]
