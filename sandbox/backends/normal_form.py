"""Unicode normalisation in linear time, for any text.

`unicodedata` sorts the combining marks on a letter in quadratic time: hours for a megabyte of
marks. No script uses more than `MOST_MARKS` on a letter (UAX #15, stream-safe text), so further
marks are omitted.
"""

from __future__ import annotations

import unicodedata
from typing import Literal

from sandbox.backends.patterns import LatePattern

MOST_MARKS = 30

_TOO_MANY = LatePattern(rf"(\pM{{{MOST_MARKS}}})\pM+")


def normal_form(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return `text` in a normal form, with at most `MOST_MARKS` combining marks in a row."""
    return text if text.isascii() else unicodedata.normalize(form, _with_fewer_marks(text))


def _with_fewer_marks(text: str) -> str:
    if len(text) <= MOST_MARKS:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if _TOO_MANY.search(data) is None:
        return text
    shorter: bytes = _TOO_MANY.sub(rb"\1", data)
    return shorter.decode("utf-8", "surrogatepass")
