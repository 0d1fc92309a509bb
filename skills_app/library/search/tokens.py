"""Split texts into words for the search: folded, without endings, compounds split.

The functions accept any text and raise no errors, because queries come from users.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from agents.kernel.lazy_modules import lazy_modules
from sandbox.backends.normal_form import normal_form

with lazy_modules:
    # Import the package only if needed: it loads 40 modules (15 ms), and STEMS often suffices.
    from snowballstemmer import english_stemmer, russian_stemmer

STEMS = Path(__file__).with_name("stems.txt")
"""The stems of frequent words.

Computing those of the built-in skills and of the synonyms took a tenth of the processor time of
`vel TASK`.
"""
MAX_TEXT = 60_000
"""The number of characters of one text that are read."""
MAX_WORD = 40
"""The number of characters of one word that count. Longer words are data (hashes, base64)."""

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+")
_WORD = re.compile(rf"{_CJK.pattern}|c\+\+|[cf]#|(?<![\w.])\.net\b|[^\W_]+(?:['’][^\W_]+)*")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_SPECIAL = {"c++": "cplusplus", "c#": "csharp", "f#": "fsharp", ".net": "dotnet"}
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")


def fold(text: str) -> str:
    """Return the first MAX_TEXT characters of `text` in NFKC, lower case, Latin without accents."""
    text = normal_form("NFKC", text[:MAX_TEXT]).casefold()
    if text.isascii():
        return text
    return _NOT_ASCII.sub(lambda found: "".join(map(_plain, found[0])), text)


def words(text: str) -> Iterator[str]:
    """Yield the words of `text` in order, folded, with their endings.

    `camelCase` gives its parts. Chinese, Japanese and Korean have no blanks, so every two
    neighbouring characters are a word.
    """
    folded = fold(_CAMEL.sub(" ", text[:MAX_TEXT]) if not text.islower() else text)
    for word in _WORD.findall(folded):
        if word in _SPECIAL:
            yield _SPECIAL[word]
        elif not word.isascii() and _CJK.match(word):
            yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
        elif len(word) <= MAX_WORD:
            yield word


def stems(text: str) -> list[str]:
    """Return the stems of the words of `text`, in order."""
    return [stem(word) for word in words(text)]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of a folded word.

    Cyrillic words use Russian rules, all others English ones.
    """
    word = word.replace("’", "'").split("'")[0] or word
    if len(word) < 3 or not word.isalpha():
        return word
    if word.isascii():
        return known_words().get(word) or _stem_with("english", word)
    return _stem_with("russian", word) if _CYRILLIC.search(word) else word


@cache
def known_words() -> dict[str, str]:
    """Return the stem of each English word in STEMS. A line has a stem and its words."""
    lines = STEMS.read_text(encoding="ascii").splitlines()
    return {word: stem for stem, *words in map(str.split, lines) for word in words}


# A stemmer is not thread-safe, because it stores its word.
_lock = threading.Lock()


@cache
def _stemmer(language: str) -> Any:
    if language == "russian":
        return russian_stemmer.RussianStemmer()
    return english_stemmer.EnglishStemmer()


def _stem_with(language: str, word: str) -> str:
    with _lock:
        return str(_stemmer(language).stemWord(word))


@lru_cache(maxsize=4096)
def _plain(character: str) -> str:
    """Return a Latin letter without its accents, any other character unchanged."""
    if character.isascii():
        return character
    parts = unicodedata.normalize("NFD", character)
    return parts[0] if parts[0].isascii() else character


FAMILIES = Path(__file__).with_name("families.txt")
STOP_WORDS = Path(__file__).with_name("stop_words.txt")
SAME = 0.9
RELATED = 0.5
LONGEST_PHRASE = 3


def _lines(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


STOP = frozenset(stem(word) for line in _lines(STOP_WORDS) for word in line.split())
"""Words that carry no information, including those that people use in requests."""


@dataclass(slots=True)
class Vocabulary:
    """Relations between stems.

    `related[a][b]` is how well b in a document answers a in a query, from 0 to 1. `phrases` maps
    the stems of a phrase to its name.
    """

    related: dict[str, dict[str, float]] = field(default_factory=dict)
    phrases: dict[tuple[str, ...], str] = field(default_factory=dict)
    beginnings: set[str] = field(default_factory=set)
    """The first stems of phrases."""

    def with_phrases(self, tokens: list[str]) -> list[str]:
        """Return `tokens`, followed by the names of the phrases in them."""
        return tokens + [name for _, _, name in self.find_phrases(tokens)]

    def find_phrases(self, tokens: list[str]) -> list[tuple[int, int, str]]:
        """Return (start, end, name) of every known phrase in `tokens`."""
        found = []
        for at, token in enumerate(tokens):
            if token in self.beginnings:
                for size in range(2, LONGEST_PHRASE + 1):
                    name = self.phrases.get(tuple(tokens[at : at + size]))
                    if name and at + size <= len(tokens):
                        found.append((at, at + size, name))
        return found


@cache
def vocabulary() -> Vocabulary:
    """Return the vocabulary in the file FAMILIES."""
    known = Vocabulary()
    for line in _lines(FAMILIES):
        weight = SAME if line.startswith("=") else RELATED
        asking, _, answers = line.removeprefix("=").partition(">")
        left = [_entry(known, part) for part in asking.split(",")]
        right = [_entry(known, part) for part in answers.split(",")] if answers else left
        for a in left:
            for b in right:
                if a != b:
                    here = known.related.setdefault(a, {})
                    here[b] = max(weight, here.get(b, 0.0))
    return known


def _entry(known: Vocabulary, text: str) -> str:
    parts = stems(text)
    if len(parts) == 1:
        return parts[0]
    name = "_".join(parts)
    known.phrases[tuple(parts)] = name
    known.beginnings.add(parts[0])
    return name
