"""`vel schedules`: runs that begin by the clock."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option, persist_option


@click.group(short_help="List, start, pause and go on with schedules.")
def schedules() -> None:
    """Your schedules. SCHEDULE is an id or the beginning of one."""


@schedules.command("list")
@persist_option
@json_option
def list_schedules(persist: Path | None, as_json: bool) -> int:
    """Show them, with the time that each is due next."""
    return perform("commands.schedules:list_schedules", persist=persist, as_json=as_json)


@schedules.command("run")
@click.argument("schedule_id", metavar="SCHEDULE")
@persist_option
def run(schedule_id: str, persist: Path | None) -> int:
    """Start it once, now."""
    return perform("commands.schedules:run_now", persist=persist, schedule_id=schedule_id)


@schedules.command("pause")
@click.argument("schedule_id", metavar="SCHEDULE")
@persist_option
def pause(schedule_id: str, persist: Path | None) -> int:
    """Start nothing until it goes on."""
    return perform(
        "commands.schedules:enable", persist=persist, schedule_id=schedule_id, enabled=False
    )


@schedules.command("go-on")
@click.argument("schedule_id", metavar="SCHEDULE")
@persist_option
def go_on(schedule_id: str, persist: Path | None) -> int:
    """Go on from now; what was due meanwhile is not made up for."""
    return perform(
        "commands.schedules:enable", persist=persist, schedule_id=schedule_id, enabled=True
    )
