"""Find characters that are invisible or that imitate other characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from text_scanner.confusables import LOOKALIKES
from text_scanner.finding import Hit
from text_scanner.linear import compile_linear

MAX_HITS = 500

_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_SELECTORS = re.compile("[\ufe00-\ufe0e]{2,}|[\U000e0100-\U000e01ef]{2,}")
INVISIBLE_CLASS = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
    "\ufe00-\ufe0f\U000e0100-\U000e01ef\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f"
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f"
)
INVISIBLE = re.compile(f"[{INVISIBLE_CLASS}]+")
_ZERO_WIDTH = re.compile(
    "[\u034f\u115f\u1160\u180e\u200b-\u200f\u2060-\u2064\u206a-\u206f\u3164\ufeff\uffa0]+"
)
_RTL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LOOKALIKE = re.compile(f"[{''.join(LOOKALIKES)}]")
_MAX_WORD = 64


# A cheap first check, because an ordinary text has none of these characters.
_ANY = compile_linear(f"[{INVISIBLE_CLASS}{''.join(LOOKALIKES)}]".encode())


def character_hits(content: str) -> Iterator[Hit]:
    """Yield hidden and disguised characters in `content`, at most MAX_HITS of each kind."""
    if content.isascii() or not _ANY.search(content.encode("utf-8", "replace")):
        return
    rtl = _RTL.search(content) is not None
    for found in _limited(_TAGS, content):
        before = content[found.start() - 1 : found.start()]
        # 🏴 + tags + end tag: the flags of England, Scotland and Wales.
        if not (before == "\U0001f3f4" and found[0].endswith("\U000e007f") and len(found[0]) <= 8):
            yield _hit(found, "tag-characters", "Invisible tag characters hide text", "danger")
    for found in _limited(_BIDI, content):
        override = found[0] in "\u202d\u202e"
        if override or not rtl:
            yield _hit(
                found,
                "bidi-control",
                "Changes the direction of writing: the visible order differs from the stored order",
                "danger" if override else "warning",
            )
    for found in _limited(_SELECTORS, content):
        yield _hit(found, "variation-selectors", "Variation selectors can hide data", "danger")
    for found in _limited(_ZERO_WIDTH, content):
        hit = _zero_width(content, found, rtl=rtl)
        if hit is not None:
            yield hit
    yield from _mixed_scripts(content)


def _limited(pattern: re.Pattern[str], content: str) -> Iterator[re.Match[str]]:
    for count, found in enumerate(pattern.finditer(content)):
        if count >= MAX_HITS:
            return
        yield found


def _hit(found: re.Match[str], pattern: str, description: str, severity: str) -> Hit:
    return Hit(pattern, description, severity, found.start(), found.end())  # type: ignore[arg-type]


def _zero_width(content: str, found: re.Match[str], *, rtl: bool) -> Hit | None:
    start, end = found.span()
    before = content[start - 1] if start else ""
    after = content[end] if end < len(content) else ""
    run = found[0]
    if start == 0 and run == "\ufeff":
        return None
    if len(run) <= 2 and (_needs_joiners(before) or _needs_joiners(after)):
        return None
    if rtl and set(run) <= {"\u200e", "\u200f"}:
        return None
    if len(run) >= 4:
        return _hit(found, "zero-width", "A run of invisible characters can hide data", "danger")
    if _latin(before) and _latin(after):
        return _hit(found, "zero-width", "Invisible characters within a word", "warning")
    return _hit(found, "zero-width", "Invisible characters", "note")


def _needs_joiners(character: str) -> bool:
    """Return whether scripts or emoji normally use zero-width characters next to `character`."""
    if not character:
        return False
    code = ord(character)
    if 0x590 <= code < 0x10A0 or 0x1780 <= code < 0x1800 or 0x1A00 <= code < 0x1B80:
        return True
    if 0x3000 <= code < 0xA000 or 0xA800 <= code < 0xAC00 or 0xFB1D <= code <= 0xFEFC:
        return True
    return code >= 0x1F000 or 0x2190 <= code < 0x2C00 or code == 0xFE0F or 0xAC00 <= code < 0xD7B0


def _latin(character: str) -> bool:
    return bool(character) and character.isalpha() and ord(character) < 0x530


def _mixed_scripts(content: str) -> Iterator[Hit]:
    count = reached = 0
    for found in _LOOKALIKE.finditer(content):
        start = end = found.start()
        if start < reached:
            continue
        while (
            start > reached and found.start() - start < _MAX_WORD and content[start - 1].isalpha()
        ):
            start -= 1
        while end < len(content) and end - start < _MAX_WORD and content[end].isalpha():
            end += 1
        reached = max(end, found.end())
        if disguised(content[start:end]):
            yield Hit(
                "mixed-scripts",
                "Letters of another script imitate Latin letters",
                "warning",
                start,
                end,
            )
            count += 1
            if count >= MAX_HITS:
                return


def disguised(word: str) -> bool:
    """Return whether a Latin word contains imitations from another script, such as pаypal."""
    latin = sum(1 for character in word if "a" <= character.lower() <= "z")
    others = [c for c in word if ord(c) >= 0x370 and c.isalpha()]
    if latin < 2 or not others or any(c not in LOOKALIKES for c in others):
        return False
    # "APIа": an acronym with a Russian ending.
    head = word.rstrip("".join(set(others)))
    if head.isascii() and head.isupper() and len(word) - len(head) <= 3:
        return False
    if _is_symbol(word, others):
        return False
    return all(_script(c) in ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "LATIN") for c in others)


_SYMBOLS = frozenset("αβγεηικνρτυχω")
"""Greek letters that occur as symbols in formulas and names of substances.

The other Greek letters in LOOKALIKES never count as symbols.
"""
_SHORT_INDEX = 3


def _is_symbol(word: str, others: list[str]) -> bool:
    """Return whether the only foreign letter is a Greek symbol, as in γfit, TNFα and FcγRIIIa.

    A symbol stands between capitals, at the end of an acronym, or at the start of a word before a
    short index.
    """
    if len(others) != 1 or others[0] not in _SYMBOLS:
        return False
    before, _, after = word.partition(others[0])
    if not before:
        return len(after) <= _SHORT_INDEX or after[0].isupper()
    if not after:
        return before[-1].isupper()
    return after[0].isupper() and any(letter.isupper() for letter in before)


def _script(character: str) -> str:
    return unicodedata.name(character, "").split(" ")[0]
