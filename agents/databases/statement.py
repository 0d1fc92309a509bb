"""Whether a statement looks like one that writes.

Only convenience hangs on this. What looks like reading meets a database that can only be read, and
what looks like writing is tried, shown, and waits for a person.
"""

from __future__ import annotations

import re

_SKIPPED = re.compile(
    r"""
    '(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*` | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$
    | --[^\n]* | /\*.*?\*/
    """,
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(r"[a-z_]+|\(", re.IGNORECASE)
_WRITES = frozenset({"insert", "update", "delete", "merge", "replace"})


def looks_like_writing(query: str) -> bool:
    """Its first word is INSERT, UPDATE, DELETE, MERGE or REPLACE; or it is WITH and has one."""
    words = [word.lower() for word in _WORD.findall(_SKIPPED.sub(" ", query))]
    words = [word for word in words if word != "("] if words[:1] == ["("] else words
    if not words:
        return False
    if words[0] != "with":
        return words[0] in _WRITES
    # Behind a parenthesis, a closing one or AS: `replace(x)` and `FOR UPDATE` are none.
    return any(
        word in _WRITES and words[number - 1] != "for" and words[number + 1 : number + 2] != ["("]
        for number, word in enumerate(words)
        if number
    )
