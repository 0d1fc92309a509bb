"""Find the words of all classes in one pass over a text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from text_scanner.concepts import C
from text_scanner.languages import FOREIGN
from text_scanner.linear import compile_linear
from text_scanner.text import fold
from text_scanner.words import WORDS

_GAP = r"[\t\n\r -/:>_`|~]+"
_NOT_WORD = re.compile(r"[^a-z0-9]+")
_KNOWN_MAX = 20_000
_WORD_MAX = 60


_MARKS = "./-~"


@dataclass(slots=True)
class _Trie:
    words: dict[str, _Trie] = field(default_factory=dict)
    ends: bool = False


class Lexicon:
    """All known words, compiled to expressions, with the classes of each word."""

    def __init__(self) -> None:
        self._exact: dict[str, int] = {}
        self._stems: dict[str, int] = {}
        self._plain: dict[str, int] = {}
        for words in (WORDS, FOREIGN):
            for concept, block in words.items():
                for entry in _entries(block):
                    self._add(" ".join(fold(entry).split()), _bits(concept, words is FOREIGN))
        self._known: dict[bytes, int] = {}
        latin = sorted({*self._exact, *(f"{stem}*" for stem in self._stems)}, key=_longest_first)
        plain = sorted(self._plain, key=_longest_first)
        plain_pattern = "|".join(re.escape(entry) for entry in plain)
        self._words: Any = compile_linear(_trie_source(_trie(latin)).encode("ascii"))
        self._others: Any = compile_linear(f"(?:{plain_pattern})".encode())
        long = [entry for entry in latin if len(entry) >= 3 and entry.rstrip("*").isalpha()]
        self._joined: Any = compile_linear(
            "|".join(re.escape(entry.rstrip("*")) for entry in long).encode("ascii")
        )

    def _add(self, entry: str, bit: int) -> None:
        if not entry:
            return
        key = _key(entry.rstrip("*"))
        if not entry.isascii():
            self._plain[entry] = self._plain.get(entry, 0) | bit
        elif entry.endswith("*"):
            self._stems[key] = self._stems.get(key, 0) | bit
        elif key:
            self._exact[key] = self._exact.get(key, 0) | bit

    def knows(self, word: str) -> bool:
        """Return whether `word` is known. It must be folded and in Latin letters."""
        return self._classes(word.encode("ascii", "replace")) != 0

    def words(self, text: bytes, *, ascii_only: bool) -> Iterator[tuple[int, int, int]]:
        """Yield (start, end, classes) of each known word in the UTF-8 `text`, in byte offsets.

        All Latin words come first, then all words in other scripts. `ascii_only` leaves out these.
        """
        for match in self._words.finditer(text):
            start, end = match.span()
            yield start, end, self._classes(text[start:end])
        if not ascii_only:
            for match in self._others.finditer(text):
                start, end = match.span()
                yield start, end, self._plain.get(text[start:end].decode(), 0)

    def joined(self, text: bytes) -> Iterator[tuple[int, int, int]]:
        """Yield the same for a text without spaces, such as `ignorepreviousrules`.

        Only Latin words with at least three letters are found.
        """
        for match in self._joined.finditer(text):
            start, end = match.span()
            yield start, end, self._classes(text[start:end])

    def _classes(self, word: bytes) -> int:
        classes = self._known.get(word)
        if classes is None:
            key = _key(word[:_WORD_MAX].decode("ascii", "replace"))
            classes = self._exact.get(key, 0)
            for size in range(len(key), 2, -1):
                classes |= self._stems.get(key[:size], 0)
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            self._known[word] = classes
        return classes


def _entries(block: str) -> Iterator[str]:
    """Yield the entries of a block of words.

    `(no|without) (asking|approval)` stands for each combination.
    """
    for entry in re.sub(r"\|\s+", "|", block).replace("\n", " ").split(","):
        choices = [part.strip("()").split("|") for part in re.findall(r"\([^)]*\)|[^()]+", entry)]
        yield from ("".join(parts) for parts in itertools.product(*choices))


def _bits(concept: C, foreign: bool) -> int:
    # A foreign negation word alone does not distinguish "must not" from "not".
    if foreign and concept is C.NEG:
        return int(C.NEG | C.PROHIBIT)
    return int(C.PRIOR | C.PRIOR_STRONG) if foreign and concept is C.PRIOR else int(concept)


def _key(entry: str) -> str:
    """Return `entry` with single spaces between its words.

    Marks before the first word (.env, --registry) are kept.
    """
    body = entry.lstrip(_MARKS)
    return entry[: len(entry) - len(body)] + " ".join(_NOT_WORD.sub(" ", body).split())


def _longest_first(entry: str) -> tuple[int, str]:
    return -len(entry), entry


def _trie(entries: list[str]) -> _Trie:
    """Return a trie of the entries by words: entries with the same first words share a branch."""
    root = _Trie()
    for entry in entries:
        mark = entry[: len(entry) - len(entry.lstrip(_MARKS))]
        star = "*" if entry.endswith("*") else ""
        parts = _NOT_WORD.sub(" ", entry.strip(_MARKS + "*")).split()
        if not parts:
            continue
        parts[0] = mark + parts[0]
        parts[-1] += star
        node = root
        for part in parts:
            node = node.words.setdefault(part, _Trie())
        node.ends = True
    return root


def _trie_source(node: _Trie, *, first: bool = True) -> str:
    # Put whole words before stems and longer words before shorter ones: RE2 takes the first match.
    branches = []
    for word in sorted(node.words, key=lambda word: (word.endswith("*"), -len(word), word)):
        source = re.escape(word.rstrip("*")) + ("[a-z]*" if word.endswith("*") else "")
        if first and word[0] not in _MARKS:
            source = r"\b" + source
        below = node.words[word]
        if not below.words:
            source += r"\b"
        elif below.ends:
            source += rf"(?:{_GAP}{_trie_source(below, first=False)}|\b)"
        else:
            source += _GAP + _trie_source(below, first=False)
        branches.append(source)
    return f"(?:{'|'.join(branches)})"


@cache
def lexicon() -> Lexicon:
    """Return the one lexicon of the process. Its construction takes a tenth of a second."""
    return Lexicon()
