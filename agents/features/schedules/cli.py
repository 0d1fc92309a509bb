"""`vel schedules`: runs that start by the clock."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from agents.doors.cli.boot import with_database
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option
from agents.doors.cli.terminal import one_line

with late_imports:
    from rich.text import Text

    from agents.doors.cli.console import print_table
    from agents.doors.cli.find import by_id
    from agents.doors.cli.local_user import local_user
    from agents.features.schedules.actions import enable_schedule
    from agents.features.schedules.firing import fire_now
    from agents.features.schedules.models import Schedule
    from agents.features.schedules.queries import schedules_for


@click.group(short_help="List, start, pause and resume schedules.")
def schedules() -> None:
    """Manage your schedules. SCHEDULE is an ID or the start of an ID."""


@schedules.command("list")
@with_database
@json_option
def list_schedules(as_json: bool) -> None:
    """List your schedules with their next due times."""
    rows = list(schedules_for(local_user()).select_related("agent"))
    if as_json:
        for row in rows:
            print(json.dumps(as_data(row)))
        return
    if not rows:
        print("There are no schedules.", file=sys.stderr)
        return
    print_table(
        ("SCHEDULE", "NAME", "AGENT", "WHEN", "NEXT"),
        (
            (
                row.id,
                Text(one_line(row.name, 40)),
                Text(one_line(row.agent.slug, 30)),
                Text(row.when),
                next_time(row),
            )
            for row in rows
        ),
    )


@schedules.command("run")
@click.argument("schedule_id", metavar="SCHEDULE")
@with_database
def run(schedule_id: str) -> None:
    """Start a schedule once, now."""
    user = local_user()
    run = fire_now(by_id(schedules_for(user), schedule_id, "schedule").pk, by=user)
    print(run.pk)


@schedules.command("pause")
@click.argument("schedule_id", metavar="SCHEDULE")
@with_database
def pause(schedule_id: str) -> None:
    """Pause a schedule."""
    _enable(schedule_id, False)


@schedules.command("resume")
@click.argument("schedule_id", metavar="SCHEDULE")
@with_database
def resume(schedule_id: str) -> None:
    """Resume a paused schedule, without the times that it missed."""
    _enable(schedule_id, True)


def _enable(schedule_id: str, enabled: bool) -> None:
    user = local_user()
    found = by_id(schedules_for(user), schedule_id, "schedule")
    row = enable_schedule(found.pk, enabled, by=user)
    print(f"{row.id}: {next_time(row)}")


def next_time(row: Schedule) -> str:
    if not row.is_enabled:
        return "paused"
    return f"{row.due_at:%Y-%m-%d %H:%M} UTC" if row.due_at else "over"


def as_data(row: Schedule) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "agent": row.agent.slug,
        "cron": row.cron,
        "interval_seconds": row.interval_seconds,
        "time_zone": row.time_zone,
        "enabled": row.is_enabled,
        "due_at": row.due_at.isoformat() if row.due_at else None,
    }


COMMANDS = (schedules,)
