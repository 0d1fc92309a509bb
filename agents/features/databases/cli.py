"""`vel databases`: the databases that agents may read. Passwords are never shown."""

from __future__ import annotations

import json

import click

from agents.doors.cli.boot import with_database
from agents.doors.cli.errors import CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option
from agents.doors.cli.terminal import one_line

with late_imports:
    from django.db.models import Q

    from agents.doors.cli.console import new_console
    from agents.doors.cli.local_user import local_user
    from agents.features.databases.actions import remove_connection
    from agents.features.databases.models import DatabaseConnection
    from agents.features.databases.queries import own_connections, shown_address


@click.group(short_help="List databases that agents may read, and remove one's own.")
def databases() -> None:
    """Manage databases: those from the admin site, and your own from `vel TASK --database`."""


@databases.command("list")
@with_database
@json_option
def list_databases(as_json: bool) -> None:
    """List the databases with their addresses and agents."""
    mine = Q(pk__in=own_connections(local_user()).values("pk"))
    rows = DatabaseConnection.objects.filter(Q(agent=None) | mine).prefetch_related("agents")
    console = new_console()
    for row in rows:
        agents = sorted(agent.slug for agent in row.agents.all())
        if as_json:
            place = shown_address(row)
            print(
                json.dumps(
                    {"name": row.name, "own": row.is_private, "address": place, "agents": agents}
                )
            )
            continue
        whose = "own" if row.is_private else "shared"
        console.print(
            f"{row.name}  {whose}  {one_line(shown_address(row))}  "
            f"{one_line(', '.join(agents)) or 'no agent'}"
        )


@databases.command("remove")
@click.argument("name", metavar="NAME")
@with_database
def remove(name: str) -> None:
    """Remove your own connection NAME and its stored URL. The database itself stays."""
    user = local_user()
    row = own_connections(user).filter(name=name).first()
    if row is None:
        raise CliError(
            f"There is no database {one_line(name)!r} of yours. `vel databases list` shows yours. "
            "Remove connections of the admin in the admin."
        )
    remove_connection(row.pk, by=user)
    print(f"{row.name} is removed, with its stored URL.")


COMMANDS = (databases,)
