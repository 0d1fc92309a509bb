"""`vel memory`: what an agent remembers."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option, persist_option

MAX_CONTENT = 1024**2
"""No file may be as large: the service says how large one may be."""

agent_argument = click.argument("agent", metavar="AGENT")
path_argument = click.argument("path", metavar="FILE")
reason_option = click.option("--reason", default="", help="Why; kept with the revision.")
content_option = click.option(
    "--from",
    "source",
    metavar="PATH",
    type=click.File("rb"),
    default="-",
    help="Take the content from this file instead of standard input.",
)


@click.group(short_help="Read, change, export and import what an agent remembers.")
def memory() -> None:
    """What an agent remembers, as files: knowledge/… and skills/NAME.md.

    AGENT is a slug, or the beginning of an id. AGENTS.md (the prompt) and tools.json only show
    the agent's settings.
    """


@memory.command("list")
@agent_argument
@click.argument("directory", required=False, default="")
@persist_option
@json_option
def list_files(agent: str, directory: str, persist: Path | None, as_json: bool) -> int:
    """Show the files, or those in one directory."""
    return perform(
        "commands.memory:list_files",
        persist=persist,
        agent=agent,
        directory=directory,
        as_json=as_json,
    )


@memory.command("read")
@agent_argument
@path_argument
@persist_option
@click.option("--revision", type=click.IntRange(min=1), help="As it was at this revision.")
def read(agent: str, path: str, persist: Path | None, revision: int | None) -> int:
    """Print a file. A terminal gets hidden characters as code points, a pipe the very bytes."""
    return perform(
        "commands.memory:read", persist=persist, agent=agent, path=path, revision=revision
    )


@memory.command("write")
@agent_argument
@path_argument
@content_option
@reason_option
@persist_option
@click.option(
    "--base", type=click.IntRange(min=0), help="Refuse unless the file is at this revision."
)
def write(
    agent: str,
    path: str,
    source: BinaryIO,
    reason: str,
    persist: Path | None,
    base: int | None,
) -> int:
    """Create a file, or replace it whole."""
    return perform(
        "commands.memory:write",
        persist=persist,
        agent=agent,
        path=path,
        content=_read(source),
        reason=reason,
        base=base,
    )


@memory.command("append")
@agent_argument
@path_argument
@content_option
@reason_option
@persist_option
def append(agent: str, path: str, source: BinaryIO, reason: str, persist: Path | None) -> int:
    """Add to the end of a file."""
    return perform(
        "commands.memory:append",
        persist=persist,
        agent=agent,
        path=path,
        content=_read(source),
        reason=reason,
    )


@memory.command("delete")
@agent_argument
@path_argument
@persist_option
def delete(agent: str, path: str, persist: Path | None) -> int:
    """Delete a file. Its revisions stay, and `restore` brings it back."""
    return perform("commands.memory:delete", persist=persist, agent=agent, path=path)


@memory.command("history")
@agent_argument
@path_argument
@persist_option
@json_option
def history(agent: str, path: str, persist: Path | None, as_json: bool) -> int:
    """Show every revision of a file, the latest first."""
    return perform(
        "commands.memory:history", persist=persist, agent=agent, path=path, as_json=as_json
    )


@memory.command("restore")
@agent_argument
@path_argument
@click.argument("revision", type=click.IntRange(min=1))
@persist_option
def restore(agent: str, path: str, revision: int, persist: Path | None) -> int:
    """Make a file what it was at REVISION, as a new revision."""
    return perform(
        "commands.memory:restore", persist=persist, agent=agent, path=path, revision=revision
    )


@memory.command("export")
@agent_argument
@click.argument("directory", type=click.Path(path_type=Path))
@persist_option
def export(agent: str, directory: Path, persist: Path | None) -> int:
    """Write the whole memory into DIRECTORY, which must be new or empty."""
    return perform("commands.memory:export", persist=persist, agent=agent, directory=directory)


@memory.command("import")
@agent_argument
@click.argument("directory", type=click.Path(path_type=Path))
@persist_option
@click.option("--prompt", "with_prompt", is_flag=True, help="AGENTS.md too, as the prompt.")
@click.option("--accept-findings", is_flag=True, help="Keep text that the scanner suspects.")
@click.option("--apply", is_flag=True, help="Do it. Without this nothing is changed.")
def import_folder(
    agent: str,
    directory: Path,
    persist: Path | None,
    with_prompt: bool,
    accept_findings: bool,
    apply: bool,
) -> int:
    """Take knowledge/ and skills/ from DIRECTORY, all of them or none.

    Files that only the memory has stay. Without --apply it only says what it would change and what
    the scanner suspects.
    """
    return perform(
        "commands.memory:import_folder",
        persist=persist,
        agent=agent,
        directory=directory,
        with_prompt=with_prompt,
        accept_findings=accept_findings,
        apply=apply,
    )


def _read(source: BinaryIO) -> str:
    data = source.read(MAX_CONTENT + 1)
    if len(data) > MAX_CONTENT:
        raise click.UsageError(f"The content has more than {MAX_CONTENT:,} bytes.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise click.UsageError("The content is not UTF-8 text.") from None
