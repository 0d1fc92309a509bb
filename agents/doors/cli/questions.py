"""Questions to a person at the terminal."""

from __future__ import annotations

import sys
import termios

from rich.console import Console
from rich.text import Text

from agents.doors.cli.prompting import interruptible


def confirm(question: str, console: Console) -> bool:
    """Return whether the person typed `y` after the question appeared. End of input means no."""
    forget_typed_ahead()
    try:
        return read(f"{question} [y/n] ", console).strip().lower() == "y"
    except EOFError:
        console.print()
        return False


def read(question: str, console: Console) -> str:
    """Return a line of input. Raises `EOFError` at the end of input, and `Signalled`."""
    with interruptible():
        console.print(Text(question, style="bold"), end="")
        console.file.flush()
        line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


def forget_typed_ahead() -> None:
    """Discard keys that were pressed before the question appeared."""
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
