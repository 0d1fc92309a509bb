"""Text from untrusted sources, made safe for a terminal.

An escape sequence in a file could otherwise change the text of an approval request, set the
window's title or fill the clipboard.
"""

from __future__ import annotations

import re
import sys
from typing import TextIO

_CONTROL = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional control characters
    "\u2028\u2029\ufeff\u00ad\u200b\u2060-\u2065\u206a-\u206f"  # invisible
    "\ufff9-\ufffb"
    "\U000e0000-\U000e0fff"  # tags, which only models read
    "\ud800-\udfff"  # lone surrogates, which terminals cannot print
    "]"
)


def visible(text: str) -> str:
    """Replace each control and invisible character with its code point.

    ESC becomes ``\\x1b``. Tabs and line feeds stay; CR LF is a line feed.
    """
    return _CONTROL.sub(_code_point, text.replace("\r\n", "\n"))


def one_line(text: str, width: int = 100) -> str:
    """Return the start of `text` as one safe line of at most `width` characters."""
    line = " ".join(visible(text[: width * 8]).split())
    cut = len(line) > width or len(text) > width * 8
    return line[: width - 1] + "…" if cut else line


def _code_point(match: re.Match[str]) -> str:
    number = ord(match.group())
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def use_tolerant_streams() -> None:
    """Print escapes for characters that the encoding of the output lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIO) or hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
