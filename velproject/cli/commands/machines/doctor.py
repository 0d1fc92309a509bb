"""The action of `vel doctor`. It sets Django up by itself, since that is part of what it checks."""

from __future__ import annotations

import json
from dataclasses import asdict

from rich.text import Text

from velproject.cli.console import new_console
from velproject.cli.errors import FAILED, OK
from velproject.cli.terminal import visible
from velproject.doctor.findings import Finding, Level
from velproject.doctor.report import examine

_MARKS = {Level.OK: ("✓", "green"), Level.NOTE: ("!", "yellow"), Level.BROKEN: ("✗", "bold red")}


def report(*, as_json: bool, online: bool) -> int:
    """Print the findings as they are made; 1 where something essential is broken."""
    console = new_console()
    broken = False
    for finding in examine(online=online):
        broken = broken or finding.level is Level.BROKEN
        if as_json:
            print(json.dumps(asdict(finding)), flush=True)
        else:
            console.print(as_text(finding))
    return FAILED if broken else OK


def as_text(finding: Finding) -> Text:
    mark, style = _MARKS[finding.level]
    text = Text.assemble(
        (f"{mark} ", style), (f"{finding.subject:<14} ", "bold"), visible(finding.detail)
    )
    if finding.mend:
        text.append(f"\n{'':17}→ {visible(finding.mend)}", style="dim")
    return text
