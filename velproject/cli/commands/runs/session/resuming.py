"""The sessions that `vel --continue` and `vel --resume` continue."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

from django.contrib.auth.models import User
from django.db.models import Max, QuerySet
from django.db.models.functions import Coalesce

from agents.doors.cli.boot import again
from agents.doors.cli.console import new_console
from agents.doors.cli.errors import CliError
from agents.doors.cli.find import by_id
from agents.doors.cli.questions import read
from agents.doors.cli.terminal import one_line
from agents.kernel.lazy_modules import lazy_modules
from agents.models import Thread
from agents.selectors.visible import runs_for, threads_for
from agents.services.errors import Conflict
from agents.services.runs.session_files import check_sandbox
from velproject.cli.commands.runs.session.capable import is_capable
from velproject.cli.commands.runs.task_flags import agent_slug

with lazy_modules:
    from velproject.cli.commands.runs.session import picker  # 0.1 s, which only --resume needs

MOST_OFFERED = 100
MOST_NUMBERED = 20
"""Sessions that a terminal without editing lists."""


def newest_threads(owner: User) -> QuerySet[Thread]:
    """Return the threads of `owner`, the one with the newest run first."""
    used = Coalesce(Max("runs__created_at"), "created_at")
    return threads_for(owner).annotate(used_at=used).order_by("-used_at", "-pk")


def chosen_thread(owner: User, wanted: str | None, directory: str) -> Thread:
    """Return the thread to continue.

    Args:
        wanted: The start of the id of a thread, or of one of its runs. Empty: a person chooses.
            None: the newest thread.
        directory: The value of --workspace, or an empty text. Only its threads count then.

    Raises:
        CliError: This person has no such thread, or cannot choose here.
    """
    rows = newest_threads(owner).select_related("agent")
    if directory:
        rows = rows.filter(workspace_path=directory)
    where = f" in {one_line(directory)}" if directory else ""
    if wanted:
        found = _with_id(owner, wanted)
        if directory and found.workspace_path != directory:
            raise CliError(f"That session does not work{where}. Leave out --workspace.")
    elif wanted is None:
        here = rows.filter(workspace_path=str(Path.cwd())).first() if not directory else None
        newest = here or rows.first()
        if newest is None:
            raise CliError(f"You have no session{where} to continue. Start one: vel TASK")
        found = newest
    else:
        found = _picked(list(islice(rows, MOST_OFFERED)), where)
    _say(f"Continuing: {_title(found)}")
    return found


def agent_of(thread: Thread, owner: User, flags: list[str]) -> str | None:
    """Return the slug of the thread's agent, or None for the agent of the command line.

    Raises `CliError` if `flags` would change another agent.
    """
    slug = thread.agent.slug
    if slug == agent_slug(owner):
        return None
    if flags:
        raise CliError(
            f"That session uses the agent {one_line(slug)}, which has its own settings. "
            f"Leave out {', '.join(flags)}."
        )
    return slug


def check_files(thread: Thread, *, sandbox: bool) -> None:
    """Raise `CliError` if the agent of the command line does not see the files of the session."""
    try:
        check_sandbox(thread, sandbox)
    except Conflict:
        command = again(f"--resume {thread.pk}" + " --no-sandbox" * sandbox)
        where = "in the database, without a sandbox" if sandbox else "in a sandbox"
        raise CliError(
            f"The files of that session are {where}. To continue it: {command}"
        ) from None


def _with_id(owner: User, wanted: str) -> Thread:
    threads = threads_for(owner).select_related("agent")
    own = threads.filter(pk__startswith=wanted.lower()).first()
    if own is None:
        runs = runs_for(owner).filter(pk__startswith=wanted.lower(), thread__in=threads)
        if runs.exists():
            return threads.get(pk=by_id(runs, wanted, "run").thread_id)
    return by_id(threads, wanted, "session")


def _picked(rows: list[Thread], where: str) -> Thread:
    """Let the person choose. Raises `CliError` without rows or a terminal."""
    if not rows:
        raise CliError(f"You have no session{where} to continue. Start one: vel TASK")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CliError(
            "--resume without an id needs a terminal. Name the session or one of its runs "
            "(vel runs list), or use --continue for the newest one."
        )
    lines = [f"{row.used_at:%Y-%m-%d %H:%M}  {_title(row)}" for row in rows]  # type: ignore[attr-defined]
    number = picker.pick("Continue which session?", lines) if is_capable() else _asked(lines)
    if number is None:
        raise CliError("No session was chosen.")
    return rows[number]


def _asked(lines: list[str]) -> int | None:
    """Return the index of the line that the person chooses by its number."""
    for number, line in enumerate(lines[:MOST_NUMBERED], 1):
        _say(f"{number:>3}  {line}")
    console = new_console(stderr=True)
    try:
        answer = read("Number: ", console).strip()
    except (EOFError, KeyboardInterrupt):
        console.print()
        return None
    if answer.isascii() and answer.isdecimal() and 0 < int(answer[:9]) <= len(lines):
        return int(answer) - 1
    return None


def _title(thread: Thread) -> str:
    return one_line(thread.title or thread.pk, 80)


def _say(text: str) -> None:
    new_console(stderr=True).print(text, style="dim")
