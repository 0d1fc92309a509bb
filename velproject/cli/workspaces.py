"""`vel workspaces`: the files of threads on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option, persist_option


@click.group(short_help="List, archive and remove the files of threads.")
def workspaces() -> None:
    """The files of threads on this machine, whoever owns them."""


@workspaces.command("list")
@persist_option
@json_option
def list_workspaces(persist: Path | None, as_json: bool) -> int:
    """Show each workspace with its owner, age and size."""
    return perform("commands.workspaces:list_workspaces", persist=persist, as_json=as_json)


@workspaces.command("show")
@click.argument("thread")
@persist_option
@json_option
def show(thread: str, persist: Path | None, as_json: bool) -> int:
    """Show one workspace: its areas, snapshots and last changes."""
    return perform("commands.workspaces:show", persist=persist, thread=thread, as_json=as_json)


@workspaces.command("prune")
@persist_option
@click.option(
    "--older-than",
    "days",
    type=click.IntRange(0, 36_500),
    metavar="DAYS",
    help="Threads that were quiet for so long; else WORKSPACE_RETENTION_DAYS of the settings.",
)
@click.option("--archive", is_flag=True, help="Write each into an archive first.")
@click.option("--apply", is_flag=True, help="Do it. Without this nothing is removed.")
def prune(persist: Path | None, days: int | None, archive: bool, apply: bool) -> int:
    """Remove old workspaces with their snapshots, and those whose thread is gone.

    Threads with a run that has not ended are left alone. Without --apply it only says what it
    would do.
    """
    return perform(
        "commands.workspaces:prune", persist=persist, days=days, archive=archive, apply=apply
    )


@workspaces.command("archive")
@click.argument("thread")
@persist_option
@click.option(
    "--to",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where it goes; else `archives` in the data directory.",
)
def archive(thread: str, persist: Path | None, directory: Path | None) -> int:
    """Write a workspace into a tar.gz and print its path. The workspace stays."""
    return perform(
        "commands.workspaces:archive", persist=persist, thread=thread, directory=directory
    )
