"""Commands of the person, which start with `!`. They run outside the sandbox, as the person.

Only the prompt accepts them, and only if the person has typed the `!`: see `prompt.Prompt`.
"""

from __future__ import annotations

import codecs
import os
import select
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agents.doors.cli.boot import SHORT_SETTINGS
from agents.doors.cli.errors import CliError, Signalled
from agents.doors.cli.prompting import interruptible
from agents.doors.cli.terminal import one_line, visible

KEPT_CHARACTERS = 100_000
"""The end of the output that is kept for the agent."""
_LOOK_SECONDS = 0.1
_MOST_AFTER_END = 1_000_000


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has ended, with the end of its output."""

    command: str
    code: int
    output: str
    was_cut: bool

    def as_text(self) -> str:
        """Return the command and its output for the agent. Control characters are visible."""
        cut = "…\n" if self.was_cut else ""
        code = f"(exit code {self.code})\n" if self.code else ""
        return f"$ {visible(self.command)}\n{cut}{self.output.rstrip()}\n{code}"


def run(command: str, directory: Path, write: Callable[[str], None]) -> Ran:
    """Run `command` with the person's shell and show its output with `write`.

    Control characters of the output become visible: the agent may have written the file that a
    command prints. The command has no terminal and no input. Ctrl-C interrupts it, and a second
    Ctrl-C kills it. A process that it leaves in the background continues without an output.

    Raises:
        CliError: The shell cannot start in this directory.
        Signalled: SIGTERM or SIGHUP came; the command was killed.
    """
    shell = os.environ.get("SHELL") or "/bin/sh"
    try:
        process = subprocess.Popen(
            [shell, "-c", command],
            cwd=directory,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # a NUL is a ValueError
        raise CliError(f"The command did not start: {one_line(str(error), 300)}.") from error
    output = _Output(write)
    signals = [signal.SIGINT, signal.SIGKILL]
    try:
        while True:  # a short command may have ended already, and its output is still in the pipe
            try:
                with interruptible():
                    _follow(process, output)
                break
            except KeyboardInterrupt:
                _signal(process, signals.pop(0) if len(signals) > 1 else signals[0])
    except (Signalled, KeyboardInterrupt):
        _signal(process, signal.SIGKILL)
        process.wait()
        raise
    finally:
        assert process.stdout is not None
        process.stdout.close()
    output.close()
    return Ran(command, process.returncode, output.kept, output.was_cut)


def _follow(process: subprocess.Popen[bytes], output: _Output) -> None:
    """Show the output until the command has ended, also if others keep its output open."""
    assert process.stdout is not None
    stream = process.stdout.fileno()
    is_open = True
    while process.poll() is None:
        if not is_open:
            process.wait()
        elif select.select([stream], [], [], _LOOK_SECONDS)[0]:
            is_open = output.take(os.read(stream, 65_536))
    rest = _MOST_AFTER_END
    while is_open and rest > 0 and select.select([stream], [], [], 0)[0]:
        data = os.read(stream, 65_536)
        rest -= len(data)
        is_open = output.take(data)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to the command and the processes that it has started, unless it has ended."""
    if process.poll() is None:
        os.killpg(process.pid, number)


def _environment() -> dict[str, str]:
    """Return the person's environment, without the settings that `vel` has chosen for itself."""
    environment = dict(os.environ)
    if environment.get("DJANGO_SETTINGS_MODULE") == SHORT_SETTINGS:
        del environment["DJANGO_SETTINGS_MODULE"]
    return environment


class _Output:
    """Shows the output of a command, and keeps its end."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._ends_line = True
        self.kept = ""
        self.was_cut = False

    def take(self, data: bytes) -> bool:
        """Show the next part. Return whether there is more."""
        text = visible(self._decoder.decode(data, final=not data))
        if text:
            self._write(text)
            self._ends_line = text.endswith("\n")
            self.kept += text
            if len(self.kept) > KEPT_CHARACTERS:
                self.kept = self.kept[-KEPT_CHARACTERS:]
                self.was_cut = True
        return bool(data)

    def close(self) -> None:
        """End an unfinished line."""
        if not self._ends_line:
            self._write("\n")
