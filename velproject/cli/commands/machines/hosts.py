"""The actions of `vel hosts`."""

from __future__ import annotations

import json
import sys
import time

from agents.services.hosts import (
    HostState,
    adopt_threads,
    declare_dead,
    forget_host,
    host_states,
    set_draining,
)
from velproject.cli.console import print_table
from velproject.cli.errors import CliError

LOOK_SECONDS = 1.0


def list_hosts(*, as_json: bool) -> None:
    """By name."""
    rows = host_states()
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


def as_data(row: HostState) -> dict[str, object]:
    return {
        "name": row.name,
        "state": row.state,
        "silent_for": round(row.silent_for, 1),
        "threads": row.threads,
        "shares_workspaces": row.shares_workspaces,
    }


def drain(*, name: str, wait: bool) -> None:
    """Says how many threads are left, each time that changes."""
    set_draining(name, True)
    told = -1
    while wait:
        row = next((row for row in host_states() if row.name == name), None)
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


def undrain(*, name: str) -> None:
    set_draining(name, False)
    print(f"{name} takes runs again")


def declare_host_dead(*, name: str) -> None:
    moved = declare_dead(name)
    print(f"{name} counts as dead; threads that may go on elsewhere: {moved}")


def adopt(*, name: str) -> None:
    print(f"threads of {name} that are this host's now: {adopt_threads(name)}")


def forget(*, name: str) -> None:
    forget_host(name)
    print(f"{name} is forgotten")
