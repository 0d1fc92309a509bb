"""`vel workspaces`: the files of threads on this machine."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from agents.doors.cli.boot import with_database
from agents.doors.cli.errors import CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import Days, json_option
from agents.doors.cli.terminal import one_line

with late_imports:
    from django.utils import timezone

    from agents.doors.cli.console import print_table
    from agents.kernel.retention import unused_files
    from agents.models import StateFile, WorkspaceSnapshot
    from agents.services.errors import Conflict
    from agents.services.files.changes import shown_path
    from agents.services.files.workspace_care import (
        KeptWorkspace,
        archive_workspace,
        is_busy,
        is_old,
        kept_workspaces,
        remove_leftovers,
        remove_workspace,
    )
    from agents.settings import DataSettings, RetentionSettings
    from sandbox.directories.tree_size import TreeSize, tree_size
    from sandbox.paths import AREAS


@click.group(short_help="List, archive and remove the files of threads.")
def workspaces() -> None:
    """Manage the files of all users' threads on this machine."""


@workspaces.command("list")
@with_database
@json_option
def list_workspaces(as_json: bool) -> None:
    """List the workspaces with their owners, ages and sizes."""
    rows = [as_data(kept) for kept in kept_workspaces()]
    if as_json:
        for row in rows:
            print(json.dumps(row))
        return
    if not rows:
        print("No workspaces yet. The first run of a thread creates one.", file=sys.stderr)
        return
    print_table(
        ("THREAD", "OWNER", "QUIET FOR", "SIZE", "FILES", "TITLE"),
        (
            (
                row["thread"],
                one_line(row["owner"] or "(orphan)", 30),
                f"{row['quiet_days']} d" if row["quiet_days"] is not None else "–",
                shown_size(row["size"], row["complete"]),
                str(row["files"]),
                one_line(row["title"], 50),
            )
            for row in rows
        ),
    )


@workspaces.command("show")
@click.argument("thread")
@with_database
@json_option
def show(thread: str, as_json: bool) -> None:
    """Show the directories, snapshots and last changes of a workspace."""
    kept = find_workspace(thread)
    areas = {area: tree_size(kept.directory / area) for area in AREAS}
    steps = WorkspaceSnapshot.objects.filter(thread=thread)
    snapshots = tree_size(DataSettings.now().snapshots / kept.key)
    if as_json:
        sizes = {area: found.size for area, found in areas.items()}
        more = {"areas": sizes, "snapshots": steps.count(), "snapshot_size": snapshots.size}
        print(json.dumps({**as_data(kept), **more}))
        return
    print_table(
        ("AREA", "SIZE", "FILES"),
        ((area, size_of(found), str(found.files)) for area, found in areas.items()),
    )
    print(f"{steps.count()} snapshots take {size_of(snapshots)}.")
    for row in steps.order_by("-pk")[:10]:
        where = f"run {row.run_id} turn {row.turn}" if row.run_id else row.get_cause_display()
        print(f"  {row.pk}: {where}: +{row.added} ~{row.changed} -{row.deleted}")


@workspaces.command("prune")
@with_database
@click.option(
    "--older-than",
    "days",
    type=Days(least=0),
    metavar="DAYS",
    help="Age of removed workspaces, such as 90 or 90d. Default: VEL_WORKSPACE_RETENTION_DAYS.",
)
@click.option("--archive", is_flag=True, help="Archive each workspace first.")
@click.option("--apply", is_flag=True, help="Remove them. Without this, only show them.")
def prune(days: int | None, archive: bool, apply: bool) -> int:
    """Remove old workspaces and those of deleted threads, with their snapshots.

    The conversations stay; `vel prune` removes both. Threads with an active run are not touched.
    Without --apply, the command only shows the workspaces that it would remove.
    """
    limit = RetentionSettings.now().WORKSPACE_RETENTION_DAYS if days is None else days
    failed = taken = 0
    for kept in kept_workspaces():
        if not is_old(kept, limit):
            continue
        taken += 1
        what = "orphan" if kept.thread is None else f"quiet for more than {limit} days"
        size = size_of(tree_size(kept.directory))
        if not apply:
            print(f"would {'archive and ' if archive else ''}remove {kept.key}  {size}  {what}")
            continue
        try:
            if archive:
                _archive(kept, DataSettings.now().archives)
            remove_workspace(kept)
        except (Conflict, OSError) as error:
            failed += 1
            print(f"{kept.key} was not removed: {error}", file=sys.stderr)
        else:
            print(f"removed {kept.key}  {size}  {what}")
    unused = 0
    for files in unused_files():
        found = len(files.remove(limit, apply))
        unused += found
        if found:
            print(f"{'removed' if apply else 'would remove'} {found} {files.name}")
    if apply:
        for name in remove_leftovers():
            print(f"removed {one_line(name)}")
    elif taken or unused:
        print("Nothing was removed. Add --apply to remove them.", file=sys.stderr)
    if not taken:
        print("No workspace is old enough.", file=sys.stderr)
    return 1 if failed else 0


@workspaces.command("archive")
@click.argument("thread")
@with_database
@click.option(
    "--to",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Target directory. Default: `archives` in the data directory.",
)
def archive(thread: str, directory: Path | None) -> None:
    """Copy a workspace into a tar.gz archive and print its path."""
    try:
        _archive(find_workspace(thread), directory or DataSettings.now().archives)
    except Conflict as error:
        raise CliError(error.message) from error
    except OSError as error:
        raise CliError(f"The archive cannot be written: {error}.") from error


def _archive(kept: KeptWorkspace, directory: Path) -> None:
    target, done = archive_workspace(kept, directory)
    for path, why in done.left_out:
        print(f"skipped {one_line(shown_path(path))}: {one_line(why)}", file=sys.stderr)
    print(os.fspath(target))


def find_workspace(thread: str) -> KeptWorkspace:
    for kept in kept_workspaces():
        if kept.key == thread:
            return kept
    name = one_line(thread)
    if StateFile.objects.filter(thread=thread).exists():
        raise CliError(
            f"The thread {name} has no workspace: its files are in the database. "
            "`vel runs files RUN --to DIR` copies those of a run's thread."
        )
    raise CliError(f"There is no workspace {name!r}. List them: vel workspaces list")


def as_data(kept: KeptWorkspace) -> dict[str, Any]:
    thread, found = kept.thread, tree_size(kept.directory)
    last = getattr(thread, "last_run", None) or (thread.created_at if thread else None)
    return {
        "thread": kept.key,
        "owner": thread.owner.get_username() if thread else None,
        "title": thread.title if thread else "",
        "busy": is_busy(thread) if thread else False,
        "quiet_days": (timezone.now() - last).days if last else None,
        "size": found.size,
        "files": found.files,
        "complete": found.is_complete,
    }


def size_of(found: TreeSize) -> str:
    return shown_size(found.size, found.is_complete)


def shown_size(size: float, is_complete: bool) -> str:
    """Return a size such as 1.5 MB, followed by + if it is incomplete."""
    unit = "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            break
        size /= 1000
    number = f"{size:.0f}" if unit == "B" else f"{size:.1f}"
    return f"{number} {unit}{'' if is_complete else '+'}"


COMMANDS = (workspaces,)
