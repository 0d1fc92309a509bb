"""Replace text in a file for an agent."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sandbox.errors import InvalidRequest

_ADVISED = 200_000
"""The maximum length in characters for a comparison without white space, which needs memory."""
_NUMBERED = re.compile(r"^ {0,6}\d{1,9} \| ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Edit:
    text: str
    replacements: int
    lines_changed: int
    """The number of lines that the replacements touched: the larger of before and after."""


def replace_text(text: str, old: str, new: str, *, replace_all: bool, max_length: int) -> Edit:
    """Replace `old` in `text` with `new`: the only occurrence, or all with `replace_all`.

    Line breaks in `old` and `new` are adapted to the file: a file that uses CRLF keeps it, although
    read_file does not show it. Raises InvalidRequest if `old` is empty, missing or ambiguous, if
    nothing would change, or if the result would be longer than `max_length`.
    """
    if not old:
        raise InvalidRequest("old_text is empty. Give the text to replace, or use write_file.")
    if old == new:
        raise InvalidRequest("old_text and new_text are the same: nothing would change.")
    if old not in text or _uses_crlf_only(text):
        old, new = _matching_line_breaks(text, old, new)
    if old == new:
        raise InvalidRequest("old_text and new_text differ only in line breaks, which are kept.")
    count = text.count(old)
    if count == 0:
        raise InvalidRequest(f"old_text not found in the file. {_advice(text, old)}")
    if len(text) + count * (len(new) - len(old)) > max_length:
        raise InvalidRequest(
            f"the file would be larger than {max_length} characters. Replace fewer places."
        )
    if not replace_all:
        first = text.find(old)
        # Overlapping occurrences count as well: "aa" in "aaa" is ambiguous.
        if text.find(old, first + 1) != -1:
            raise InvalidRequest(
                f"old_text appears {max(count, 2)} times. Add surrounding lines until it is "
                "unique, or pass replace_all=true to replace every one."
            )
        count = 1
    lines = max(_line_count(old), _line_count(new)) * count
    return Edit(text.replace(old, new, -1 if replace_all else 1), count, lines)


def _uses_crlf_only(text: str) -> bool:
    breaks = text.count("\r\n")
    return breaks > 0 and breaks == text.count("\n")


def _matching_line_breaks(text: str, old: str, new: str) -> tuple[str, str]:
    """Return `old` and `new` with the file's own line breaks, if they match better."""
    if len(old) > 2 * len(text):
        return old, new  # with other line breaks, `old` is longer than the file
    crlf_old = _with_crlf(old)
    if _uses_crlf_only(text) or crlf_old in text:
        return crlf_old, _with_crlf(new)
    plain = old.replace("\r\n", "\n")
    if plain in text:
        return plain, new.replace("\r\n", "\n")
    return old, new


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _line_count(text: str) -> int:
    return text.rstrip("\n").count("\n") + 1


def _advice(text: str, old: str) -> str:
    if _NUMBERED.search(old):
        return "It seems to contain line numbers of read_file: leave them out."
    if len(old) <= _ADVISED and " ".join(old.split()) in " ".join(text.split()):
        return "It differs from the file only in white space: copy the indentation exactly."
    return "Read the file again and copy the text exactly."
