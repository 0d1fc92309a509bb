"""Characters that a reader does not see, or sees elsewhere than they stand.

Whatever an agent, a tool or a person wrote is shown with these as code points, in pages and in
terminals. The browser's copy of the pattern is in static/agents/web/text.js; a test compares them.
"""

from __future__ import annotations

import re

from sandbox.hidden import HIDDEN, HIDDEN_RANGES

__all__ = [
    "HIDDEN_RANGES",
    "cut_text",
    "escaped_json",
    "escaped_text",
    "one_line",
    "unescaped_text",
    "visible",
]

_HIDDEN = re.compile(f"[{HIDDEN}]")
_SHOWN = {
    code: f"⟨U+{code:04X}⟩" for first, last in HIDDEN_RANGES for code in range(first, last + 1)
}


def visible(text: str) -> str:
    """`text` with what cannot be seen written as code points, as in ⟨U+202E⟩."""
    # A table, because a function would be called for each of perhaps a million characters.
    return text.translate(_SHOWN) if _HIDDEN.search(text) else text


def one_line(text: str, width: int) -> str:
    """`visible(text)` as one line of at most `width` characters, which no header can break."""
    return cut_text(" ".join(visible(text).split()), width)


def cut_text(text: str, width: int) -> str:
    """The beginning of `text`: at most `width` characters, an ellipsis included."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def escaped_json(json_text: str) -> str:
    """JSON text that means the same, with hidden characters as escapes, for editing.

    They can only stand within strings, where an escape means the character.
    """
    return _HIDDEN.sub(lambda found: _escape(ord(found[0])), json_text)


def _escape(code: int) -> str:
    units = chr(code).encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


_ESCAPED = re.compile(r"\\u\{([0-9a-fA-F]{1,6})\}")


def escaped_text(text: str) -> str:
    r"""`text` for editing, with hidden characters as `\u{202e}`. `unescaped_text` undoes it.

    What looks like such an escape already gets one for its backslash.
    """
    text = _ESCAPED.sub(lambda found: r"\u{5c}" + found[0][1:], text)
    return _HIDDEN.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)


def unescaped_text(typed: str) -> str:
    r"""What was meant by `typed`: each `\u{…}` as its character, where there is such a one."""

    def character(found: re.Match[str]) -> str:
        code = int(found[1], 16)
        return chr(code) if code <= 0x10FFFF else found[0]

    return _ESCAPED.sub(character, typed)
