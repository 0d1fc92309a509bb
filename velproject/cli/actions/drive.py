"""Driving runs in this process, with a person at the terminal or none."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db import DatabaseError

from agents.conf import vel_settings
from agents.engine.host import Host, own_executor
from agents.middleware.decisions import decide
from agents.models import ApprovalRequest, Run
from agents.services.approvals import DecisionRequest
from agents.services.errors import NotFound, ServiceError
from agents.services.open_answers import open_answers
from agents.services.run_control import cancel_run
from agents.states import ApprovalStatus, RunStatus
from velproject.cli.actions.ask import ask
from velproject.cli.actions.display import Display
from velproject.cli.actions.follow import PATIENCE, STOPPED, Watch, leave_at_once
from velproject.cli.actions.orphans import take_over
from velproject.cli.boot import again
from velproject.cli.errors import (
    FAILED,
    INTERRUPTED,
    LIMIT,
    OK,
    WAITING,
    CliError,
    explain,
)


class Driver:
    """One host for all runs of a session, and what shows them. Close it, or the process stays.

    With `as_json` each event is a line of JSON and nobody is asked anything.
    """

    def __init__(self, owner: User, *, as_json: bool = False) -> None:
        self.owner = owner
        self.as_json = as_json
        self.display = Display(live=not as_json)
        self.interactive = sys.stdin.isatty() and not as_json
        self.host = Host(executor=own_executor(), on_database_error=self._database_failed)
        self._watched: Watch | None = None
        self._runner = asyncio.Runner()
        self._started = False

    def drive(self, run: Run, *, after: int = 0, adopt: bool = False) -> int:
        """Drive `run` until it ends or waits for somebody else; the exit code says which.

        `after` is the last event that is not to be shown again. With `adopt` the run is another
        process's until now.
        """
        if not self._started:
            self.host.start()
            self._started = True
        watch = self._watched = Watch(run.id, after, self._show, self.owner.username)
        while True:
            run.refresh_from_db()
            try:
                if run.status == RunStatus.WAITING and not self._decide(run):
                    return self._leave_waiting(run)
            except KeyboardInterrupt:
                cancel_run(run.id, by=self.owner.username, reason=STOPPED)
                self.display.note("\nCancelled", "yellow")
                return INTERRUPTED
            if adopt:
                take_over(run, self.host.executor)
                adopt = False
            self.host.submit(run.id)
            try:
                stopped = self._runner.run(watch.until_pause())
            except DatabaseError as error:
                message, code = explain(error)
                raise CliError(
                    f"{message.rstrip('.')}. What was stored is kept: "
                    f"{again(f'runs resume {run.id}')} goes on.",
                    exit_code=code,
                ) from error
            finally:
                self.display.close()
            run.refresh_from_db()
            if stopped is not None:
                if not run.has_ended:
                    self.display.note(
                        f"It did not end in time: {again(f'runs cancel {run.id}')} ends it.",
                        "yellow",
                    )
                    leave_at_once(stopped)
                return stopped
            if run.has_ended:
                self._say_where_files_are(run)
                return exit_code(run)

    def watch(self, run: Run) -> int:
        """Show a run that others drive until it ends or waits. Ctrl-C stops watching only."""
        watch = Watch(run.id, 0, self._show, by=None)
        try:
            return self._runner.run(watch.until_pause()) or OK
        finally:
            self.display.close()
            self._runner.close()

    def close(self) -> None:
        """Stop the host and hand back what it may still drive."""
        if self._started:
            self.host.stop(grace=PATIENCE)
        self._runner.close()

    def _database_failed(self, error: DatabaseError) -> None:
        if self._watched is not None:
            self._watched.database_failed(error)

    def _show(self, event: dict[str, Any]) -> None:
        if self.as_json:
            print(json.dumps(event), flush=True)
        else:
            self.display.event(event)

    def _say_where_files_are(self, run: Run) -> None:
        if self.as_json:
            return
        for place in kept_files(run):
            self.display.note(f"Files: {place}")

    def _decide(self, run: Run) -> bool:
        """Ask about everything that waits. False if something is left waiting.

        What was refused is asked again, as it then is; what is for somebody else stays.
        """
        left: set[str] = set()
        while self.interactive:
            request = next((row for row in pending_requests(run) if row.pk not in left), None)
            if request is None:
                break
            answers = open_answers(request, self.owner)
            answer = ask(request, answers, self.display.notes)
            if answer is None and answers.offered:
                return False
            if answer is None or not self._take(request, answer):
                left.add(request.pk)
        run.refresh_from_db()
        return run.status != RunStatus.WAITING

    def _take(self, request: ApprovalRequest, answer: DecisionRequest) -> bool:
        """Decide. False when it now waits for somebody else."""
        try:
            decided = decide(request.pk, answer, by=self.owner)
        except ServiceError as error:
            self.display.note(error.message, "yellow")
            return not isinstance(error, NotFound)
        if decided.status == ApprovalStatus.PENDING:
            self.display.note("A second person has to approve it, too.", "yellow")
            return False
        return True

    def _leave_waiting(self, run: Run) -> int:
        self.display.close()
        for request in pending_requests(run):
            self.display.note(f"{request.tool} waits for approval:", "bold yellow")
            self.display.note(f"  {again(f'approvals show {request.id}')}")
            self.display.note(f"  {again(f'approvals decide {request.id} approve')}")
        self.display.note(f"Then the run goes on with: {again(f'runs resume {run.id}')}")
        return WAITING


def kept_files(run: Run) -> list[Path]:
    """The directories of the thread in which the agent has left something."""
    thread = run.thread
    own = [Path(thread.workspace_path)] if thread.workspace_path else []
    kept = vel_settings().workspaces / thread.id
    areas = [*own, kept / "workspace", kept / "outputs"]
    return [area for area in areas if area.is_dir() and any(area.iterdir())]


def pending_requests(run: Run) -> list[ApprovalRequest]:
    found = ApprovalRequest.objects.filter(run=run, status=ApprovalStatus.PENDING)
    return list(
        found.select_related(
            "run__agent_version__agent", "run__owner", "run__thread", "memory_edit"
        ).order_by("id")
    )


def exit_code(run: Run) -> int:
    """What a script learns of a run that has ended."""
    if run.status == RunStatus.COMPLETED:
        return OK
    if run.status == RunStatus.CANCELLED:
        return INTERRUPTED
    return LIMIT if run.error_code.startswith("limit_") else FAILED
