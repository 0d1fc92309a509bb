"""Apply the memory scanner to texts that models read: the description, SKILL.md and other prose."""

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
"""Patterns of the memory scanner that no honest text has by chance."""
NEAR = 300
"""Two findings are about the same subject if at most this number of characters is between them."""


def prose_findings(path: str, text: str) -> Iterator[ScanFinding]:
    """Yield the instructions in `text` that turn an agent against its user.

    All texts of a skill are instructions. So a match of one rule is only a warning, and similarity
    to an attack only a note. Matches of several rules nearby are a danger.
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
    """Return whether another rule or the language model also raises an alarm near `finding`."""
    return any(
        other.pattern != finding.pattern
        and other.severity != "note"
        and other.start < finding.end + NEAR
        and other.end > finding.start - NEAR
        for other in found
    )


def _names_secret(text: str, finding: Finding) -> bool:
    """Return whether `text` names a file with secrets near `finding`."""
    near = text[max(0, finding.start - NEAR) : finding.end + NEAR]
    return _SECRET.search(near.encode("utf-8", "replace")) is not None


def description_findings(package: Package) -> Iterator[ScanFinding]:
    """Yield the findings in the description.

    Its checks are the strictest: every prompt contains it.
    """
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
