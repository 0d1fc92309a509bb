"""The scanner's findings in text before it is accepted, and their acceptance by a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agents.services.errors import InvalidRequest
from text_scanner import scan

SERIOUS = frozenset({"warning", "danger"})


@dataclass(frozen=True, slots=True)
class FileFinding:
    """One serious finding. `match` is untrusted text: show it with hidden characters visible."""

    path: str
    line: int
    pattern: str
    match: str
    description: str
    severity: str


def findings_in(files: Mapping[str, str]) -> list[FileFinding]:
    """Return the warnings and dangers in `files` (path to text), in the order of `files`."""
    return [
        FileFinding(
            path,
            content.count("\n", 0, finding.start) + 1,
            finding.pattern,
            finding.match,
            finding.description,
            finding.severity,
        )
        for path, content in files.items()
        for finding in scan(content)
        if finding.severity in SERIOUS
    ]


def require_accepted(findings: Iterable[FileFinding], accepted: bool) -> None:
    """Raise `InvalidRequest` (code `findings`) if there are findings that were not accepted."""
    found = list(findings)
    if found and not accepted:
        raise InvalidRequest(
            f"The scanner found {len(found)} suspicious places. Read them, and accept the findings "
            "to keep the text.",
            code="findings",
        )
