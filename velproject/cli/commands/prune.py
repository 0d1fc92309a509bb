"""`vel prune`: removal of data after its retention period, and erasure of threads."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import click

from agents.doors.cli.boot import again, database
from agents.doors.cli.errors import CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import Days, json_option, persist_option
from agents.doors.cli.terminal import one_line

with late_imports:
    from django.contrib.auth import get_user_model
    from django.db import OperationalError, connection

    from agents.kernel.erasure import Stays, keepers
    from agents.models import Thread
    from agents.services.erasure.actions import (
        answers_of,
        erase_answers_of,
        erase_thread,
        finish_erasures,
        what_erasure_removes,
    )
    from agents.services.erasure.retention import Keep, what_is_old
    from agents.services.erasure.retention import prune as prune_old
    from agents.services.errors import ServiceError


ANSWERS = "idempotencykey"
"""The name of stored answers in the output: the name of their model, as for all rows."""


@click.command(short_help="Remove old data, or erase threads.")
@persist_option
@json_option
@click.option(
    "--older-than",
    "days",
    type=Days(least=1),
    metavar="DAYS",
    help="Age of removed threads, such as 90 or 90d. Default: VEL_KEEP_THREADS.",
)
@click.option("--thread", "threads", multiple=True, metavar="ID", help="Erase this thread.")
@click.option("--user", metavar="NAME", help="Erase all threads of this user.")
@click.option("--vacuum", is_flag=True, help="Return free space in the SQLite file to the disk.")
@click.option("--apply", is_flag=True, help="Remove the data. Without this, only show it.")
def prune(
    persist: Path | None,
    as_json: bool,
    days: int | None,
    threads: tuple[str, ...],
    user: str | None,
    vacuum: bool,
    apply: bool,
) -> int:
    """Show or remove data older than its retention setting (VEL_KEEP_…), or named threads.

    Threads are removed with their runs, files, uploads, snapshots and subagents. Vel keeps the
    totals of tokens and cost, and the audit log. A thread with an active run is not
    removed. Without --apply, the command only shows the data that it would remove.
    """
    if days is not None and (threads or user):
        raise click.UsageError("--older-than cannot be combined with --thread or --user.")
    if vacuum and not apply:
        raise click.UsageError("--vacuum needs --apply.")
    with database(persist):
        failed = 0
        if threads or user is not None:
            failed, found = _erase(_named(threads, user), user, apply=apply)
        else:
            keep = Keep.of_settings()
            if days is not None:
                keep = replace(keep, threads=days)
            found = prune_old(keep) if apply else what_is_old(keep)
        _tell(found, as_json=as_json, apply=apply)
        if vacuum:
            _vacuum()
    return 1 if failed else 0


def _named(threads: Iterable[str], user: str | None) -> list[Thread]:
    """Return the threads to erase. Raises `CliError` for an unknown thread or user."""
    found = []
    for name in threads:
        row = Thread.objects.filter(pk=name, root=None).first()
        if row is None:
            raise CliError(
                f"There is no thread {one_line(name)!r}. "
                f"List the IDs: {again('runs list --all --threads')}"
            )
        found.append(row)
    if user is not None:
        owner = _user(user)
        found += Thread.objects.filter(owner=owner, root=None).order_by("pk")
    return list({row.pk: row for row in found}.values())


def _user(name: str) -> int:
    users = get_user_model()
    found = users.objects.filter(**{users.USERNAME_FIELD: name}).first()
    if found is None:
        raise CliError(f"There is no user {one_line(name)!r}.")
    return int(found.pk)


def _erase(threads: list[Thread], user: str | None, *, apply: bool) -> tuple[int, Counter[str]]:
    """Erase threads, and print which copies of their data stay elsewhere.

    Returns the number of refused threads, and the number of erased rows by kind.
    """
    refused = 0
    stays: set[tuple[str, Stays]] = set()
    found: Counter[str] = Counter()
    answers: set[int] = set()
    for thread in threads:
        kept = [(each.line, thing) for each in keepers() for thing in each.find(thread.pk)]
        try:
            if apply:
                found[ANSWERS] += erase_thread(thread.pk, by=None)
            else:
                would = what_erasure_removes(thread)
                found += Counter({"thread": 1, "run": would.runs})
                answers |= would.answers
        except ServiceError as error:
            refused += 1
            print(f"thread {thread.pk} was not removed: {error.message}", file=sys.stderr)
        else:
            stays.update(kept)
    owner = _user(user) if user is not None else None
    if apply:
        if owner is not None:
            found[ANSWERS] += erase_answers_of(owner)
        found += finish_erasures()
    else:
        if owner is not None:
            answers.update(answers_of(owner).values_list("pk", flat=True))
        found[ANSWERS] += len(answers)
    for line, thing in sorted(stays):
        said = line.format(agent=one_line(thing.agent), name=one_line(thing.name))
        print(said, file=sys.stderr)
    return refused, +found


def _tell(found: Counter[str], *, as_json: bool, apply: bool) -> None:
    if as_json:
        print(json.dumps({"removed" if apply else "would_remove": dict(sorted(found.items()))}))
        return
    verb = "removed" if apply else "would remove"
    for name, count in sorted(found.items()):
        print(f"{verb} {count:,} {name}")
    if not found:
        print("No data is old enough." if not apply else "Nothing was removed.", file=sys.stderr)
    elif not apply:
        print("Nothing was removed. Add --apply to remove it.", file=sys.stderr)


def _vacuum() -> None:
    """Rewrite the database file to release free space.

    Needs free disk space of the file's size, and no other process that writes.
    """
    if connection.vendor != "sqlite":
        raise CliError("--vacuum is only for SQLite. PostgreSQL does this automatically.")
    try:
        with connection.cursor() as cursor:
            cursor.execute("VACUUM")
    except OperationalError as error:
        raise CliError(f"The file could not be rewritten: {error}. Stop vel up first.") from error


COMMANDS = (prune,)
