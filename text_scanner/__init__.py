"""Find the parts of a memory text that a reviewer should check.

The result depends only on the text. The functions need neither Django nor a network. They read no
files except the words and weights of this package and of `language_model`.

A *folded* text is in lower case and in plain letters, with the same length (see `text.fold`). A
*view* is another form of the text, for example a decoded part (see `views`).

Each module imports only modules that are before it in this list: concepts, confusables, finding,
linear, text; words, languages, lexicon, addresses, clauses; characters, views, decode, structure;
rules, intent, mentions, plain_notes; likeness, transformer, meaning; scanning.

The rules are imported at the first scan: their expressions take 70 ms to compile, and most
processes never scan.
"""

from importlib import import_module
from types import ModuleType

from text_scanner.finding import MAX_FINDINGS, Finding, Severity

__all__ = ["MAX_FINDINGS", "Finding", "Severity", "detect_suspicious_patterns", "scan"]


def scan(content: str) -> list[Finding]:
    """Return the parts of `content` that a person should review, sorted by start.

    The list has at most MAX_FINDINGS entries. The function accepts any text and never raises an
    exception. The scan helps the reviewer and is not a security boundary: see
    docs/guides/memory-scanner.md.
    """
    found: list[Finding] = _scanning().scan(content)
    return found


def detect_suspicious_patterns(content: str) -> list[dict[str, str]]:
    """Return the findings of `scan` as dictionaries.

    The keys are `pattern`, `match`, `description` and `severity`.
    """
    found: list[dict[str, str]] = _scanning().detect_suspicious_patterns(content)
    return found


def _scanning() -> ModuleType:
    return import_module("text_scanner.scanning")
