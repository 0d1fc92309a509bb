"""`vel doctor`: checks of this machine, with advice for repairs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from agents.doors.cli.boot import use_database_file
from agents.doors.cli.errors import FAILED, OK
from agents.doors.cli.late_imports import finish_imports, late_imports
from agents.doors.cli.options import json_option, persist_option
from agents.doors.cli.terminal import visible

with late_imports:
    from rich.text import Text

    from agents.doors.cli.console import new_console
    from velproject.doctor.findings import Finding, Level
    from velproject.doctor.report import examine

_MARKS = {"ok": ("✓", "green"), "note": ("!", "yellow"), "broken": ("✗", "bold red")}


@click.command(short_help="Check this machine and show how to fix problems.")
@persist_option
@json_option
@click.option("--online", is_flag=True, help="Also make a small call to the language model.")
def doctor(persist: Path | None, as_json: bool, online: bool) -> int:
    """Check this machine. Exits with 1 if something essential is broken."""
    if persist is not None:
        use_database_file(persist)
    finish_imports(__name__)  # `examine` sets Django up, because a failure is one of its findings
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
