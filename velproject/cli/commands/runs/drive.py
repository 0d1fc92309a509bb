"""Execution of runs in this process, with or without a person at the terminal."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db import DatabaseError

from agents.doors.cli.boot import again
from agents.doors.cli.errors import (
    FAILED,
    HUNG_UP,
    INTERRUPTED,
    LIMIT,
    OK,
    WAITING,
    CliError,
    Signalled,
    explain,
)
from agents.doors.cli.orphans import resume_orphaned_run
from agents.engine.worker import Worker
from agents.events.catalogue.subagents import SubagentFinished, SubagentStarted
from agents.events.read import read_events
from agents.features.approvals.pending_responses import pending_responses
from agents.ids import own_executor
from agents.kernel.lazy_modules import lazy_modules
from agents.middleware.decisions import decide
from agents.models import ApprovalRequest, Run, StateFile
from agents.sdk.rows.state import Family
from agents.services.approvals.decisions import DecisionRequest
from agents.services.errors import NotFound, ServiceError
from agents.services.files.outside_changes import unreported_changes
from agents.services.runs.control import cancel_run
from agents.settings import DataSettings
from agents.states import ApprovalStatus, RunStatus
from sandbox.directories.reopening import open_directory
from velproject.cli.commands.runs.display import Display
from velproject.cli.commands.runs.follow import PATIENCE, STOPPED, Keys, Watch, leave_at_once
from velproject.cli.commands.runs.notice import notify
from velproject.cli.commands.runs.tree_display import TreeDisplay

with lazy_modules:
    # Imported at first use: it takes 30 ms, and most runs need no approval.
    from agents.features.approvals.cli import ask as asking


StandIn = Callable[[ApprovalRequest], DecisionRequest]


class Driver:
    """Executes all runs of a session with one worker, and shows them.

    Close it, or the process does not end. With `as_json` each event is a line of JSON, and there
    are no questions. `stand_in` answers approval requests if no terminal is attached; a line
    reports each of its answers.
    """

    def __init__(
        self, owner: User, *, as_json: bool = False, stand_in: StandIn | None = None
    ) -> None:
        self.owner = owner
        self.stand_in = stand_in
        self.as_json = as_json
        self.display = Display(live=not as_json)
        self.keys: Keys | None = None
        """Watches the keys that cancel a run, in a session at a terminal."""
        self.interactive = sys.stdin.isatty() and not as_json
        self.worker = Worker(
            executor=own_executor(),
            on_database_error=self._database_failed,
            on_disk_full=lambda text: self.display.note(text, "yellow"),
        )
        self._watched: Watch | None = None
        self._tree: TreeDisplay | None = None
        self._left: set[str] = set()
        self._runner = asyncio.Runner()
        self._started = False

    def drive(self, run: Run, *, adopt: bool = False, is_known: bool = False) -> int:
        """Execute `run` and its subagents until it ends or waits for another person.

        Returns the exit code. With `adopt`, the run belonged to another process; with `is_known`,
        this process has executed it before. In both cases, earlier events are not shown again.
        """
        if not self._started:
            self.worker.start()
            self._started = True
        self.display.only_value = bool(run.output_schema or run.spec.get("output_schema"))
        family = Family(run.id)
        self._left.clear()
        self._tree = TreeDisplay(run.id, self.display)
        is_known = is_known or adopt
        if is_known:
            self._tree.know(family.members()[1:])
        watch = self._watched = Watch(
            run.id,
            family.positions() if is_known else {},
            self._show,
            self.owner.username,
            lambda: self._has_question(family) or family.is_stuck(),
            self.keys,
        )
        try:
            return self._drive(run, family, watch, adopt)
        except KeyboardInterrupt:
            return self._cancel(run, INTERRUPTED)
        except Signalled as signal:
            return self._cancel(run, signal.exit_code)

    def _drive(self, run: Run, family: Family, watch: Watch, adopt: bool) -> int:
        while True:
            run.refresh_from_db()
            if not self._decide(family):
                # Show the remaining events of a subagent that has ended before those of its parent.
                watch.catch_up([member.pk for member in reversed(family.members())])
                self._say_what_runs_outside(run)
                return self._leave_waiting(family)
            if adopt:
                try:
                    resume_orphaned_run(run, self.worker.executor)
                except KeyboardInterrupt:  # this process does not own the run yet
                    return INTERRUPTED
                adopt = False
            self.worker.submit(run.id)
            began = time.monotonic()
            try:
                stopped = self._runner.run(watch.until_pause())
            except DatabaseError as error:
                message, code = explain(error)
                raise CliError(
                    f"{message.rstrip('.')}. The run is stored. Continue it: "
                    f"{again(f'runs resume {run.id}')}",
                    exit_code=code,
                ) from error
            finally:
                self.display.close()
            run.refresh_from_db()
            if stopped is None and self.interactive:
                what = run.status if run.has_ended else "waits for a decision"
                notify(f"{run.thread.title}: {what}", time.monotonic() - began)
            if stopped is not None or run.has_ended:
                self._say_what_runs_outside(run)
            if stopped is not None:
                if not run.has_ended:
                    self.display.note(
                        f"The run did not end in time. Cancel it: {again(f'runs cancel {run.id}')}",
                        "yellow",
                    )
                    if self.keys is not None:
                        self.keys.restore()
                    leave_at_once(stopped)
                return stopped
            if run.has_ended:
                self._say_where_files_are(run)
                return exit_code(run)

    def _cancel(self, run: Run, code: int) -> int:
        """Cancel the run after a signal that came while no events were shown."""
        run = cancel_run(run.id, by=self.owner.username, reason=STOPPED)
        if code == HUNG_UP:
            return code  # the terminal is closed
        if run.status == RunStatus.CANCELLED or not run.has_ended:
            self.display.note("\nCancelled", "yellow")
        self._say_what_runs_outside(run)
        return code

    def watch(self, run: Run) -> int:
        """Show a run of another process until it ends or waits. Ctrl-C only stops watching.

        Returns 0, or the exit code of the signal that stopped it. The driver cannot be used again.
        """
        self._tree = TreeDisplay(run.id, self.display)
        watch = Watch(run.id, {}, self._show, None, Family(run.id).is_stuck)
        try:
            return self._runner.run(watch.until_pause()) or OK
        finally:
            self.display.close()
            self._runner.close()

    def close(self) -> None:
        """Stop the worker, and give back the runs that it still executes."""
        if self._started:
            self.worker.stop(grace=PATIENCE)
        self._runner.close()

    def _database_failed(self, error: DatabaseError) -> None:
        if self._watched is not None:
            self._watched.database_failed(error)

    def _show(self, event: dict[str, Any]) -> None:
        if self.as_json:
            print(json.dumps(event), flush=True)
        elif self._tree is not None:
            self._tree.event(event)

    def _say_what_runs_outside(self, run: Run) -> None:
        """Show changed files that programs outside the sandbox run, unless an event did so."""
        if self.as_json:
            return
        found = unreported_changes(run)
        if found:
            event = found.event()
            self.display.event({"type": event.type, "data": event.data()})

    def _say_where_files_are(self, run: Run) -> None:
        if self.as_json:
            return
        for place in kept_files(run):
            self.display.note(f"Files: {place}")
        if not run.spec["sandbox"] and StateFile.objects.filter(thread=run.thread_id).exists():
            self.display.note(f"Copy its files: {again(f'runs files {run.id} --to DIR')}")

    def _decide(self, family: Family) -> bool:
        """Ask about every pending request of the run and its subagents.

        Returns False if the run cannot continue. A request whose decision was refused is shown
        again in its new state; requests for other people stay pending.
        """
        while (request := self._next_question(family)) is not None:
            if not self.interactive:
                if not self._take(request, self._stand_in_for(request)):
                    self._left.add(request.pk)
                continue
            answers = pending_responses(request, self.owner)
            if self.keys is not None:
                self.keys.forget()
            answer = asking.ask(request, answers, self.display.notes)
            if answer is None and answers.offered:
                self._left |= {row.pk for row in family.pending_requests(self.owner)}
            elif answer is None or not self._take(request, answer):
                self._left.add(request.pk)
        return not family.is_stuck()

    def _next_question(self, family: Family) -> ApprovalRequest | None:
        """Return the next request that this person can decide here, or None."""
        if not self.interactive and self.stand_in is None:
            return None
        pending = family.pending_requests(self.owner)
        return next((row for row in pending if row.pk not in self._left), None)

    def _has_question(self, family: Family) -> bool:
        return self._next_question(family) is not None

    def _stand_in_for(self, request: ApprovalRequest) -> DecisionRequest:
        assert self.stand_in is not None
        answer = self.stand_in(request)
        self.display.note(
            f"No terminal attached: Vel decided {request.tool} automatically: {answer.decision}",
            "bold yellow",
        )
        return answer

    def _take(self, request: ApprovalRequest, answer: DecisionRequest) -> bool:
        """Store the decision on a request. Return False if another person must decide, too."""
        try:
            decided = decide(request.pk, answer, by=self.owner)
        except ServiceError as error:
            self.display.note(error.message, "yellow")
            return not isinstance(error, NotFound)
        if decided.status == ApprovalStatus.PENDING:
            self.display.note("A second person must approve it as well.", "yellow")
            return False
        return True

    def _leave_waiting(self, family: Family) -> int:
        self.display.close()
        for request in family.pending_requests(self.owner):
            self.display.note(f"{request.tool} waits for approval:", "bold yellow")
            self.display.note(f"  {again(f'approvals show {request.id}')}")
            self.display.note(f"  {again(f'approvals decide {request.id} approve')}")
        self.display.note(f"Then continue the run: {again(f'runs resume {family.run_id}')}")
        return WAITING


def kept_files(run: Run) -> list[Path]:
    """Return the directories of the run's thread that contain files of the agent."""
    thread = run.thread
    own = [Path(thread.workspace_path)] if thread.workspace_path else []
    kept = DataSettings.now().workspaces / thread.id
    areas = [*own, kept / "workspace", kept / "outputs"]
    return [area for area in areas if area.is_dir() and _has_entries(area)]


def _has_entries(area: Path) -> bool:
    directory = open_directory(area)
    try:
        return bool(os.listdir(directory))
    finally:
        os.close(directory)


def exit_code(run: Run) -> int:
    """Return the exit code of a run that has ended."""
    if run.status == RunStatus.COMPLETED:
        return OK
    if run.status == RunStatus.CANCELLED:
        return INTERRUPTED
    return LIMIT if run.error_code.startswith("limit_") else FAILED


__all__ = ["Family", "replay"]

PAGE = 500


def replay(run_id: str) -> Iterator[dict[str, Any]]:
    """Yield the stored events of a run and its subagents.

    The events of each subagent come before the event of its end.
    """
    told: set[str] = set()
    begun: list[str] = []
    after = 0
    while events := read_events(run_id, after=after, limit=PAGE):
        for event in events:
            child = event["data"].get("child_run_id", "")
            if event["type"] == SubagentFinished.type and child not in told:
                told.add(child)
                yield from replay(child)
            yield {"run_id": run_id, **event}
            if event["type"] == SubagentStarted.type:
                begun.append(child)
        after = events[-1]["seq"]
    for child in begun:
        if child not in told:
            yield from replay(child)
