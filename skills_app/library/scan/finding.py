"""The findings of the scan of a package."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["note", "warning", "danger"]

RANK: dict[str, int] = {"note": 0, "warning": 1, "danger": 2}
MAX_FINDINGS = 300
MAX_EXCERPT = 200
"""The maximum length of an excerpt in characters, with each invisible one counted as one."""


@dataclass(frozen=True, slots=True)
class ScanFinding:
    """One finding for a reviewer.

    `code` is a stable word for programs. `path` is a file of the package. `line` counts from 1, and
    0 is the file as a whole. `excerpt` is the text at the line, with invisible characters as code
    points.
    """

    severity: Severity
    code: str
    path: str
    line: int
    message: str
    excerpt: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the finding as JSON for `SkillVersion.findings`."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> ScanFinding:
        return cls(**stored)


def findings_json(findings: Iterable[ScanFinding]) -> list[dict[str, Any]]:
    return [finding.as_json() for finding in findings]


def has_danger(findings: Iterable[ScanFinding]) -> bool:
    return any(finding.severity == "danger" for finding in findings)


def bounded(findings: Sequence[ScanFinding]) -> list[ScanFinding]:
    """Return each finding once, worst first, at most MAX_FINDINGS.

    If there are more, the last finding has their number.
    """
    ordered = sorted(
        dict.fromkeys(findings), key=lambda held: (-RANK[held.severity], held.path, held.line)
    )
    if len(ordered) <= MAX_FINDINGS:
        return ordered
    left_out = ordered[MAX_FINDINGS - 1 :]
    more = f"{len(left_out):,} more findings, none worse than these, are not listed."
    last = ScanFinding(left_out[0].severity, "more_findings", "", 0, more)
    return [*ordered[: MAX_FINDINGS - 1], last]
