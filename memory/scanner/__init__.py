"""Looks through what is to be remembered for what a reviewer should see.

Pure functions of a text: no files, no network, no Django. Layers: finding, linear, text, concepts →
lexicon → clauses → rules, intent, mentions; views, decode, characters, structure → scanning.
"""

from memory.scanner.finding import MAX_FINDINGS, Finding, Severity
from memory.scanner.scanning import detect_suspicious_patterns, scan

__all__ = ["MAX_FINDINGS", "Finding", "Severity", "detect_suspicious_patterns", "scan"]
