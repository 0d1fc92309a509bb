"""`vel runs files`: the files of a run's thread, and copies of them."""

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
from agents.doors.cli.terminal import one_line
from velproject.cli.commands.runs.runs import runs

with late_imports:
    from agents.doors.cli.console import print_table
    from agents.doors.cli.find import by_id
    from agents.doors.cli.local_user import local_user
    from agents.selectors.visible import runs_for
    from agents.services.errors import Conflict
    from agents.services.files.copies import CopiedFile, copy_files, files_of


@runs.command("files")
@click.argument("run_id", metavar="RUN")
@with_database
@json_option
@click.option(
    "--to",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Copy them into this directory, which is new or empty.",
)
def files(run_id: str, as_json: bool, directory: Path | None) -> int:
    """List the files of a run's session, also without a sandbox, or copy them."""
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
        print(f"{command} copies them.", file=sys.stderr)
    return 1 if any(row.problem for row in rows) else 0


def shown(row: CopiedFile, is_copied: bool) -> tuple[str, ...]:
    first = (one_line(row.path, 200), f"{row.size:,}")
    return (*first, one_line(row.problem or str(row.copy), 200)) if is_copied else first


def as_data(row: CopiedFile) -> dict[str, Any]:
    copy = None if row.copy is None else str(row.copy)
    return {"path": row.path, "size": row.size, "copy": copy, "problem": row.problem}
