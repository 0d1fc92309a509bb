"""`vel worker`: one cluster of workers in the foreground."""

from __future__ import annotations

import os
from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import persist_option


@click.command(short_help="Start workers only, for another supervisor to watch.")
@click.option(
    "--workers", type=click.IntRange(1, 64), help="Worker processes [default: VEL_WORKERS, or 2]"
)
@persist_option
def worker(workers: int | None, persist: Path | None) -> int:
    """Start one cluster of workers and stay until SIGTERM; send that to this process alone."""
    if workers is not None:
        os.environ["VEL_WORKERS"] = str(workers)
    return perform("commands.machines.worker:worker", persist=persist, log_level="INFO")
