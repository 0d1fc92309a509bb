"""Runs that belong to a process of this machine that is gone."""

from __future__ import annotations

import os
import socket
import sys
import time

from agents.models import POOL, Run
from agents.selectors.family import descendants_of
from agents.services.errors import Conflict
from agents.services.runs.control import cancel_run, resume_orphaned_family
from agents.states import RunStatus

POLL_SECONDS = 0.5


def is_orphan(run: Run) -> bool:
    """Return whether the run belongs to a process of this machine that is gone."""
    machine, _, rest = run.executor.partition(":")
    if run.executor == POOL or machine != socket.gethostname()[:40]:
        return False
    try:
        os.kill(int(rest.partition(":")[0]), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, ValueError):
        return False
    return False


def resume_orphaned_run(run: Run, executor: str) -> None:
    """Make `executor` the driver of the run and its subagents.

    Waits for the leases of orphans, half a minute at most. Raises `Conflict` as `resume_run` does,
    also for a run that somebody drives.
    """
    said = False
    while True:
        try:
            resume_orphaned_family(run.id, executor=executor)
            return
        except Conflict as error:
            if error.code != "driven" or not is_orphan(run):
                raise
        said = said or _say_waiting()
        time.sleep(POLL_SECONDS)


def cancel_wherever(run: Run, *, by: str, reason: str) -> Run:
    """Cancel the run. Waits for the lease of an orphan, since no process can react for it."""
    said = False
    while True:
        run = cancel_run(run.id, by=by, reason=reason)
        left = any(member.status == RunStatus.RUNNING for member in (run, *descendants_of(run.id)))
        if not left or not is_orphan(run):
            return run
        said = said or _say_waiting()
        time.sleep(POLL_SECONDS)


def _say_waiting() -> bool:
    print("Its process is gone; waiting until its lease has run out.", file=sys.stderr, flush=True)
    return True
