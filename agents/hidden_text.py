"""Characters that are invisible, or displayed at another position.

Pages and terminals show them as code points in texts of agents, tools and people. The browser's
copy of the pattern is in static/agents/web/text.js; a test compares them.
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
    """Replace invisible characters with code points, as in ⟨U+202E⟩."""
    # A table, because a function would be called for each of up to a million characters.
    return text.translate(_SHOWN) if _HIDDEN.search(text) else text


def one_line(text: str, width: int) -> str:
    """Return `visible(text)` as one line of at most `width` characters, safe for headers."""
    return cut_text(" ".join(visible(text).split()), width)


def cut_text(text: str, width: int) -> str:
    """Return the start of `text`: at most `width` characters, including an ellipsis."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def escaped_json(json_text: str) -> str:
    """Return equivalent JSON text with hidden characters as escapes, for editing.

    Hidden characters occur only within strings, where escapes are equivalent.
    """
    return _HIDDEN.sub(lambda found: _escape(ord(found[0])), json_text)


def _escape(code: int) -> str:
    units = chr(code).encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


_ESCAPED = re.compile(r"\\u\{([0-9a-fA-F]{1,6})\}")


def escaped_text(text: str) -> str:
    r"""Return `text` for editing, with hidden characters as `\u{202e}`; see `unescaped_text`.

    In text that already looks like such an escape, the backslash is escaped.
    """
    text = _ESCAPED.sub(lambda found: r"\u{5c}" + found[0][1:], text)
    return _HIDDEN.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)


def unescaped_text(typed: str) -> str:
    r"""Return `typed` with each `\u{…}` replaced by its character. Invalid code points remain."""

    def character(found: re.Match[str]) -> str:
        code = int(found[1], 16)
        return chr(code) if code <= 0x10FFFF else found[0]

    return _ESCAPED.sub(character, typed)
