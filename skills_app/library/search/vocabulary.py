"""The weights of words in a request, and their synonyms."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from skills_app.library.search.tokens import stem, stems

FAMILIES = Path(__file__).with_name("families.txt")
STOP_WORDS = Path(__file__).with_name("stop_words.txt")
SAME = 0.9
RELATED = 0.5
LONGEST_PHRASE = 3


def _lines(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


STOP = frozenset(stem(word) for line in _lines(STOP_WORDS) for word in line.split())
"""Words without information about the request, request words among them."""


@dataclass(slots=True)
class Vocabulary:
    """`related[a][b]`: how far b in a document answers a in a query, 0 to 1. Keys are stems.

    `phrases`: the stems of a phrase, to its single name.
    """

    related: dict[str, dict[str, float]] = field(default_factory=dict)
    phrases: dict[tuple[str, ...], str] = field(default_factory=dict)

    def with_phrases(self, tokens: list[str]) -> list[str]:
        """Return `tokens` and, after them, the names of the phrases in them."""
        return tokens + [name for _, _, name in self.find_phrases(tokens)]

    def find_phrases(self, tokens: list[str]) -> list[tuple[int, int, str]]:
        """Return (start, end, name) of every known phrase."""
        found = []
        for size in range(2, LONGEST_PHRASE + 1):
            for at in range(len(tokens) - size + 1):
                name = self.phrases.get(tuple(tokens[at : at + size]))
                if name:
                    found.append((at, at + size, name))
        return found


@cache
def vocabulary() -> Vocabulary:
    """Return the families in the file FAMILIES."""
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
    return name
