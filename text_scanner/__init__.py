"""Scan texts for the agent's memory for parts that a reviewer should check.

Pure functions of a text: no files, no network, no Django. Layers: finding, linear, text, concepts →
lexicon → clauses → rules, intent, mentions; views, decode, characters, structure → scanning.

The rules are imported at the first scan: their expressions take 70 ms to compile, and most
processes never scan.
"""

from importlib import import_module
from types import ModuleType

from text_scanner.finding import MAX_FINDINGS, Finding, Severity

__all__ = ["MAX_FINDINGS", "Finding", "Severity", "detect_suspicious_patterns", "scan"]


def scan(content: str) -> list[Finding]:
    """Return the parts of `content` to review, sorted by start; at most MAX_FINDINGS.

    Never raises, for any text. It helps the reviewer and is not a security boundary: see
    docs/guides/memory-scanner.md.
    """
    found: list[Finding] = _scanning().scan(content)
    return found


def detect_suspicious_patterns(content: str) -> list[dict[str, str]]:
    """`scan` as dictionaries with `pattern`, `match`, `description` and `severity`."""
    found: list[dict[str, str]] = _scanning().detect_suspicious_patterns(content)
    return found


def _scanning() -> ModuleType:
    return import_module("text_scanner.scanning")
