"""`vel runs`: list, show, cancel and resume."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option, persist_option


@click.group(short_help="List, show, cancel and resume runs.")
def runs() -> None:
    """Your runs. RUN is an id or the beginning of one."""


@runs.command("list")
@persist_option
@json_option
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@click.option("--status", help="Only those that are, for example, waiting.")
@click.option("--all", "everybody", is_flag=True, help="The runs of all users.")
@click.option("--threads", is_flag=True, help="With the ids of their threads.")
def list_runs(
    persist: Path | None,
    as_json: bool,
    limit: int,
    status: str | None,
    everybody: bool,
    threads: bool,
) -> int:
    """Show runs, newest first."""
    return perform(
        "commands.runs.runs:list_runs",
        persist=persist,
        as_json=as_json,
        limit=limit,
        status=status,
        everybody=everybody,
        threads=threads,
    )


@runs.command("show")
@click.argument("run_id", metavar="RUN")
@persist_option
@json_option
@click.option("--follow", "-f", is_flag=True, help="Stay until the run ends or waits.")
def show_run(run_id: str, persist: Path | None, as_json: bool, follow: bool) -> int:
    """Show what a run did."""
    return perform(
        "commands.runs.one_run:show_run",
        persist=persist,
        run_id=run_id,
        as_json=as_json,
        follow=follow,
    )


@runs.command("cancel")
@click.argument("run_id", metavar="RUN")
@persist_option
@click.option("--reason", default="", help="Kept with the run.")
def cancel(run_id: str, persist: Path | None, reason: str) -> int:
    """End a run."""
    return perform("commands.runs.one_run:cancel", persist=persist, run_id=run_id, reason=reason)


@runs.command("resume")
@click.argument("run_id", metavar="RUN")
@persist_option
@json_option
@click.option("--detach", is_flag=True, help="Hand it to the workers instead of driving it here.")
def resume(run_id: str, persist: Path | None, as_json: bool, detach: bool) -> int:
    """Let a run go on that failed, waits for you, or lost its process."""
    return perform(
        "commands.runs.one_run:resume",
        persist=persist,
        run_id=run_id,
        as_json=as_json,
        detach=detach,
    )
