"""`vel up`: web and workers as one supervised command."""

from __future__ import annotations

import os
from pathlib import Path

import click

from velproject.cli import SETTINGS
from velproject.cli.boot import perform
from velproject.cli.options import persist_option


@click.command(short_help="Start the web pages, the API and the workers.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option(
    "--workers", type=click.IntRange(1, 64), help="Worker processes [default: VEL_WORKERS, or 2]"
)
@click.option(
    "--grace",
    type=click.FloatRange(0, 3600),
    default=30.0,
    show_default=True,
    help="Seconds that runs get to come to a stop when it ends.",
)
@persist_option
def up(host: str, port: int, workers: int | None, grace: float, persist: Path | None) -> int:
    """Prepare the database, then start and watch web and workers until Ctrl-C or SIGTERM."""
    if workers is not None:
        os.environ["VEL_WORKERS"] = str(workers)
    return perform(
        "commands.machines.up:up",
        persist=persist,
        log_level="INFO",
        settings=SETTINGS,
        host=host,
        port=port,
        grace=grace,
    )
