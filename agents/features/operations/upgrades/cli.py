"""`vel upgrade`: the necessary steps before a new version starts."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from agents.doors.cli.boot import database
from agents.doors.cli.errors import FAILED, OK
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option, persist_option
from agents.doors.cli.terminal import visible

with late_imports:
    from agents.features.operations.upgrades.check import examine
    from agents.kernel.findings import Level

_SERVER_SETTINGS = "velproject.settings"
"""The settings of servers: their checks decide whether the new version starts."""
_MARKS = {"ok": "✓", "note": "!", "broken": "✗"}


class Version(click.ParamType):
    """A version such as 0.1.0."""

    name = "version"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        parts = value.split(".")
        if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
            self.fail(f"{value!r} is not a version. Expected numbers and dots, such as 0.1.0.")
        return value


@click.command(short_help="Show the necessary steps before an upgrade.")
@click.option("--check", is_flag=True, help="Check the database and the settings. Required.")
@click.option(
    "--from",
    "since",
    metavar="VERSION",
    type=Version(),
    help="The version that runs now: show only defaults that have changed since.",
)
@persist_option
@json_option
def upgrade(check: bool, since: str | None, persist: Path | None, as_json: bool) -> int:
    """Show the necessary steps before this version starts on the data of an older one.

    Does not upgrade: it changes nothing, and requires --check. Exits with 1 if something needs
    attention: migrations, unknown, invalid or deprecated settings, changed defaults, or too little
    free space.
    """
    if not check:
        raise click.UsageError(
            "Add --check. `vel migrate` updates the tables, and pip, pipx or uv installs a version."
        )
    attention = False
    with database(persist, prepare=False, settings=_SERVER_SETTINGS):
        for finding in examine(since or ""):
            attention = attention or finding.level is not Level.OK
            if as_json:
                print(json.dumps(asdict(finding)), flush=True)
                continue
            print(f"{_MARKS[finding.level]} {finding.subject:<13} {visible(finding.detail)}")
            if finding.mend:
                print(f"{'':16}→ {visible(finding.mend)}")
    return FAILED if attention else OK
