"""Detect names that people cannot distinguish: such names have the same skeleton."""

from __future__ import annotations

import unicodedata

from sandbox.backends.normal_form import normal_form
from text_scanner.confusables import TABLE

_ASCII = {"0": "o", "1": "l", "rn": "m", "vv": "w"}


def skeleton(name: str) -> str:
    """Return `name` with each letter replaced by the plainest letter that looks like it."""
    apart = normal_form("NFKD", name.casefold())
    plain = "".join(letter for letter in apart if unicodedata.category(letter)[0] != "M")
    folded = plain.translate(TABLE)
    for seen, meant in _ASCII.items():
        folded = folded.replace(seen, meant)
    return folded
