"""A session of consecutive tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from django.db import connection

from agents.doors.cli.boot import again
from agents.doors.cli.errors import HUNG_UP, TERMINATED, WAITING, CliError
from agents.doors.cli.terminal import one_line
from agents.models import NEVER_STARTED, Message, MessageRole, Run
from agents.selectors.visible import runs_for
from agents.services.errors import Conflict
from agents.services.runs.control import cancel_run
from agents.services.runs.start import RunRequest
from agents.states import ACTIVE_RUNS
from velproject.cli.commands.runs.drive import Driver
from velproject.cli.commands.runs.task_flags import AgentOptions, opened_uploads, start_run

TAKEN_BACK = "taken back at the terminal"


def message_of(run: Run) -> str:
    """Return the text of the message that started the run."""
    return Message.objects.get(run=run, role=MessageRole.USER, turn=0).text


class Conversation:
    """A session of consecutive tasks in one thread."""

    def __init__(
        self,
        driver: Driver,
        request: RunRequest,
        options: AgentOptions | None,
        uploads: Sequence[Path] = (),
    ) -> None:
        self.driver = driver
        self._uploads = uploads
        self.request = request
        self.options = options
        self.waiting: Run | None = None
        """The last run, if it waits for a decision."""
        self._queued: list[Run] = []
        """The runs of messages that were sent during a run, in this order."""

    def say(self, message: str, files: Sequence[Path] = ()) -> int:
        """Run one task in the current thread, or in a new one. Return the exit code of its run.

        `files` belong to this task, as the uploads of the command line belong to the first one.
        """
        started = self._start(replace(self.request, message=message), files)
        self._uploads = ()  # the first task has sent the files
        if self.request.key is None:
            self.request = replace(self.request, thread=started.thread_id)
        return self.drive(started)

    def drive(self, run: Run, *, is_known: bool = False) -> int:
        """Execute a run of the session. Return its exit code."""
        code = self._drive(run, is_known=is_known)
        return self.drive_queued(code)

    def drive_queued(self, code: int) -> int:
        """Execute the queued tasks unless a run waits or a signal came. Return the last code."""
        while self._queued and code not in (WAITING, HUNG_UP, TERMINATED):
            run = self._queued.pop(0)
            if _was_removed(run):
                continue
            self.driver.display.note(f"> {one_line(message_of(run))}", "bold")
            code = self._drive(run)
        return code

    def _drive(self, run: Run, *, is_known: bool = False) -> int:
        code = self.driver.drive(run, is_known=is_known)
        self.waiting = run if code == WAITING else None
        return code

    def queue(self, message: str) -> None:
        """Store a task that starts after the present one. Other threads may call this."""
        try:
            self._queued.append(self._start(replace(self.request, message=message, queue=True), ()))
        finally:
            connection.close()

    def take_back(self) -> str | None:
        """Cancel the newest queued task and return its text, or None without one.

        Other threads may call this.
        """
        try:
            return self._cancel_newest()
        finally:
            connection.close()

    def drop_queued(self) -> None:
        """Cancel the queued tasks: their session ends before them."""
        while (text := self._cancel_newest()) is not None:
            self.driver.display.note(f"Not started: {one_line(text)}", "yellow")

    def _cancel_newest(self) -> str | None:
        while self._queued:
            run = self._queued.pop()
            if _was_removed(run):
                continue
            if run.has_ended:  # the worker was faster, so the run is shown next
                self._queued.append(run)
                return None
            cancel_run(run.id, by=self.driver.owner.username, reason=TAKEN_BACK)
            return message_of(run)
        return None

    def active_run(self) -> Run | None:
        """Return the run of the session that has not ended, or None."""
        request = self.request
        of_session = {"thread__key": request.key} if request.key else {"thread": request.thread}
        found = runs_for(self.driver.owner).filter(**of_session, status__in=ACTIVE_RUNS)
        return found.filter(parent=None).first()

    def _start(self, request: RunRequest, files: Sequence[Path]) -> Run:
        try:
            with opened_uploads([*self._uploads, *files]) as opened:
                return start_run(request, self.options, self.driver.owner, opened)
        except Conflict as error:
            run = self.active_run() if error.code == "thread_busy" else None
            if run is None:
                raise
            raise CliError(
                f"The session{f' {request.key!r}' if request.key else ''} is busy: its run "
                f"{run.id} is {run.status}. Resume it ({again(f'runs resume {run.id}')}), "
                f"or cancel it ({again(f'runs cancel {run.id}')})."
            ) from None


def _was_removed(run: Run) -> bool:
    """Read the queued run again. Return whether it never started and never will.

    Its message has joined another run, or was removed. Other queued runs may have ended, too: the
    worker can be faster than the session.
    """
    run.refresh_from_db()
    return Run.objects.filter(NEVER_STARTED, pk=run.pk).exists()
