"""The findings of the scanner on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from agents.doors.cli.terminal import one_line
from agents.services.findings import FileFinding

MAX_SHOWN = 50


def show_findings(findings: Sequence[FileFinding]) -> None:
    """Print a line for each finding on standard error, dangerous ones first."""
    for found in sorted(findings, key=lambda found: found.severity)[:MAX_SHOWN]:
        print(
            f"{found.severity}: {found.path}:{found.line}: {one_line(found.description)}: "
            f"{one_line(found.match, 80)}",
            file=sys.stderr,
        )
    if len(findings) > MAX_SHOWN:
        print(f"… and {len(findings) - MAX_SHOWN} more.", file=sys.stderr)
