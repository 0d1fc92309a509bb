"""The group `vel runs` and its command `list`. The commands for one run are in `one_run`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from agents.doors.cli.boot import with_database
from agents.doors.cli.errors import CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option
from agents.doors.cli.terminal import one_line

with late_imports:
    from django.utils import timezone
    from rich.text import Text

    from agents.doors.cli.console import new_console, print_table
    from agents.doors.cli.local_user import local_user
    from agents.models import Message, MessageRole, Run
    from agents.selectors.disk_space import waiting_for_space
    from agents.selectors.family import with_child_count
    from agents.selectors.held import HELD, is_held
    from agents.selectors.visible import runs_for
    from agents.states import RunStatus

_STYLES = {"completed": "green", "failed": "red", "waiting": "yellow", "running": "cyan"}
_WIDE = 100
"""From this number of columns, a terminal shows the number of subagents, too."""


@click.group(short_help="List, show, cancel and resume runs.")
def runs() -> None:
    """Manage your runs. RUN is an ID or the start of an ID."""


@runs.command("list")
@with_database
@json_option
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    help="Maximum number of runs.",
)
@click.option(
    "--status",
    help="Only runs that are pending, queued, running, waiting, completed, failed or cancelled.",
)
@click.option("--held", is_flag=True, help="Only runs that are held for review after a restore.")
@click.option(
    "--all", "everybody", is_flag=True, help="Include the runs of all users, as the operator."
)
@click.option("--threads", is_flag=True, help="Include the IDs of their threads.")
def list_runs(
    as_json: bool, limit: int, status: str | None, held: bool, everybody: bool, threads: bool
) -> None:
    """List runs, newest first."""
    if status is not None and status not in RunStatus.values:
        raise CliError(f"--status {status!r}: expected one of {', '.join(RunStatus.values)}.")
    found = Run.objects.filter(is_copy=False) if everybody else runs_for(local_user())
    found = with_child_count(found.filter(parent=None))
    if status is not None:
        found = found.filter(status=status)
    if held:
        found = found.filter(HELD)
    rows: list[Any] = list(
        found.select_related("thread", "agent_version", "clock", "owner")[:limit]
    )
    tasks = tasks_of(rows)
    if as_json:
        for run in rows:
            print(json.dumps(as_data(run, tasks[run.pk])))
        return
    if not rows and held:
        print("No run is held for review.", file=sys.stderr)
        return
    if not rows:
        print('No runs yet. Start one: vel "write a haiku into haiku.txt"', file=sys.stderr)
        return
    console = new_console()
    is_narrow = console.is_terminal and console.width < _WIDE
    counts = [] if is_narrow else ["SUBAGENTS"]
    print_table(
        ("RUN", *(["THREAD"] if threads else []), "STATUS", "AGENT", *counts, "AGE", "TASK"),
        (
            (
                run.id,
                *([run.thread_id] if threads else []),
                Text(status_words(run), style=_STYLES.get(run.status, "")),
                Text(one_line(run.spec["slug"], 30)),
                *([] if is_narrow else [str(run.child_count or "")]),
                age(run),
                Text(one_line(tasks[run.pk], 60)),
            )
            for run in rows
        ),
        shorten=("AGENT",),
    )


def status_words(run: Run) -> str:
    """Return the status of a run in words, with the reason for waiting or for the end."""
    detail = run.wait_reason or run.error_code
    if waiting_for_space(run):
        detail = "waiting for disk space"
    if is_held(run):
        detail = "held after a restore"
    return f"{run.status} ({detail})" if detail else run.status


def tasks_of(rows: Sequence[Run]) -> dict[str, str]:
    """Return the message of each run, by id; the title of its session if there is no message."""
    first = Message.objects.filter(run__in=rows, role=MessageRole.USER, turn=0)
    texts = {message.run_id: message.text for message in first.order_by("-position")}
    return {run.pk: texts.get(run.pk) or run.thread.title for run in rows}


def as_data(run: Any, task: str) -> dict[str, Any]:
    """Return a run as JSON values. `run` is a row of `with_child_count`."""
    clock = run.clock
    return {
        "id": run.id,
        "thread": run.thread_id,
        "session": run.thread.key,
        "status": run.status,
        "wait_reason": run.wait_reason,
        "held": is_held(run),
        "error_code": run.error_code,
        "error_message": run.error_message,
        "finish_reason": run.finish_reason,
        "agent": run.spec["slug"],
        "model": run.spec["model"],
        "owner": run.owner.username,
        "source": run.source,
        "subagents": run.child_count,
        "title": run.thread.title,
        "task": one_line(task, 200),
        "turns": clock.turn,
        "tokens": clock.total_tokens,
        "cost": str(clock.cost) if clock.cost is not None else None,
        "created_at": run.created_at.isoformat(),
        "ended_at": run.ended_at.isoformat() if run.ended_at else None,
    }


def age(run: Run) -> str:
    seconds = int((timezone.now() - run.created_at).total_seconds())
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{max(0, seconds)} s"
