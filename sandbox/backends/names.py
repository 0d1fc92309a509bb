r"""File names as text in which every character is visible, and the way back to the name.

An agent chooses the names in its directories. Line breaks, escape sequences and direction marks
could forge a listing. Therefore, they are written as `\u202e`, as in JSON and in bash's $'…'.
"""

from __future__ import annotations

import re

from sandbox.hidden import HIDDEN

_UNSEEN = re.compile(f"[\t\n{HIDDEN}]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")

NOTE = (
    "unseen characters are written as \\u…: the file tools accept the path as it is written here, "
    "bash accepts it in $'…'"
)


def shown(path: str) -> str:
    r"""Return `path` with every invisible character as an escape, such as `\u202e`.

    A backslash that looks like the start of an escape becomes `\u005c`.
    """
    path = _ESCAPE.sub(lambda found: rf"\u005c{found[0][1:]}", path)
    return _UNSEEN.sub(lambda found: _escape(ord(found[0])), path)


def meant(path: str) -> str:
    """Return the path from which `shown` made `path`. Escapes of visible characters stay."""
    return _ESCAPE.sub(_character, path)


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _character(found: re.Match[str]) -> str:
    code = int(found[1] or found[2], 16)
    if code > 0x10FFFF:
        return found[0]
    character = chr(code)
    return character if character == "\\" or _UNSEEN.match(character) else found[0]
