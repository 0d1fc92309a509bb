"""Split a folded text into the word pieces of BERT, without a library."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path

VOCABULARY = Path(__file__).with_name("wordpieces.txt")
_IDEOGRAPH = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_IDEOGRAPH}]|[^\W_{_IDEOGRAPH}]+|[^\w\s]|_")
_LONGEST = 100
"""Words with more letters count as unknown."""
_START = "[CLS]"
_END = "[SEP]"
_UNKNOWN = "[UNK]"


def pieces_of(text: str, most: int) -> list[int]:
    """Return the numbers of the first `most` word pieces of `text`, which is in lower case.

    The first piece is the mark of the start. The last is the mark of the end, unless the text is
    cut.
    """
    numbers = _vocabulary()
    if not text.isascii():
        parts = unicodedata.normalize("NFD", text)
        text = "".join(part for part in parts if unicodedata.category(part) != "Mn")
    found = [numbers[_START]]
    for word in _WORD.findall(text):
        found += _split(word)
        if len(found) >= most:
            break
    found.append(numbers[_END])
    return found[:most]


def _split(word: str) -> list[int]:
    """Return the numbers of a word's pieces: the longest known start, then that of the rest."""
    numbers = _vocabulary()
    unknown = [numbers[_UNKNOWN]]
    if len(word) > _LONGEST:
        return unknown
    found: list[int] = []
    start = 0
    while start < len(word):
        mark = "##" if start else ""
        for end in range(len(word), start, -1):
            number = numbers.get(mark + word[start:end])
            if number is not None:
                break
        else:
            return unknown
        found.append(number)
        start = end
    return found


@cache
def _vocabulary() -> dict[str, int]:
    lines = VOCABULARY.read_text(encoding="utf-8").split("\n")
    return {piece: number for number, piece in enumerate(lines) if piece}
