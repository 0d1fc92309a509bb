"""Driving runs in this process, with a person at the terminal or none."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, NoReturn

from django.contrib.auth.models import User
from django.db import DatabaseError, connection

from agents.conf import vel_settings
from agents.engine.host import Host, own_executor
from agents.events.tail import tail
from agents.middleware.decisions import decide
from agents.models import ApprovalRequest, Run
from agents.services.errors import Conflict
from agents.services.run_control import cancel_run
from agents.states import ApprovalStatus, RunStatus
from velproject.cli.actions.ask import ask
from velproject.cli.actions.display import Display
from velproject.cli.actions.orphans import take_over
from velproject.cli.boot import again
from velproject.cli.errors import (
    FAILED,
    INTERRUPTED,
    LIMIT,
    OK,
    TERMINATED,
    WAITING,
    CliError,
    explain,
)

PATIENCE = 2.0
"""Seconds that a run gets to end after Ctrl-C, and the host to stop."""
DATABASE_PATIENCE = 8.0
"""Seconds that a database may fail before the command ends; a restart takes less."""
STOPPED = "stopped at the terminal"
_PROGRESS = ("step.completed", "tool.completed", "tool.failed")
_FINAL = ("run.completed", "run.failed", "run.cancelled")
_WAITS_FOR_PERSON = ("approval", "budget")


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
        """Ask about everything that waits. False if something is left waiting."""
        for request in pending_requests(run):
            answer = ask(request, self.display.notes) if self.interactive else None
            if answer is None:
                return False
            try:
                decide(request.id, answer, by=self.owner)
            except Conflict as error:
                self.display.note(error.message, "yellow")
        run.refresh_from_db()
        return run.status != RunStatus.WAITING

    def _leave_waiting(self, run: Run) -> int:
        self.display.close()
        for request in pending_requests(run):
            self.display.note(f"{request.tool} waits for approval:", "bold yellow")
            self.display.note(f"  {again(f'approvals show {request.id}')}")
            self.display.note(f"  {again(f'approvals decide {request.id} approve')}")
        self.display.note(f"Then the run goes on with: {again(f'runs resume {run.id}')}")
        return WAITING


class Watch:
    """Following one run, over pauses, with Ctrl-C and SIGTERM as wishes to cancel it."""

    def __init__(
        self, run_id: str, after: int, show: Callable[[dict[str, Any]], None], by: str | None
    ) -> None:
        """`by` is who cancels the run on a signal; None only stops watching."""
        self._run_id = run_id
        self._after = after
        self._show = show
        self._by = by
        self._wish: asyncio.Future[int] | None = None
        self._failing_since: float | None = None

    def database_failed(self, error: DatabaseError) -> None:
        """From the host's thread: the run did not go on because of `error`."""
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        if self._wish is not None and now - self._failing_since >= DATABASE_PATIENCE:
            self._wish.get_loop().call_soon_threadsafe(_give_up, self._wish, error)

    async def until_pause(self) -> int | None:
        """Show events until the run ends or waits for a person.

        None, or the exit code when a signal has cancelled the run.
        """
        loop = asyncio.get_running_loop()
        wish: asyncio.Future[int] = loop.create_future()
        self._wish = wish
        codes = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED, signal.SIGHUP: 129}
        for number, code in codes.items():
            loop.add_signal_handler(number, _wish, wish, code)
        following = loop.create_task(self._follow())
        try:
            waiting: set[asyncio.Future[Any]] = {following, wish}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                following.result()
                return None
            if self._by is not None and wish.exception() is None:
                await asyncio.to_thread(_cancel, self._run_id, self._by)
                await asyncio.wait([following], timeout=PATIENCE)
            if not following.done():
                following.cancel()
                await asyncio.wait([following])
            return wish.result()
        finally:
            self._wish = None
            for number in codes:
                loop.remove_signal_handler(number)

    async def _follow(self) -> None:
        async with aclosing(tail.follow(self._run_id, after=self._after)) as events:
            async for event in events:
                self._after = event["seq"]
                if event["type"] in _PROGRESS:
                    self._failing_since = None
                self._show(event)
                if event["type"] in _FINAL:
                    return
                if event["type"] == "run.suspended" and (
                    event["data"]["reason"] in _WAITS_FOR_PERSON
                ):
                    return


def _wish(wish: asyncio.Future[int], code: int) -> None:
    """The first signal asks the run to end; the second does not wait for it."""
    if wish.done():
        leave_at_once(code)
    wish.set_result(code)


def _give_up(wish: asyncio.Future[int], error: DatabaseError) -> None:
    if not wish.done():
        wish.set_exception(error)


def leave_at_once(code: int) -> NoReturn:
    """End without waiting for the host's thread. Sandboxes die with this process."""
    sys.stdout.flush()
    os._exit(code)


def _cancel(run_id: str, by: str) -> None:
    try:
        cancel_run(run_id, by=by, reason=STOPPED)
    finally:
        connection.close()


def kept_files(run: Run) -> list[Path]:
    """The directories of the thread in which the agent has left something."""
    thread = run.thread
    own = [Path(thread.workspace_path)] if thread.workspace_path else []
    kept = vel_settings().workspaces / thread.id
    areas = [*own, kept / "workspace", kept / "outputs"]
    return [area for area in areas if area.is_dir() and any(area.iterdir())]


def pending_requests(run: Run) -> list[ApprovalRequest]:
    return list(ApprovalRequest.objects.filter(run=run, status=ApprovalStatus.PENDING))


def exit_code(run: Run) -> int:
    """What a script learns of a run that has ended."""
    if run.status == RunStatus.COMPLETED:
        return OK
    if run.status == RunStatus.CANCELLED:
        return INTERRUPTED
    return LIMIT if run.error_code.startswith("limit_") else FAILED
