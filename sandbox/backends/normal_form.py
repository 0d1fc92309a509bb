"""Unicode's normal forms in linear time, for any text.

The marks on one letter are sorted by their class. `unicodedata` does this in quadratic time: hours
for a megabyte of marks. No script uses more than `MOST_MARKS` on a letter (UAX #15, stream-safe
text), so further marks are left out.
"""

from __future__ import annotations

import unicodedata
from typing import Literal

from sandbox.backends.patterns import LatePattern

MOST_MARKS = 30

_TOO_MANY = LatePattern(rf"(\pM{{{MOST_MARKS}}})\pM+")


def normal_form(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return `text` in the normal form, with at most `MOST_MARKS` marks in a row."""
    return text if text.isascii() else unicodedata.normalize(form, _with_fewer_marks(text))


def _with_fewer_marks(text: str) -> str:
    if len(text) <= MOST_MARKS:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if _TOO_MANY.search(data) is None:
        return text
    shorter: bytes = _TOO_MANY.sub(rb"\1", data)
    return shorter.decode("utf-8", "surrogatepass")
