"""The prompt of a session at a terminal: history, completion and several lines."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.base import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import create_output
from prompt_toolkit.output.vt100 import Vt100_Output

from agents.doors.cli.errors import CliError, Signalled
from agents.doors.cli.terminal import visible
from velproject.cli.commands.runs.session import clipboard
from velproject.cli.commands.runs.session.completion import PromptCompleter
from velproject.cli.commands.runs.session.pasted import Pastes

MOST_HISTORY = 1_000_000
"""The size in bytes above which the file with earlier lines is shortened."""
KEPT_HISTORY = 500_000
AGAIN = "Press Ctrl-C again to leave."
SHIFT_ENTER = ("\x1b[13;2u", "\x1b[27;2;13~")
"""Sequences for Shift+Enter, of terminals that distinguish it from Enter. It is then Alt+Enter."""
ANSI_SEQUENCES.update(dict.fromkeys(SHIFT_ENTER, (Keys.Escape, Keys.ControlM)))


class Prompt:
    """Reads tasks and commands.

    Args:
        history: The file with earlier lines. It is created for its owner only.
        directory: Returns the directory whose files complete a path after `@`, before each line.
        commands: The slash commands, each with its help.
        status: Returns the text of the status line, before each line.
        warn: Prints a warning, if the history cannot be stored or the editor fails.
    """

    def __init__(
        self,
        *,
        history: Path,
        directory: Callable[[], Path],
        commands: Mapping[str, str],
        status: Callable[[], str],
        warn: Callable[[str], None],
    ) -> None:
        self._status = status
        self._warn = warn
        self._directory = directory
        self._shown_status = ""
        self._shown_directory = Path()
        self._hint = ""
        """Shown instead of the status until the line changes."""
        self._leaves = False
        self._is_early = False
        """The keys were pressed before the prompt appeared."""
        self._is_in_editor = False
        self.pastes = Pastes()
        self.start = ""
        """The start of the next line, for the person to complete."""
        output = create_output(stdout=sys.stdout)
        if isinstance(output, Vt100_Output):
            # Some terminals do not report the position of the cursor.
            output.enable_cpr = False
        self._session: PromptSession[str] = PromptSession(
            multiline=True,
            prompt_continuation="  ",
            history=_stored_history(history, warn),
            completer=PromptCompleter(lambda: self._shown_directory, commands),
            complete_while_typing=False,
            complete_in_thread=True,
            key_bindings=self._keys(),
            output=output,
        )
        self._session.default_buffer.on_text_changed += lambda _: self._stay()

    @property
    def input(self) -> Input:
        """The input of the terminal, for keys that were pressed too early."""
        return self._session.input

    def read(self) -> str | None:
        """Return the next input, also of several lines, or None at the end. Raises `Signalled`."""
        self._stay()
        self._shown_status = visible(self._status())
        self._shown_directory = self._directory()
        try:
            return asyncio.run(self._read())
        except (EOFError, KeyboardInterrupt):
            return None

    async def _read(self) -> str:
        loop = asyncio.get_running_loop()
        numbers = [
            number
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            if signal.getsignal(number) != signal.SIG_IGN
        ]
        for number in numbers:
            loop.add_signal_handler(number, self._end, number)
        try:
            print()
            start, self.start = self.start, ""
            self._is_early = True
            return await self._session.prompt_async(
                self._message,
                handle_sigint=False,
                default=start,
                pre_run=self._call_after_early_keys,
            )
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _end(self, number: int) -> None:
        if number == signal.SIGINT and self._is_in_editor:
            return  # Ctrl-C in the editor, which has the same terminal
        app = self._session.app
        error = EOFError() if number == signal.SIGINT else Signalled(number)
        if app.is_running and app.future is not None and not app.future.done():
            app.exit(exception=error)

    def _message(self) -> StyleAndTextTuples:
        # A toolbar at the bottom needs the position of the cursor.
        line = AGAIN if self._leaves else self._hint or self._shown_status
        return [("fg:ansibrightblack", line), ("", "\n> ")]

    def _stay(self) -> None:
        self._leaves = False
        self._hint = ""

    def _call_after_early_keys(self) -> None:
        asyncio.get_running_loop().call_soon(self._start_typing)

    def _start_typing(self) -> None:
        self._is_early = False

    def picture(self) -> str:
        """Return the mark of the picture in the clipboard. Raises `CliError`."""
        return self.pastes.insert_picture(*clipboard.picture())

    async def _paste_picture(self, buffer: Buffer) -> None:
        """Insert the mark of the picture in the clipboard, or show the problem."""
        try:
            buffer.insert_text(await asyncio.to_thread(self.picture))
        except CliError as error:
            self._hint = error.message
            self._session.app.invalidate()

    async def _edit(self, buffer: Buffer) -> None:
        """Let the person edit the line in $VISUAL or $EDITOR. Without saving, the line stays."""
        self._is_in_editor = True
        try:
            text = await run_in_terminal(lambda: self._edited(buffer.text), in_executor=True)
        finally:
            self._is_in_editor = False
        if text is not None:
            buffer.document = Document(text if buffer.text.startswith("!") else no_command(text))

    def _edited(self, text: str) -> str | None:
        """Return the text after the editor. None: it was not saved, or the editor failed."""
        try:
            edited = click.edit(text, extension=".md")
        except (click.ClickException, OSError, ValueError) as error:
            self._warn(f"The editor failed: {error}")
            return None
        return None if edited is None else edited.rstrip("\n")

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        at_prompt = has_focus(DEFAULT_BUFFER)

        @keys.add("enter", filter=at_prompt)
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            offered = buffer.complete_state
            if offered and offered.current_completion and len(offered.completions) > 1:
                buffer.complete_state = None
            elif buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\"):
                buffer.delete_before_cursor()
                buffer.insert_text("\n")
            else:
                buffer.validate_and_handle()

        @keys.add("c-j", filter=at_prompt)
        @keys.add("escape", "enter", filter=at_prompt)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add(Keys.BracketedPaste, filter=at_prompt)
        def _(event: KeyPressEvent) -> None:
            buffer, text = event.current_buffer, self.pastes.insert(event.data)
            buffer.insert_text(no_command(text) if buffer.cursor_position == 0 else text)

        @keys.add("!", filter=at_prompt)
        def _(event: KeyPressEvent) -> None:
            # Without bracketed paste, a pasted text looks like keys that arrive together.
            buffer = event.current_buffer
            is_typed = not (self._is_early or event.key_processor.input_queue)
            text = "!" * event.arg
            buffer.insert_text(text if is_typed or buffer.cursor_position else no_command(text))

        @keys.add("c-v", filter=at_prompt)
        async def _(event: KeyPressEvent) -> None:
            await self._paste_picture(event.current_buffer)

        @keys.add("c-x", "c-e", filter=at_prompt)
        async def _(event: KeyPressEvent) -> None:
            await self._edit(event.current_buffer)

        @keys.add("c-o", filter=at_prompt)
        def _(event: KeyPressEvent) -> None:
            if not event.current_buffer.text:
                event.app.exit(result="/output")

        @keys.add("c-c", filter=at_prompt)
        def _(event: KeyPressEvent) -> None:
            if event.current_buffer.text:
                event.current_buffer.reset()
            elif self._leaves:
                event.app.exit(exception=EOFError())
            else:
                self._leaves = True

        return keys


def no_command(text: str) -> str:
    """Return a text that the person has not typed, so that it runs no command of the shell."""
    return f" {text}" if text.startswith("!") else text


def _stored_history(path: Path, warn: Callable[[str], None]) -> History:
    """Return the history in the file at `path`, which only its owner can read."""
    try:
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(opened, 0o600)
            _shorten(path, opened)
        finally:
            os.close(opened)
    except OSError as error:
        warn(f"The history of this session is not stored: {path}: {error.strerror}.")
        return InMemoryHistory()
    return FileHistory(path)


def _shorten(path: Path, opened: int) -> None:
    """Remove the oldest entries of a history that is too long. Raises `OSError`."""
    size = os.fstat(opened).st_size
    if size <= MOST_HISTORY:
        return
    data = os.pread(opened, KEPT_HISTORY, size - KEPT_HISTORY)
    _, start, kept = data.partition(b"\n# ")  # each entry starts with its time
    handle, name = tempfile.mkstemp(prefix=f"{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(start + kept)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink()
        raise
