"""The prompt of a session at a terminal: history, completion and several lines."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.base import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import create_output
from prompt_toolkit.output.vt100 import Vt100_Output

from agents.doors.cli.errors import Signalled
from agents.doors.cli.terminal import one_line, visible
from velproject.cli.commands.runs.session.pasted import Pastes

MOST_FILES = 1000
"""The most entries of a directory that completion looks at."""
MOST_HISTORY = 1_000_000
"""The size in bytes above which the file with earlier lines is shortened."""
KEPT_HISTORY = 500_000
AGAIN = "Press Ctrl-C again to leave."


class Prompt:
    """Reads tasks and commands.

    Args:
        history: The file with earlier lines. It is created for its owner only.
        directory: The directory whose files complete a name after `@`.
        commands: The slash commands, each with its help.
        status: Returns the text of the status line, before each line.
        warn: Prints a warning, if the history cannot be stored or the editor fails.
    """

    def __init__(
        self,
        *,
        history: Path,
        directory: Path,
        commands: Mapping[str, str],
        status: Callable[[], str],
        warn: Callable[[str], None],
    ) -> None:
        self._status = status
        self._warn = warn
        self._shown_status = ""
        self._leaves = False
        self._is_in_editor = False
        self.pastes = Pastes()
        output = create_output(stdout=sys.stdout)
        if isinstance(output, Vt100_Output):
            # Some terminals do not report the position of the cursor.
            output.enable_cpr = False
        self._session: PromptSession[str] = PromptSession(
            multiline=True,
            prompt_continuation="  ",
            history=_stored_history(history, warn),
            completer=_Completer(directory, commands),
            complete_while_typing=False,
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
            return await self._session.prompt_async(self._message, handle_sigint=False)
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
        line = AGAIN if self._leaves else self._shown_status
        return [("fg:ansibrightblack", line), ("", "\n> ")]

    def _stay(self) -> None:
        self._leaves = False

    async def _edit(self, buffer: Buffer) -> None:
        """Let the person edit the line in $VISUAL or $EDITOR. Without saving, the line stays."""
        self._is_in_editor = True
        try:
            text = await run_in_terminal(lambda: self._edited(buffer.text), in_executor=True)
        finally:
            self._is_in_editor = False
        if text is not None:
            buffer.document = Document(text)

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
        @keys.add("c-j", filter=at_prompt)
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.complete_state is not None and buffer.complete_state.current_completion:
                buffer.complete_state = None
            elif buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\"):
                buffer.delete_before_cursor()
                buffer.insert_text("\n")
            else:
                buffer.validate_and_handle()

        @keys.add("escape", "enter", filter=at_prompt)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add(Keys.BracketedPaste, filter=at_prompt)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text(self.pastes.insert(event.data))

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


class _Completer(Completer):
    """Completes slash commands, and names of files after `@`."""

    def __init__(self, directory: Path, commands: Mapping[str, str]) -> None:
        self._directory = directory
        self._commands = commands

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        word = before.rpartition("\n")[2].rpartition(" ")[2]
        if before == word and word.startswith("/"):
            for name, text in self._commands.items():
                if name.startswith(word):
                    yield Completion(name, -len(word), display_meta=text)
        elif word.startswith("@"):
            for path in files_below(self._directory, word[1:]):
                yield Completion(f"@{path}", -len(word))


def files_below(directory: Path, start: str) -> list[str]:
    """Return the relative paths that start with `start`, directories with a slash at the end.

    Names with spaces or hidden characters, and paths outside `directory`, are not offered.
    """
    if start.startswith("/"):
        return []
    folder, slash, name = start.rpartition("/")
    place = directory / folder
    try:
        if not place.resolve().is_relative_to(directory.resolve()):
            return []
        with os.scandir(place) as entries:
            found = [
                f"{folder}{slash}{entry.name}{'/' if entry.is_dir() else ''}"
                for entry in islice(entries, MOST_FILES)
                if entry.name.startswith(name) and one_line(entry.name, 1000) == entry.name
            ]
    except (OSError, ValueError):  # no such directory, or a NUL in the path
        return []
    return sorted(path for path in found if " " not in path)
