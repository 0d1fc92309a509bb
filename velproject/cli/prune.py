"""`vel prune`: removing what is older than it is kept, and erasing threads."""

from __future__ import annotations

import re
from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option, persist_option


class Days(click.ParamType):
    """Days, as 90 or 90d."""

    name = "days"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        found = re.fullmatch(r"([0-9]{1,5})d?", str(value))
        if found is None or not 0 < int(found[1]) <= 36_500:
            self.fail("write a number of days from 1 to 36500, as 90d", param, ctx)
        return int(found[1])


@click.command(short_help="Remove old threads and other old rows, or erase some.")
@persist_option
@json_option
@click.option(
    "--older-than",
    "days",
    type=Days(),
    metavar="DAYS",
    help="Threads that were quiet for so long, as 90d; else VEL_KEEP_THREADS.",
)
@click.option("--thread", "threads", multiple=True, metavar="ID", help="Erase this thread.")
@click.option("--user", metavar="NAME", help="Erase all threads of this user.")
@click.option("--vacuum", is_flag=True, help="Give free space in the SQLite file back to the disk.")
@click.option("--apply", is_flag=True, help="Do it. Without this nothing is removed.")
def prune(
    persist: Path | None,
    as_json: bool,
    days: int | None,
    threads: tuple[str, ...],
    user: str | None,
    vacuum: bool,
    apply: bool,
) -> int:
    """Remove what is older than the settings keep it (VEL_KEEP_…), or erase threads.

    Threads go with their runs, files, uploads, snapshots and subagents; sums of tokens and cost
    stay, and so does the audit log. A thread with a run that has not ended is left alone. Without
    --apply it only says what it would remove.
    """
    if days is not None and (threads or user):
        raise click.UsageError("--older-than does not go with --thread or --user.")
    if vacuum and not apply:
        raise click.UsageError("--vacuum needs --apply.")
    return perform(
        "commands.prune:prune",
        persist=persist,
        as_json=as_json,
        days=days,
        threads=threads,
        user=user,
        vacuum=vacuum,
        apply=apply,
    )
