"""`vel hosts`: the machines that work on one database."""

from __future__ import annotations

import json
import sys
import time

import click

from agents.doors.cli.boot import with_database
from agents.doors.cli.errors import CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option

with late_imports:
    from agents.doors.cli.console import print_table
    from agents.services.machines.actions import (
        MachineState,
        adopt_threads,
        forget_machine,
        machine_states,
        set_draining,
    )
    from agents.services.machines.actions import declare_dead as declare_host_dead

LOOK_SECONDS = 1.0


@click.group(short_help="List the hosts, drain one, declare one dead.")
def hosts() -> None:
    """Manage the machines that drive runs, if there are several (VEL_HOST)."""


@hosts.command("list")
@with_database
@json_option
def list_hosts(as_json: bool) -> None:
    """Show each host with its state, its last sign of life and the threads it holds."""
    rows = machine_states()
    if as_json:
        for row in rows:
            print(json.dumps(as_data(row)))
        return
    if not rows:
        print("There is one machine: no process was started with VEL_HOST.", file=sys.stderr)
        return
    print_table(
        ("HOST", "STATE", "LAST SEEN", "THREADS"),
        ((row.name, row.state, f"{row.silent_for:.0f} s ago", str(row.threads)) for row in rows),
    )


@hosts.command("drain")
@click.argument("name")
@click.option("--wait/--no-wait", default=True, help="Stay until its threads have left [wait].")
@with_database
def drain(name: str, wait: bool) -> None:
    """Stop new work on a host and move its threads, with their files, to the others.

    The host must be running. Its runs stop at their next step and continue on another host.
    """
    set_draining(name, True)
    told = -1
    while wait:
        row = next((row for row in machine_states() if row.name == name), None)
        if row is None or row.state == "dead":
            raise CliError(f"The host {name} has gone meanwhile.")
        if row.threads != told:
            told = row.threads
            print(f"{name} is drained" if not told else f"threads on {name}: {told}", flush=True)
        if not told:
            return
        if row.state == "silent":
            raise CliError(
                f"The host {name} gives no sign of life and cannot store its files: start its "
                f"workers, or: vel hosts declare-dead {name}"
            )
        time.sleep(LOOK_SECONDS)
    print(f"{name} is being drained")


@hosts.command("undrain")
@click.argument("name")
@with_database
def undrain(name: str) -> None:
    """Let a drained host take runs again."""
    set_draining(name, False)
    print(f"{name} takes runs again")


@hosts.command("declare-dead")
@click.argument("name")
@with_database
def declare_dead(name: str) -> None:
    """Let other hosts continue the threads of a host that is gone.

    Files that were not stored are lost, and their agents get a message about it. A host that has
    given a sign of life within the length of a lease is refused: stop it first.
    """
    moved = declare_host_dead(name)
    print(f"{name} counts as dead; threads that may go on elsewhere: {moved}")


@hosts.command("adopt")
@click.argument("name")
@with_database
def adopt(name: str) -> None:
    """Give this host the threads of a former name of this machine, which still has their files."""
    print(f"threads of {name} that are this host's now: {adopt_threads(name)}")


@hosts.command("forget")
@click.argument("name")
@with_database
def forget(name: str) -> None:
    """Remove a host that is gone, and has no threads, from the list."""
    forget_machine(name)
    print(f"{name} is forgotten")


def as_data(row: MachineState) -> dict[str, object]:
    return {
        "name": row.name,
        "state": row.state,
        "silent_for": round(row.silent_for, 1),
        "threads": row.threads,
        "shares_workspaces": row.shares_workspaces,
    }
