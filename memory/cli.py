"""`vel memory`: commands for the files that an agent remembers."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import click

from agents.doors.cli.boot import database, with_database
from agents.doors.cli.errors import CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option, persist_option
from agents.doors.cli.slash_commands import Session, SlashCommand
from agents.doors.cli.terminal import one_line, visible

with late_imports:
    from agents.doors.cli.console import print_table
    from agents.doors.cli.find import agent_named
    from agents.doors.cli.findings import show_findings
    from agents.doors.cli.local_user import local_user
    from agents.models import Agent
    from agents.selectors.visible import agents_for
    from memory.actions import changes as memory_changes
    from memory.actions.bundle import (
        ImportPlan,
        carry_out_import,
        export_memory,
        plan_import,
    )
    from memory.actions.purge import plan_purge, purge_history
    from memory.errors import NoSuchFile
    from memory.limits import size_of
    from memory.paths import InvalidPath
    from memory.queries.files import (
        list_memory_entries,
        memory_revisions,
        memory_state,
        revision_content,
    )

DOOR = "cli"
MAX_CONTENT = 1024**2
"""Above the limit for one file, which the service checks and names."""

agent_argument = click.argument("agent", metavar="AGENT")
path_argument = click.argument("path", metavar="FILE")
reason_option = click.option("--reason", default="", help="The reason, stored with the revision.")
content_option = click.option(
    "--from",
    "source",
    metavar="PATH",
    type=click.File("rb"),
    default="-",
    help="Take the content from this file instead of standard input.",
)


@click.group(short_help="Read, change, export and import an agent's memory.")
def memory() -> None:
    """Manage an agent's memory: `knowledge/`, `skills/` (its own skills) and `me/` (about you).

    AGENT is a slug, or the start of an ID. AGENTS.md (the prompt) and tools.json show the
    agent's settings: `write`, `append` and `delete` cannot change them.
    """


@memory.command("list")
@agent_argument
@click.argument("directory", required=False, default="")
@with_database
@json_option
def list_files(agent: str, directory: str, as_json: bool) -> None:
    """Show all files, or those in one directory."""
    entries = list_memory_entries(_agent(agent).pk, directory, local_user().pk)
    if as_json:
        for entry in entries:
            print(json.dumps(asdict(entry), default=datetime.isoformat))
        return
    if not entries:
        print("No files there.", file=sys.stderr)
        return
    print_table(
        ("BYTES", "CHANGED", "FILE"),
        ((f"{e.size_bytes:,}", f"{e.updated_at:%Y-%m-%d %H:%M}", e.path) for e in entries),
    )


@memory.command("read")
@agent_argument
@path_argument
@with_database
@click.option(
    "--revision", type=click.IntRange(min=1), help="The revision; default: the current file."
)
def read(agent: str, path: str, revision: int | None) -> None:
    """Print a file: hidden characters as code points at a terminal, the exact bytes to a pipe."""
    found, reader = _agent(agent), local_user().pk
    try:
        if revision is None:
            content = memory_state(found.pk, path, reader).content
        else:
            content = revision_content(found.pk, path, revision, reader)
    except (InvalidPath, NoSuchFile) as problem:
        raise CliError(str(problem)) from None
    if content is None:
        then = f" at revision {revision}" if revision else ""
        raise CliError(f"There is no {one_line(path)} in the memory{then}.")
    if sys.stdout.isatty():
        print(visible(content))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content.encode())


@memory.command("write")
@agent_argument
@path_argument
@content_option
@reason_option
@persist_option
@click.option(
    "--base",
    type=click.IntRange(min=0),
    help="Refuse unless the file is at this revision; 0 means that there is no file.",
)
def write(
    agent: str,
    path: str,
    source: BinaryIO,
    reason: str,
    persist: Path | None,
    base: int | None,
) -> None:
    """Create a file, or replace all of it."""
    content = _read(source)
    with database(persist):
        number = memory_changes.write_file(
            _agent(agent),
            path,
            content,
            by=local_user(),
            base_revision=base,
            source=DOOR,
            reason=reason,
        )
        print(f"{path} is at revision {number}.")


@memory.command("append")
@agent_argument
@path_argument
@content_option
@reason_option
@persist_option
def append(agent: str, path: str, source: BinaryIO, reason: str, persist: Path | None) -> None:
    """Add to the end of a file, on a new line. Creates the file if there is none."""
    content = _read(source)
    with database(persist):
        number = memory_changes.append_to_file(
            _agent(agent), path, content, by=local_user(), source=DOOR, reason=reason
        )
        print(f"{path} is at revision {number}.")


def _read(source: BinaryIO) -> str:
    data = source.read(MAX_CONTENT + 1)
    if len(data) > MAX_CONTENT:
        raise click.UsageError(f"The content has more than {MAX_CONTENT:,} bytes.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise click.UsageError("The content is not UTF-8 text.") from None


@memory.command("delete")
@agent_argument
@path_argument
@with_database
def delete(agent: str, path: str) -> None:
    """Delete a file. Its revisions stay, and `restore` brings it back."""
    number = memory_changes.delete_file(_agent(agent), path, by=local_user(), source=DOOR)
    print(f"{path} is deleted (revision {number}).")


@memory.command("history")
@agent_argument
@path_argument
@with_database
@json_option
def history(agent: str, path: str, as_json: bool) -> None:
    """Show every revision of a file, the latest first."""
    try:
        revisions = memory_revisions(_agent(agent).pk, path, local_user().pk)
    except InvalidPath as problem:
        raise CliError(str(problem)) from None
    if as_json:
        for revision in revisions:
            print(json.dumps(asdict(revision), default=datetime.isoformat))
        return
    if not revisions:
        raise CliError(f"{one_line(path)} has no revisions.")
    print_table(
        ("REVISION", "OPERATION", "BYTES", "WHEN", "BY", "THROUGH", "REASON"),
        (
            (
                str(revision.number),
                revision.operation,
                "purged"
                if revision.is_purged
                else "–"
                if revision.is_deleted
                else f"{revision.size_bytes:,}",
                f"{revision.created_at:%Y-%m-%d %H:%M}",
                one_line(revision.by or "–", 30),
                revision.source,
                one_line(revision.reason, 60),
            )
            for revision in revisions
        ),
    )


@memory.command("restore")
@agent_argument
@path_argument
@click.argument("revision", type=click.IntRange(min=1))
@with_database
def restore(agent: str, path: str, revision: int) -> None:
    """Restore a file to REVISION, as a new revision."""
    number = memory_changes.restore_revision(
        _agent(agent), path, revision, by=local_user(), source=DOOR
    )
    print(f"{path} is restored to revision {revision} (as revision {number}).")


@memory.command("purge")
@agent_argument
@path_argument
@with_database
@click.option("--apply", is_flag=True, help="Make the changes. Without this, only show them.")
def purge(agent: str, path: str, apply: bool) -> None:
    """Erase a file's earlier contents, so that nobody can read or restore them.

    The current file stays. Times, people and operations of its history stay. Conversations that
    contain the texts stay: the command lists them, with the commands that erase them.
    """
    found, user = _agent(agent), local_user()
    memory_changes.check_may_change(found, user, path)
    plan = plan_purge(found, path, user.pk)
    if apply:
        plan = purge_history(found, path, by=user, source=DOOR)
    done = "are" if apply else "would be"
    print(f"The contents of {plan.revisions} revisions and {plan.requests} requests {done} erased.")
    if plan.threads:
        print(
            "These conversations contain texts of the file, in their prompts, calls or requests. "
            "They stay until you erase them:"
        )
        for thread in plan.threads:
            print(f"  vel prune --thread {thread} --apply")
    if not apply:
        print("Nothing is changed yet: --apply erases them.")


@memory.command("export")
@agent_argument
@click.argument("directory", type=click.Path(path_type=Path))
@with_database
def export(agent: str, directory: Path) -> None:
    """Write the agent's memory into DIRECTORY, which must be new or empty.

    It does not contain me/, which belongs to single people.
    """
    paths = export_memory(_agent(agent).pk, directory)
    print(f"{len(paths)} files are in {directory}.")


@memory.command("import")
@agent_argument
@click.argument("directory", type=click.Path(path_type=Path))
@with_database
@click.option("--prompt", "with_prompt", is_flag=True, help="Also import AGENTS.md, as the prompt.")
@click.option("--accept-findings", is_flag=True, help="Keep text that the scanner suspects.")
@click.option("--apply", is_flag=True, help="Make the changes. Without this, only show them.")
def import_folder(
    agent: str, directory: Path, with_prompt: bool, accept_findings: bool, apply: bool
) -> None:
    """Import knowledge/ and skills/ from DIRECTORY, all files or none.

    Memory files that are missing in DIRECTORY remain. Without --apply, the command only shows the
    changes and the scanner's findings.
    """
    user = local_user()
    found = _agent(agent)
    memory_changes.check_may_change(found, user)
    plan = plan_import(found, directory, with_prompt=with_prompt)
    _show(plan)
    if not plan.files and plan.prompt is None:
        print("Nothing to import: the memory has the same files.")
        return
    if not apply:
        print("Nothing is changed yet: --apply imports it.")
        return
    revisions = carry_out_import(found, plan, by=user, accept_findings=accept_findings)
    more = " and the prompt" if plan.prompt is not None else ""
    print(f"{len(revisions)} files{more} are imported.")


def _show(plan: ImportPlan) -> None:
    for file in plan.files:
        what = "added" if file.before is None else "changed"
        print(f"{what:>9}  {file.path}  {size_of(file.content):,} bytes")
    if plan.prompt is not None:
        print(f"{'prompt':>9}  AGENTS.md  {size_of(plan.prompt.after):,} bytes")
    for path in plan.same:
        print(f"{'same':>9}  {path}")
    for path in plan.kept:
        print(f"{'kept':>9}  {path}")
    for name in plan.ignored:
        print(f"{'ignored':>9}  {one_line(name)}")
    for warning in plan.warnings:
        print(warning, file=sys.stderr)
    show_findings(plan.findings)


def _agent(agent: str) -> Agent:
    return agent_named(local_user(), agent)


def _show_memory(session: Session, rest: str) -> None:
    row = agents_for(session.owner).filter(slug=session.agent).first()
    entries = list_memory_entries(row.pk, "", session.owner.pk) if row is not None else []
    for entry in entries:
        session.say(f"{one_line(entry.path)}  {entry.size_bytes:,} bytes")
    if not entries:
        session.say("No files.")


COMMANDS = (memory,)
SLASH_COMMANDS = (SlashCommand("/memory", "", "List the files of the memory.", _show_memory),)
