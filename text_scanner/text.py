"""Fold each character for matching: lower case, no accents, no width and style variants.

Almost every character becomes exactly one character, so that offsets stay the same. `views.py`
handles characters that disappear (invisible ones) or become several (ligatures).
"""

from __future__ import annotations

import unicodedata

_STYLE = {"ß": "s", "æ": "e", "œ": "e", "ø": "o", "đ": "d", "ł": "l", "ı": "i", "’": "'", "‘": "'"}
_STYLE |= {"ʼ": "'", "´": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "\x00": " "}
_STYLE |= {"\u00a0": " ", "\u3000": " ", "‐": "-", "‑": "-", "–": "-", "—": "-", "−": "-"}


class _Fold(dict[int, int]):
    """A table for str.translate that computes an entry when a character first occurs."""

    def __missing__(self, code: int) -> int:
        folded = self[code] = _fold_one(code)
        return folded


def _fold_one(code: int) -> int:
    if 0xD800 <= code <= 0xDFFF:
        return 0xFFFD
    character = chr(code)
    styled = _STYLE.get(character)
    if styled is not None:
        return ord(styled)
    wide = unicodedata.normalize("NFKC", character)
    character = wide if len(wide) == 1 else character
    lower = character.lower()
    character = lower if len(lower) == 1 else character
    parts = unicodedata.normalize("NFKD", character)
    # Only Latin letters lose their accents; in other scripts the result is another letter (й, が).
    if parts and "a" <= parts[0].lower() <= "z" and len(parts) <= 3:
        return ord(parts[0].lower())
    return ord(_STYLE.get(character, character))


_TABLE = _Fold()


def fold(text: str) -> str:
    """Return `text` in lower case, without the accents of Latin letters, width and style variants.

    Quotation marks and dashes become ASCII. The result has the same length, so its offsets are
    those of `text`.
    """
    return text.lower() if text.isascii() else text.translate(_TABLE)
