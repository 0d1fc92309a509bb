"""`vel runs show`, `files`, `cancel` and `resume`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from agents.doors.cli.boot import again, with_database
from agents.doors.cli.errors import CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option
from agents.doors.cli.terminal import one_line, visible
from velproject.cli.commands.runs.runs import runs

with late_imports:
    from django.contrib.auth.models import User

    from agents.doors.cli.console import print_table
    from agents.doors.cli.find import by_id
    from agents.doors.cli.local_user import local_user
    from agents.doors.cli.orphans import cancel_wherever, resume_orphaned_run
    from agents.models import POOL, Message, MessageRole, Run
    from agents.selectors.family import descendants_of, in_tree_order, root_of
    from agents.selectors.visible import runs_for
    from agents.services.errors import Conflict
    from agents.services.files.copies import CopiedFile, copy_files, files_of
    from agents.states import RunStatus, WaitReason
    from velproject.cli.commands.runs.display import Display
    from velproject.cli.commands.runs.drive import Driver, replay
    from velproject.cli.commands.runs.runs import status_words
    from velproject.cli.commands.runs.tree_display import TreeDisplay


@runs.command("show")
@click.argument("run_id", metavar="RUN")
@with_database
@json_option
@click.option("--follow", "-f", is_flag=True, help="Show new events until the run ends or waits.")
def show_run(run_id: str, as_json: bool, follow: bool) -> None:
    """Show all events of a run."""
    owner = local_user()
    run = by_id(runs_for(owner), run_id, "run")
    if follow and not run.has_ended:
        Driver(owner, as_json=as_json).watch(run)
        return
    if as_json:
        for event in replay(run.id):
            print(json.dumps(event))
        return
    display = Display(live=False)
    _show_head(run, display)
    tree = TreeDisplay(run.id, display)
    for event in replay(run.id):
        tree.event(event)
    _show_tree(run, display)
    display.close()


def _show_head(run: Run, display: Display) -> None:
    spec = run.spec
    display.note(f"run {run.id}  {status_words(run)}  {spec['slug']} ({spec['model']})")
    message = Message.objects.filter(run=run, role=MessageRole.USER, turn=0).first()
    if message is not None:
        for line in visible(message.text).splitlines():
            display.note(f"> {line}", "bold")


def _show_tree(run: Run, display: Display) -> None:
    """Show the tree of subagents, each indented below its parent run."""
    for member in in_tree_order(run.id, descendants_of(run.id)):
        indent = "  " * (member.depth - run.depth)
        task = one_line(member.thread.title, 80)
        display.note(f"{indent}{member.subagent}  {status_words(member)}  run {member.id}: {task}")


@runs.command("files")
@click.argument("run_id", metavar="RUN")
@with_database
@json_option
@click.option(
    "--to",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Copy them into this new or empty directory.",
)
def files(run_id: str, as_json: bool, directory: Path | None) -> int:
    """List or copy the files of the conversation that a run belongs to."""
    run = by_id(runs_for(local_user()), run_id, "run")
    try:
        found = files_of(run.thread)
        rows = list(copy_files(found, directory) if directory is not None else found.listed())
    except Conflict as error:
        raise CliError(error.message) from error
    except OSError as error:
        raise CliError(f"--to {one_line(str(directory))}: {error.strerror or error}.") from error
    if as_json:
        for row in rows:
            print(json.dumps(as_data(row)))
    elif rows:
        print_table(
            ("FILE", "SIZE", "COPY") if directory is not None else ("FILE", "SIZE"),
            (shown(row, directory is not None) for row in rows),
        )
    else:
        print("This session has no files.", file=sys.stderr)
    if rows and directory is None and not as_json:
        command = again(f"runs files {run.id} --to DIR")
        print(f"Copy them: {command}", file=sys.stderr)
    return 1 if any(row.problem for row in rows) else 0


def shown(row: CopiedFile, is_copied: bool) -> tuple[str, ...]:
    first = (one_line(row.path, 200), f"{row.size:,}")
    return (*first, one_line(row.problem or str(row.copy), 200)) if is_copied else first


def as_data(row: CopiedFile) -> dict[str, Any]:
    copy = None if row.copy is None else str(row.copy)
    return {"path": row.path, "size": row.size, "copy": copy, "problem": row.problem}


@runs.command("cancel")
@click.argument("run_id", metavar="RUN")
@with_database
@click.option("--reason", default="", help="Stored with the run.")
def cancel(run_id: str, reason: str) -> None:
    """Cancel a run."""
    owner = local_user()
    run = by_id(runs_for(owner), run_id, "run")
    if run.has_ended:
        print(f"The run is already {run.status}.")
        return
    run = cancel_wherever(run, by=owner.username, reason=reason)
    print("Cancelled." if run.has_ended else "The run ends within a second.")


@runs.command("resume")
@click.argument("run_id", metavar="RUN")
@with_database
@json_option
@click.option("--detach", is_flag=True, help="Let the workers execute it instead of this terminal.")
def resume(run_id: str, as_json: bool, detach: bool) -> int:
    """Resume a run that failed, is waiting for you, or has lost its process.

    A cancelled run cannot be resumed. Continue its session with `vel --resume RUN`.
    """
    owner = local_user()
    run = by_id(runs_for(owner), run_id, "run")
    if run.has_ended and run.status != RunStatus.FAILED:
        raise CliError(f"The run is {run.status}. Send a new message with --session instead.")
    if run.parent is not None:
        raise CliError(
            "This is the run of a subagent. Resume its root run instead: "
            f"{again(f'runs resume {root_of(run).id}')}"
        )
    if detach:
        if run.status == RunStatus.WAITING and run.wait_reason != WaitReason.CHILDREN:
            raise CliError(
                "The run is waiting for approval. Decide the request first: "
                f"{again('approvals list')}"
            )
        resume_orphaned_run(run, POOL)
        print(f"The workers continue the run. Follow it: {again(f'runs show {run.id} --follow')}")
        return 0
    return _drive_here(run, owner, as_json=as_json)


def _drive_here(run: Run, owner: User, *, as_json: bool) -> int:
    driver = Driver(owner, as_json=as_json)
    try:
        return driver.drive(run, adopt=True)
    finally:
        driver.close()
