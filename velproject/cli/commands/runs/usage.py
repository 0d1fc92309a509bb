"""`vel usage`: tokens and cost."""

from __future__ import annotations

import json
import sys

import click

from agents.doors.cli.boot import with_database
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option
from agents.doors.cli.terminal import one_line

with late_imports:
    from django.conf import settings
    from rich.text import Text

    from agents.doors.cli.console import print_table
    from agents.doors.cli.local_user import local_user
    from agents.providers.prices import dollars
    from agents.selectors.usage import DayUsage, usage_by_day, zone_of


@click.command(short_help="Show tokens and cost per day.")
@with_database
@json_option
@click.option(
    "--days", type=click.IntRange(1, 366), default=30, show_default=True, help="Days to show."
)
def usage(as_json: bool, days: int) -> None:
    """Show tokens and cost by day, agent, user and model.

    Counts your runs and your model calls outside of runs, also of deleted runs. With the permission
    to view all runs, counts those of all users.
    """
    rows = usage_by_day(local_user(), days, zone_of(settings.TIME_ZONE))
    if as_json:
        for row in rows:
            print(json.dumps(as_data(row)))
        return
    if not rows:
        print("No usage in this period.", file=sys.stderr)
        return
    print_table(
        ("DAY", "CALLS", "TOKENS", "COST", "AGENT", "USER", "MODEL"),
        (
            (
                row.day.isoformat(),
                str(row.calls),
                f"{row.tokens:,}",
                "unknown" if row.microusd is None else f"${dollars(row.microusd)}",
                Text(one_line(row.agent, 30)),
                Text(one_line(row.user, 30)),
                Text(one_line(row.model, 60)),
            )
            for row in rows
        ),
    )


def as_data(row: DayUsage) -> dict[str, object]:
    return {
        "day": row.day.isoformat(),
        "agent": row.agent,
        "user": row.user,
        "model": row.model,
        "calls": row.calls,
        "tokens": row.tokens,
        "cost": None if row.microusd is None else dollars(row.microusd),
    }
