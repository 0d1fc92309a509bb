"""Detect statements that look like writes.

A wrong result is no security problem. Statements that look like reads run in a read-only session,
and those that look like writes are tried, shown and require approval.
"""

from __future__ import annotations

import re
from itertools import chain

# Possessive, and open comments or quotes match to the end: an agent can write a million of them.
_TOKEN = re.compile(
    r"""
    '[^']*+(?:''[^']*+)*+' | "[^"]*+(?:""[^"]*+)*+" | `[^`]*+`
    | \$(?P<tag>\w*+)\$.*?(?:\$(?P=tag)\$|\Z)
    | --[^\n]*+ | /\*.*?(?:\*/|\Z)
    | (?P<word>[a-z_]++|\()
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_WRITES = frozenset({"insert", "update", "delete", "merge", "replace"})

_CHANGES = _WRITES | frozenset(
    {
        *("alter", "call", "comment", "copy", "create", "do", "drop", "grant", "import", "load"),
        *("lock", "rename", "revoke", "truncate", "vacuum"),
    }
)
_EMPTY = re.compile(r"(?:\s|;|--[^\n]*+(?:\n|\Z)|/\*(?!!).*?\*/)*+", re.DOTALL)


def is_empty(query: str) -> bool:
    """Return whether there are only comments and semicolons."""
    return _EMPTY.fullmatch(query) is not None


def word_of_change(query: str) -> str:
    """Return the first word of a statement that changes something, in capital letters.

    Return `A write` for other statements that look like writing (as WITH … INSERT), else an empty
    text.
    """
    first = next((found["word"].lower() for found in _TOKEN.finditer(query) if found["word"]), "")
    return first.upper() if first in _CHANGES else "A write" if looks_like_writing(query) else ""


def looks_like_writing(query: str) -> bool:
    """Return whether the first word is INSERT, UPDATE, DELETE, MERGE or REPLACE.

    For WITH, a later word counts.
    """
    words = (found["word"].lower() for found in _TOKEN.finditer(query) if found["word"])
    first = next(words, "")
    if first == "(":
        words = (word for word in words if word != "(")
        first = next(words, "")
    if first != "with":
        return first in _WRITES
    # Only after a parenthesis or AS, since `replace(x)` and `FOR UPDATE` do not write.
    before, word = first, next(words, "")
    for after in chain(words, ("",)):
        if word in _WRITES and before != "for" and after != "(":
            return True
        before, word = word, after
    return False
