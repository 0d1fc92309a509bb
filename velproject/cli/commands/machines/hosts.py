"""`vel hosts`: the machines that share one database."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence

import click

from agents.doors.cli.boot import with_database
from agents.doors.cli.errors import FAILED, CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option
from agents.doors.cli.terminal import one_line

with late_imports:
    from agents.doors.cli.console import print_table
    from agents.services.machines.actions import (
        MachineState,
        adopt_threads,
        forget_machine,
        machine_states,
        set_draining,
        staying_threads,
        stuck_threads,
    )
    from agents.services.machines.actions import declare_dead as declare_host_dead

LOOK_SECONDS = 1.0
MOST_SHOWN = 20
"""The number of threads that a message names."""


@click.group(short_help="List hosts, drain a host, or declare it dead.")
def hosts() -> None:
    """Manage the machines of an installation with several hosts (VEL_HOST)."""


@hosts.command("list")
@with_database
@json_option
def list_hosts(as_json: bool) -> None:
    """List the hosts with their states, last heartbeats and numbers of threads."""
    rows = machine_states()
    if as_json:
        for row in rows:
            print(json.dumps(as_data(row)))
        return
    if not rows:
        print("No named hosts: no process was started with VEL_HOST.", file=sys.stderr)
        return
    print_table(
        ("HOST", "STATE", "LAST SEEN", "THREADS"),
        ((row.name, row.state, f"{row.silent_for:.0f} s ago", str(row.threads)) for row in rows),
    )


@hosts.command("drain")
@click.argument("name")
@click.option(
    "--wait/--no-wait", default=True, help="Wait until all threads have moved [default: wait]."
)
@with_database
def drain(name: str, wait: bool) -> None:
    """Stop new work on a host and move its threads, with their files, to other hosts.

    The host must be running. Its runs stop at their next step and continue on another host.

    Threads in directories of its users (--workspace) stay. If other threads cannot be moved, the
    command names them and fails.
    """
    set_draining(name, True)
    told = -1
    while wait:
        row = next((row for row in machine_states() if row.name == name), None)
        if row is None or row.state == "dead":
            raise CliError(f"The host {name} is gone.")
        if row.threads != told:
            told = row.threads
            print(f"{name} is drained" if not told else f"threads on {name}: {told}", flush=True)
        if not told:
            return
        staying, stuck = staying_threads(name), stuck_threads(name)
        if told <= len(staying) + len(stuck):
            _report_left(name, staying, stuck)
            return
        if row.state == "silent":
            raise CliError(
                f"The host {name} sends no heartbeats, so it cannot store its files. Start its "
                f"workers, or run: vel hosts declare-dead {name}"
            )
        time.sleep(LOOK_SECONDS)
    print(f"{name} is being drained")


def _report_left(name: str, staying: Sequence[str], stuck: Mapping[str, str]) -> None:
    """Print which threads stay on a drained host. Raises `CliError` if some should have moved."""
    if staying:
        print(
            f"Threads that stay on {name}, in directories of its users: {len(staying)}. Before "
            f"`vel hosts forget`, erase them: {_erase(staying[0])}"
        )
    if not stuck:
        print(f"{name} is drained")
        return
    for thread_id, reason in list(stuck.items())[:MOST_SHOWN]:
        print(f"Thread {thread_id} cannot be moved: {one_line(reason, 300)}")
    raise CliError(
        f"{name} is not drained: {len(stuck)} of its threads cannot be moved. Delete some of their "
        f"files, or erase the threads ({_erase(next(iter(stuck)))}). Then repeat the command.",
        exit_code=FAILED,
    )


def _erase(thread_id: str) -> str:
    return f"vel prune --thread {thread_id} --apply"


@hosts.command("undrain")
@click.argument("name")
@with_database
def undrain(name: str) -> None:
    """Let a drained host start runs again."""
    set_draining(name, False)
    print(f"{name} starts runs again")


@hosts.command("declare-dead")
@click.argument("name")
@with_database
def declare_dead(name: str) -> None:
    """Let other hosts continue the threads of a failed host.

    Files that exist only on this host are lost, and the agents of their threads receive a message
    about it. Stop the host first, and wait: Vel refuses a host that has sent a heartbeat within
    VEL_LEASE_SECONDS.
    """
    moved = declare_host_dead(name)
    print(f"{name} is declared dead; threads that other hosts can continue: {moved}")


@hosts.command("adopt")
@click.argument("name")
@with_database
def adopt(name: str) -> None:
    """Move the threads of a former name of this machine to its current name."""
    print(f"threads moved from {name} to this host: {adopt_threads(name)}")


@hosts.command("forget")
@click.argument("name")
@with_database
def forget(name: str) -> None:
    """Remove a host without threads from the list."""
    forget_machine(name)
    print(f"{name} is removed from the list")


def as_data(row: MachineState) -> dict[str, object]:
    return {
        "name": row.name,
        "state": row.state,
        "silent_for": round(row.silent_for, 1),
        "threads": row.threads,
        "shares_workspaces": row.shares_workspaces,
    }
