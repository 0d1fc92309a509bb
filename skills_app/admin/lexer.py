"""Highlight a source text in a separate program with a time limit.

Lexers are regular expressions, and an author of a skill may know a text on which one takes hours.
Therefore, `skills_app.admin.code` runs this file in a process with limits, not in that of the
pages. It imports Pygments and nothing of Vel. Standard input is the lexer's name, a line feed, and
the text in UTF-8. Standard output is a JSON list of [number of characters, class], which cover the
whole text.
"""

from __future__ import annotations

import json
import resource
import sys

from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES

MEMORY_BYTES = 1_000_000_000
# These options prevent lexers from starting other lexers that the text names.
_OPTIONS: dict[str, dict[str, bool]] = {"markdown": {"handlecodeblocks": False}}


def spans(name: str, text: str) -> list[tuple[int, str]]:
    """Return (length, class) of each part of `text`, in order. The class may be ""."""
    lexer = get_lexer_by_name(name, **_OPTIONS.get(name, {}))
    found: list[tuple[int, str]] = []
    at = 0
    for start, kind, value in lexer.get_tokens_unprocessed(text):
        if start != at:
            raise ValueError("the lexer left something out")
        at += len(value)
        while kind not in STANDARD_TYPES:
            kind = kind.parent
        css = STANDARD_TYPES[kind]
        if found and found[-1][1] == css:
            found[-1] = (found[-1][0] + len(value), css)
        elif value:
            found.append((len(value), css))
    if at != len(text):
        raise ValueError("the lexer left something out")
    return found


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lexer_name, _, source = sys.stdin.buffer.read().decode().partition("\n")
    json.dump(spans(lexer_name, source), sys.stdout)
