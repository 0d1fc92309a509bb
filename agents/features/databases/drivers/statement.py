"""Whether a statement looks like one that writes.

Only convenience hangs on this. What looks like reading meets a database that can only be read, and
what looks like writing is tried, shown, and waits for a person.
"""

from __future__ import annotations

import re
from itertools import chain

# Possessive, and unclosed parts reach to the end: an agent can write a million of them.
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


def looks_like_writing(query: str) -> bool:
    """Its first word is INSERT, UPDATE, DELETE, MERGE or REPLACE; or it is WITH and has one."""
    words = (found["word"].lower() for found in _TOKEN.finditer(query) if found["word"])
    first = next(words, "")
    if first == "(":
        words = (word for word in words if word != "(")
        first = next(words, "")
    if first != "with":
        return first in _WRITES
    # Behind a parenthesis, a closing one or AS: `replace(x)` and `FOR UPDATE` are none.
    before, word = first, next(words, "")
    for after in chain(words, ("",)):
        if word in _WRITES and before != "for" and after != "(":
            return True
        before, word = word, after
    return False
