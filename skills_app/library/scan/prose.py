"""Text for the model: the memory scanner on the description, SKILL.md and other prose."""

from __future__ import annotations

from collections.abc import Iterator

from skills_app.library.package import SKILL_FILE, Package
from skills_app.library.scan.finding import ScanFinding, Severity
from skills_app.library.scan.rules import SECRET
from skills_app.library.scan.text import shown
from text_scanner import Finding, scan
from text_scanner.likeness import PATTERN as LIKENESS
from text_scanner.linear import compile_linear

_TOLD_ELSEWHERE = {
    *("url", "email", "tag-characters", "bidi-control", "variation-selectors", "zero-width"),
    *("mixed-scripts", "pipe-to-shell"),
}

_SECRET = compile_linear(SECRET, any_case=True)
_PLAIN = {"hidden-comment", "role-tag", "image-exfiltration", "hidden-style", "more-findings"}
"""Shapes that no honest text has by chance."""
NEAR = 300
"""Characters between two stretches that concern the same subject."""


def prose_findings(path: str, text: str) -> Iterator[ScanFinding]:
    """Yield orders that turn an agent against its user.

    A skill consists of orders: a single match of one rule is a warning, and a mere likeness is a
    note. Matches of several rules together are a danger.
    """
    found = scan(text)
    for finding in found:
        if finding.pattern in _TOLD_ELSEWHERE:
            continue
        severity: Severity = finding.severity
        if finding.pattern == LIKENESS:
            severity = "note"
            if finding.severity == "warning":
                continue
        elif finding.pattern not in _PLAIN:
            alone = not _met(finding, found)
            if severity == "danger" and alone:
                severity = "warning"
            if severity == "warning" and _names_secret(text, finding):
                severity = "danger"
        yield ScanFinding(
            severity,
            finding.pattern,
            path,
            text.count("\n", 0, finding.start) + 1,
            f"{finding.description}.",
            shown(finding.match),
        )


def _met(finding: Finding, found: list[Finding]) -> bool:
    """Return whether another rule, or the reading of the sentence, raises an alarm nearby."""
    return any(
        other.pattern != finding.pattern
        and other.severity != "note"
        and other.start < finding.end + NEAR
        and other.end > finding.start - NEAR
        for other in found
    )


def _names_secret(text: str, finding: Finding) -> bool:
    """Return whether a file of secrets is named near an order that few skills give."""
    near = text[max(0, finding.start - NEAR) : finding.end + NEAR]
    return _SECRET.search(near.encode("utf-8", "replace")) is not None


def description_findings(package: Package) -> Iterator[ScanFinding]:
    """Yield findings in the description: which every prompt contains: the strictest checks."""
    found = scan(package.head.description)
    for finding in found:
        if finding.pattern in _TOLD_ELSEWHERE:
            continue
        severity: Severity = finding.severity
        if finding.pattern == LIKENESS:
            severity = "note"
        elif severity == "warning" and _met(finding, found):
            severity = "danger"
        message = f"In the description: {finding.description}."
        yield ScanFinding(severity, finding.pattern, SKILL_FILE, 1, message, shown(finding.match))
