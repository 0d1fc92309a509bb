"""Split a text into sentences of known words, each with its word classes and its negation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from text_scanner.addresses import addresses
from text_scanner.concepts import C
from text_scanner.lexicon import lexicon

NEG = int(C.NEG)
NEG_AFTER = int(C.NEG_AFTER)
_ADDRESS = int(C.URL)
_SHADY = int(C.SHADY)
MAX_WORDS = 40
_OVERLAP = 12
_MAX_GAP = 260
_NEGATION_REACH = 70
_BACKWARD_REACH = 32

# Matches the text between two known words if a sentence ends there. A line break alone is no end.
_BOUNDARY = re.compile(
    r"[.!?;]['\")\]*_`]{0,3}\s|[。！？]|\n[ \t]*\n|\n[ \t]*(?:[-*+•#>|]|\d{1,3}[.)])[ \t]"
    r"|<!--|-->|\n[ \t]*[\[<]"
)
_BREAK = re.compile(r"[;:(—]|,? (?:but|just|simply|instead|sondern|mais|pero|ma|mas)\b|\n\n|。")
_COMMA = re.compile("[,、，]")
_LIST = re.compile(r" (?:or|nor|oder|ou|o|of|ni|y|e|et|und|and) ")


@dataclass(slots=True, eq=False)
class Word:
    """A word of the lexicon in a text.

    The offsets count characters of the view. `classes` are bits of `concepts.C`. `denied` is True
    if a negation, such as `never`, covers the word.
    """

    start: int
    end: int
    classes: int
    denied: bool = False


def sentences(text: str, *, joined: bool = False) -> Iterator[list[Word]]:
    """Yield the known words of each sentence of `text`.

    A sentence with more than MAX_WORDS known words is yielded in parts, which overlap. Sentences
    without known words are omitted.

    Args:
        text: A folded text (see `text.fold`).
        joined: Whether the text has no spaces between its words.
    """
    sentence: list[Word] = []
    for word in _words(text, joined=joined):
        if sentence:
            last = sentence[-1].end
            if word.start - last > _MAX_GAP or (
                word.start > last and _BOUNDARY.search(text, last, word.start)
            ):
                yield _negated(text, sentence)
                sentence = []
            elif len(sentence) >= MAX_WORDS:
                yield _negated(text, sentence)
                sentence = sentence[-_OVERLAP:]
        sentence.append(word)
    if sentence:
        yield _negated(text, sentence)


def _words(text: str, *, joined: bool) -> Iterator[Word]:
    data = text.encode("utf-8", "replace")
    ascii_only = len(data) == len(text)
    found = list(lexicon().joined(data) if joined else lexicon().words(data, ascii_only=ascii_only))
    found += addresses(data)
    found.sort(key=lambda span: (span[0], -span[1]))
    at_byte = at_character = reached = 0
    previous: Word | None = None
    for start, end, classes in found:
        if start < reached:
            # Skip words inside an address or a longer word: Latin and other matches may not
            # overlap.
            continue
        reached = end
        if classes & _ADDRESS and not classes & _SHADY and data[max(0, start - 2) : start] == b"](":
            # Skip the target of a link in prose: readers go there, data does not.
            continue
        if ascii_only:
            previous = Word(start, end, classes)
        else:
            first = at_character + len(data[at_byte:start].decode("utf-8", "replace"))
            last = first + len(data[start:end].decode("utf-8", "replace"))
            at_byte, at_character = end, last
            previous = Word(first, last, classes)
        yield previous


def _negated(text: str, words: list[Word]) -> list[Word]:
    """Mark the words that a negation (`never`, `without`) covers, up to the end of its clause."""
    for index, word in enumerate(words):
        if not word.classes & NEG:
            continue
        for later in words[index + 1 : index + 9]:
            gap = text[word.end : later.start]
            if len(gap) > _NEGATION_REACH or _BREAK.search(gap):
                break
            comma = max(gap.find(","), gap.find("、"), gap.find("，"))
            if comma >= 0 and not _LIST.search(gap[comma:] + text[later.start : later.end + 40]):
                break
            later.denied = True
        if word.classes & NEG_AFTER:
            for earlier in reversed(words[:index]):
                gap = text[earlier.end : word.start]
                if len(gap) > _BACKWARD_REACH or _COMMA.search(gap) or _BREAK.search(gap):
                    break
                earlier.denied = True
    return words
