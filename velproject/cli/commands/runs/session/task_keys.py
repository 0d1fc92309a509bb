"""The keys during a task, at a terminal: Esc cancels it, and lines become the next tasks."""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
import termios
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

from django.db import connection
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from agents.doors.cli.errors import CliError
from agents.doors.cli.slash_commands import Session, SlashCommand
from agents.doors.cli.terminal import one_line
from agents.services.errors import ServiceError
from velproject.cli.commands.runs.display import Display
from velproject.cli.commands.runs.session.prompt import no_command

ESC = b"\x1b"
MOST_CHARACTERS = 100_000
"""The length of the line; more is dropped."""
UP = "Up takes it back"
COMMAND_WORDS = ("exit", "quit", "clear")
BRACKETED_PASTE = {True: "\x1b[?2004h", False: "\x1b[?2004l"}


class Queue(Protocol):
    """The tasks that start after the present one. Other threads call these methods."""

    def queue(self, message: str) -> None:
        """Store a task that starts after the present one. Raises `ServiceError`, `CliError`."""

    def take_back(self) -> str | None:
        """Cancel the newest of these tasks and return its text, or None without one."""


class TaskKeys:
    """Reads the keys of a person during a task.

    Its mode of the terminal stays until `restore`, so that Enter is still Enter between the task
    and the prompt. The terminal still creates signals, so that Ctrl-C works as without this class.
    Commands of the person's shell are refused, and most slash commands wait for the prompt.
    """

    def __init__(
        self,
        queue: Queue,
        display: Callable[[], Display],
        session: Session,
        commands: Iterable[SlashCommand],
    ) -> None:
        self._queue = queue
        self._display = display
        self._session = session
        self._commands = {each.name: each for each in commands if each.during_task is not None}
        self._parser = Vt100Parser(self._take)
        self._line = ""
        self._is_alt = False
        self._pressed: Callable[[], None] = lambda: None
        self._mode: list[Any] | None = None  # of the terminal, before the task
        self._jobs: set[asyncio.Task[None]] = set()
        self._order = asyncio.Lock()
        self.held: list[str] = []
        """Finished lines for the prompt."""

    @asynccontextmanager
    async def watched(self, pressed: Callable[[], None]) -> AsyncIterator[None]:
        """Read keys until the block ends, and call `pressed` in the running loop for each Esc.

        The terminal keeps its new mode until `restore`.
        """
        terminal = sys.stdin.fileno()
        loop = asyncio.get_running_loop()
        self._pressed = pressed
        self._mode = self._mode or termios.tcgetattr(terminal)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")

        def read() -> None:
            try:
                data = os.read(terminal, 4096)
            except OSError:
                data = b""
            if not data:
                loop.remove_reader(terminal)  # the terminal is closed: SIGHUP ends the turn
            elif data == ESC:
                pressed()
            else:
                self._parser.feed(decoder.decode(data))
                self._display().typing(one_line(self._line[-60:]))

        changed = termios.tcgetattr(terminal)
        changed[0] &= ~termios.ICRNL  # Enter and Ctrl-J differ, as at the prompt
        changed[3] &= ~(termios.ICANON | termios.ECHO)
        changed[6][termios.VMIN], changed[6][termios.VTIME] = 1, 0
        termios.tcsetattr(terminal, termios.TCSADRAIN, changed)
        _write(BRACKETED_PASTE[True])
        loop.add_reader(terminal, read)
        try:
            yield
        finally:
            loop.remove_reader(terminal)
            await asyncio.gather(*self._jobs)
            self._display().typing("")

    def restore(self) -> None:
        """Give the terminal the mode that it had before the task, if it does not have it."""
        mode, self._mode = self._mode, None
        if mode is not None:
            with suppress(termios.error, OSError):  # the terminal is closed, and has no mode
                _write(BRACKETED_PASTE[False])
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, mode)

    def forget(self) -> None:
        """Drop the unfinished line. A question comes: it is no answer, and no task either."""
        self.restore()
        self._line = ""

    def take_line(self) -> str:
        """Return the unfinished line for the prompt, which does not run it as a command."""
        line, self._line = self._line, ""
        return no_command(line)

    def _take(self, press: KeyPress) -> None:
        key, is_alt = press.key, self._is_alt
        self._is_alt = key == Keys.Escape
        match key:
            case Keys.ControlM if not is_alt:
                self._end_line()
            case Keys.ControlM | Keys.ControlJ:
                self._add("\n")
            case Keys.BracketedPaste:
                self._add(press.data.replace("\r\n", "\n").replace("\r", "\n"))
            case Keys.ControlH:
                self._line = self._line[:-1]
            case Keys.ControlU:
                self._line = ""
            case Keys.Up if not self._line:
                self._start(self._take_back())
            case _ if not isinstance(key, Keys):
                self._add(key)

    def _add(self, text: str) -> None:
        self._line = (self._line + text)[:MOST_CHARACTERS]

    def _end_line(self) -> None:
        text = self._line.strip()
        if len(text) < 2:
            return  # nothing, or the answer to a question that has not come yet
        self._line = ""
        if text.startswith("!"):
            self._note(f"Not run, because ! works only at the prompt: {one_line(text)}", "yellow")
        elif text.lower() == "cancel":
            self._pressed()
        elif (command := self._commands.get(text.lower())) is not None:
            self._start(self._run(command))
        elif self.held or text.lower() in COMMAND_WORDS or _is_slash(text):
            self.held.append(text)
            self._note(f"After this task: {one_line(text)}")
        else:
            self._start(self._send(text.removeprefix("/") if text.startswith("//") else text))

    def _start(self, job: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(job)
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)

    async def _send(self, text: str) -> None:
        async with self._order:
            try:
                await asyncio.to_thread(self._queue.queue, text)
            except (ServiceError, CliError) as error:
                self._line = text + self._line
                self._note(error.message, "red")
            else:
                hints = [f"{each.name} {each.hint}" for each in self._commands.values()]
                self._note(f"Next task: {one_line(text)} ({', '.join([UP, *hints])})")

    async def _run(self, command: SlashCommand) -> None:
        async with self._order:
            try:
                told = await asyncio.to_thread(self._carry_out, command)
            except (ServiceError, CliError) as error:
                self._note(error.message, "red")
            else:
                self._note(told)

    def _carry_out(self, command: SlashCommand) -> str:
        try:
            return command.during_task(self._session) if command.during_task is not None else ""
        finally:
            connection.close()

    async def _take_back(self) -> None:
        async with self._order:
            text = await asyncio.to_thread(self._queue.take_back)
        if text is not None:
            self._line = text + self._line
            self._note(f"Taken back: {one_line(text)}")

    def _note(self, text: str, style: str = "dim") -> None:
        self._display().aside(text, style)


def _is_slash(text: str) -> bool:
    return text.startswith("/") and not text.startswith("//")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
