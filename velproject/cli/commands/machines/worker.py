"""`vel worker`: one cluster of workers in the foreground."""

from __future__ import annotations

import os
from pathlib import Path

import click

from agents.doors.cli.boot import database
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import persist_option
from velproject.child import SETTINGS

with late_imports:
    from velproject.child import run_workers
    from velproject.cli.commands.machines.safe import announce_sandbox, refuse_unsafe

workers_option = click.option(
    "--workers", type=click.IntRange(1, 64), help="Worker processes. Default: VEL_WORKERS, or 2."
)


@click.command(short_help="Start only workers, under your own supervisor.")
@workers_option
@persist_option
def worker(workers: int | None, persist: Path | None) -> None:
    """Run the worker processes of this machine until SIGTERM.

    Send the signal only to this process: it stops its workers.
    """
    if workers is not None:
        os.environ["VEL_WORKERS"] = str(workers)  # the settings read it
    with database(persist, log_level="INFO", settings=SETTINGS):
        refuse_unsafe()
        announce_sandbox()
        run_workers()
