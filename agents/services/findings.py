"""What the scanner says of text that a person is about to let in, and the person's word on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agents.services.errors import InvalidRequest
from text_scanner import scan

SERIOUS = frozenset({"warning", "danger"})


@dataclass(frozen=True, slots=True)
class FileFinding:
    """One serious finding. `match` is others' text: show it with hidden characters visible."""

    path: str
    line: int
    pattern: str
    match: str
    description: str
    severity: str


def findings_in(files: Mapping[str, str]) -> list[FileFinding]:
    """What is worse than a note in each of `files`, by path and line."""
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
    """Raise `InvalidRequest` (code `findings`) unless there are none or somebody took them on."""
    found = list(findings)
    if found and not accepted:
        raise InvalidRequest(
            f"The scanner has found {len(found)} suspicious places: read them, and accept the "
            "findings if the text is to be kept as it is.",
            code="findings",
        )
