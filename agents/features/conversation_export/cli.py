"""`vel threads export`, and the command `/export` of the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from agents.doors.cli.boot import with_database
from agents.doors.cli.errors import CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.slash_commands import Session, SlashCommand
from agents.doors.cli.terminal import one_line

with late_imports:
    from agents.doors.cli.find import by_id
    from agents.doors.cli.local_user import local_user
    from agents.features.conversation_export.downloads import file_name, pieces
    from agents.features.conversation_export.reading import Conversation
    from agents.selectors.visible import threads_for


@click.group(short_help="Export conversations.")
def threads() -> None:
    """Export your conversations. THREAD is an ID or the start of an ID."""


@threads.command("export")
@click.argument("thread", metavar="THREAD")
@with_database
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "json"]),
    help="Default: json for a FILE that ends in .json, otherwise markdown.",
)
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="New file to write. Default: print it."
)
def export(thread: str, form: str | None, output: Path | None) -> None:
    """Write a conversation as Markdown for people, or as JSON for programs.

    `vel runs list --threads` shows the IDs.
    """
    user = local_user()
    found = Conversation(user, by_id(threads_for(user), thread, "thread").pk)
    form = form or form_of(output)
    if output is None:
        for text in pieces(found, form):
            sys.stdout.write(text)
        return
    write(output, pieces(found, form))
    print(f"Wrote {one_line(str(output))}.", file=sys.stderr)


def export_session(session: Session, rest: str) -> None:
    """Write the conversation of the session to the file `rest`, or to a file with its title."""
    if session.thread is None:
        raise CliError("This session has no task yet.")
    found = Conversation(session.owner, session.thread)
    given = Path(rest).expanduser() if rest else None
    form = form_of(given)
    output = given or Path(file_name(found, form))
    write(output, pieces(found, form))
    session.say(f"Wrote {one_line(str(output))}.")


def form_of(output: Path | None) -> str:
    return "json" if output is not None and output.suffix.lower() == ".json" else "markdown"


def write(output: Path, texts: Iterator[str]) -> None:
    """Write a new file. Raises `CliError` if it exists; an incomplete file is removed."""
    try:
        with output.open("x", encoding="utf-8", newline="\n") as file:
            try:
                file.writelines(texts)
            except BaseException:
                output.unlink(missing_ok=True)
                raise
    except FileExistsError:
        raise CliError(f"{one_line(str(output))} exists. Choose a new name.") from None
    except OSError as error:
        raise CliError(f"{one_line(str(output))} cannot be written: {error.strerror}.") from None


COMMANDS = (threads,)
SLASH_COMMANDS = (
    SlashCommand(
        "/export",
        "[FILE]",
        "Write the session to a new file (.md or .json).",
        export_session,
    ),
)
