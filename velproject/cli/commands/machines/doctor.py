"""`vel doctor`: checks of this machine, with advice for repairs."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from agents.doors.cli.boot import use_database_file
from agents.doors.cli.errors import FAILED, OK, CliError
from agents.doors.cli.late_imports import finish_imports, late_imports
from agents.doors.cli.options import json_option, persist_option
from agents.doors.cli.terminal import visible

with late_imports:
    from django.apps import apps
    from rich.text import Text

    from agents.doors.cli.console import new_console
    from agents.kernel.features import collect
    from velproject.doctor.findings import Finding, Level
    from velproject.doctor.report import examine

_MARKS = {"ok": ("✓", "green"), "note": ("!", "yellow"), "broken": ("✗", "bold red")}


@click.command(short_help="Check this machine and show how to fix problems.")
@persist_option
@json_option
@click.option("--online", is_flag=True, help="Also make a small call to the language model.")
@click.option(
    "--support-bundle",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write an archive (.tar.gz) for support, with secrets masked.",
)
@click.option(
    "--log",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The log for the archive, if Vel is not a service of systemd.",
)
def doctor(
    persist: Path | None,
    as_json: bool,
    online: bool,
    support_bundle: Path | None,
    log: Path | None,
) -> int:
    """Check this machine. Exits with 1 if something essential is broken."""
    if log is not None and support_bundle is None:
        raise CliError("--log needs --support-bundle.")
    if persist is not None:
        use_database_file(persist)
    finish_imports(__name__)  # `examine` sets Django up, because a failure is one of its findings
    console = new_console()
    broken = False
    found = []
    for finding in examine(online=online):
        found.append(finding)
        broken = broken or finding.level is Level.BROKEN
        if as_json:
            print(json.dumps(asdict(finding)), flush=True)
        else:
            console.print(as_text(finding))
    if support_bundle is not None:
        if not apps.ready:
            raise CliError("Vel cannot start, so there is no bundle. Fix this.", exit_code=FAILED)
        bundles = collect("doctor", "BUNDLES")
        if not bundles:
            raise CliError(
                "--support-bundle: the feature with this option is not installed, so there is no "
                "bundle.",
                exit_code=FAILED,
            )
        _, write_bundle = bundles[0]
        write_bundle(support_bundle, found, log)
        print(f"Wrote {support_bundle}. Look through it before you send it.", file=sys.stderr)
    return FAILED if broken else OK


def as_text(finding: Finding) -> Text:
    mark, style = _MARKS[finding.level]
    text = Text.assemble(
        (f"{mark} ", style), (f"{finding.subject:<14} ", "bold"), visible(finding.detail)
    )
    if finding.mend:
        text.append(f"\n{'':17}→ {visible(finding.mend)}", style="dim")
    return text
