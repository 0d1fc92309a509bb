"""One character as the matcher sees it: lower case, without accents, width and style variants.

Almost every character becomes exactly one, so that offsets stay; the few that vanish (invisible
ones) or become several (ligatures) are handled in views.py.
"""

from __future__ import annotations

import unicodedata

_STYLE = {"ß": "s", "æ": "e", "œ": "e", "ø": "o", "đ": "d", "ł": "l", "ı": "i", "’": "'", "‘": "'"}
_STYLE |= {"ʼ": "'", "´": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "\x00": " "}
_STYLE |= {"\u00a0": " ", "\u3000": " ", "‐": "-", "‑": "-", "–": "-", "—": "-", "−": "-"}


class _Fold(dict[int, int]):
    """A table for str.translate that fills itself; it never holds more than Unicode has."""

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
    # Only Latin letters lose their accents: elsewhere the mark makes another letter (й, が).
    if parts and "a" <= parts[0].lower() <= "z" and len(parts) <= 3:
        return ord(parts[0].lower())
    return ord(_STYLE.get(character, character))


_TABLE = _Fold()


def fold(text: str) -> str:
    """`text` for matching; as long as `text`, character by character."""
    return text.lower() if text.isascii() else text.translate(_TABLE)
