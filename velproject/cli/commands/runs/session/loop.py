"""Read tasks and commands of a person, one after the other."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.doors.cli.boot import again
from agents.doors.cli.errors import FAILED, HUNG_UP, INTERRUPTED, OK, TERMINATED, WAITING, CliError
from agents.doors.cli.prompting import interruptible
from agents.doors.cli.terminal import one_line
from agents.kernel.lazy_modules import lazy_modules
from agents.models import Run
from agents.services.errors import ServiceError
from agents.services.runs.control import cancel_run
from agents.settings import DataSettings
from velproject.cli.commands.runs.conversation import Conversation
from velproject.cli.commands.runs.follow import STOPPED
from velproject.cli.commands.runs.session import commands
from velproject.cli.commands.runs.session.capable import is_capable
from velproject.cli.commands.runs.session.state import InteractiveSession

if TYPE_CHECKING:
    from velproject.cli.commands.runs.session.prompt import Prompt
    from velproject.cli.commands.runs.session.task_keys import TaskKeys

with lazy_modules:
    from velproject.cli.commands.runs.session import (
        pasted,
        prompt,  # 0.1 s, which only terminals need
        screen,
        task_keys,
    )

GREETING = "Type a task for the agent. `exit` ends the session, `clear` starts a new one."
KEYS = "Esc cancels a task while it runs. ! runs your own command. /help lists the commands."
NEXT_STEPS = (
    "Type `resume` to decide, `cancel` to cancel the run, or `clear` to start a new session."
)


def hold(conversation: Conversation) -> int:
    """Hold a session. Return the exit code of its last task."""
    return _Loop(conversation).hold()


class _Loop:
    """Reads lines of a person, or of a pipe.

    `exit`, `quit` and `clear` are commands in both; so are `resume` and `cancel` while a run waits.
    Slash commands exist only at a terminal: from a pipe, such a line is a task.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._driver = conversation.driver
        self._state = InteractiveSession(conversation)
        self._prompt: Prompt | None = None
        self._keys: TaskKeys | None = None

    def hold(self) -> int:
        """Read lines until `exit` or the end of input. Return the exit code of the last task."""
        driver, conversation = self._driver, self._conversation
        if driver.interactive:
            self._prepare()
            driver.display.note(GREETING)
            if self._prompt is not None:
                driver.display.note(KEYS)
        try:
            return self._hold()
        finally:
            self._restore_terminal()
            conversation.drop_queued()

    def _hold(self) -> int:
        driver, conversation = self._driver, self._conversation
        last = OK
        while not self._state.has_ended and (line := self._read()) is not None:
            self._restore_terminal()
            if (text := line.strip()) == "":
                continue
            if line.startswith("!") and driver.interactive:
                self._explained(self._run_own, line[1:])
                continue
            last = self._take(text, last)
            if last in (HUNG_UP, TERMINATED):
                break
            if last == WAITING and not driver.interactive:
                break
            if conversation.waiting is None:
                conversation.drop_queued()
            elif not self._state.has_ended:
                driver.display.note(NEXT_STEPS, "yellow")
        return last

    def _prepare(self) -> None:
        """Create the prompt, or let `input` edit lines in a simple terminal."""
        if not is_capable():
            import readline  # noqa: F401, PLC0415  # input() edits lines once it is imported

            return
        self._driver.display = screen.SessionDisplay()
        self._prompt = self._state.prompt = prompt.Prompt(
            history=DataSettings.now().DATA_DIR / f"terminal-history-{os.geteuid()}",
            directory=lambda: self._state.own_directory or Path.cwd(),
            commands={each.name: each.help for each in commands.all_commands().values()},
            status=lambda: commands.status(self._state),
            warn=lambda text: self._driver.display.note(text, "yellow"),
        )
        self._driver.keys = self._keys = task_keys.TaskKeys(
            self._conversation,
            lambda: self._driver.display,
            self._state,
            commands.all_commands().values(),
        )

    def _take(self, text: str, last: int) -> int:
        """Carry out one line. Return the exit code of the last task."""
        waiting = self._conversation.waiting
        match text.lower():
            case "exit" | "quit":
                self._state.end()
            case "clear":
                self._state.clear()
            case "resume" | "cancel" as step if waiting is not None:
                return self._explained(self._go_on, step, waiting)
            case _ if text.startswith("/") and self._driver.interactive:
                if not text.startswith("//"):
                    self._explained(commands.run, self._state, text)
                    return last
                return self._explained(self._say, text[1:])
            case _:
                return self._explained(self._say, text)
        return last

    def _run_own(self, command: str) -> int:
        """Run a command of the person's shell. Return the exit code."""
        if self._prompt is None:
            raise CliError(
                "Commands of your shell need a terminal that can edit lines. "
                "A task that starts with `!` needs a space in front."
            )
        return commands.run_own(self._state, command)

    def _say(self, text: str) -> int:
        """Run a task, with the pasted files whose marks are in its text. Return the exit code."""
        if self._prompt is None:
            return self._conversation.say(text)
        pastes = self._prompt.pastes
        with pasted.files(pastes.found(text)) as files:
            code = self._conversation.say(text, files)
        pastes.forget()
        return code

    def _go_on(self, step: str, run: Run) -> int:
        """Carry out `resume` or `cancel` for the waiting run. Return the exit code."""
        run.refresh_from_db()
        if run.has_ended:  # another person has decided the request, or cancelled the run
            self._conversation.waiting = None
            self._driver.display.note(f"The run is {run.status}: {again(f'runs show {run.id}')}")
            return self._conversation.drive_queued(OK)
        if step == "resume":
            return self._conversation.drive(run, is_known=True)
        cancel_run(run.id, by=self._driver.owner.username, reason=STOPPED)
        self._conversation.waiting = None
        self._driver.display.note("Cancelled", "yellow")
        return self._conversation.drive_queued(INTERRUPTED)

    def _explained(self, step: Callable[..., int], *arguments: Any) -> int:
        """Run a step and print its error. After an error, an interactive session continues."""
        try:
            return step(*arguments)
        except (ServiceError, CliError) as error:
            if not self._driver.interactive:
                raise
            self._driver.display.note(error.message, "red")
            return FAILED

    def _restore_terminal(self) -> None:
        if self._keys is not None:
            self._keys.restore()

    def _read(self) -> str | None:
        if self._prompt is not None and self._keys is not None:
            if self._keys.held:
                line = self._keys.held.pop(0)
                self._driver.display.note(f"> {one_line(line)}", "bold")
                return line
            self._prompt.start = self._prompt.start or self._keys.take_line()
            return self._prompt.read()
        try:
            with interruptible():
                if self._driver.interactive:
                    return input("\n> ")
                return sys.stdin.readline() or None
        except (EOFError, KeyboardInterrupt):
            return None
