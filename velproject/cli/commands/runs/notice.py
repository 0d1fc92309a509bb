"""A notice for a person who does not look at the terminal during a long task."""

from __future__ import annotations

import sys

from agents.doors.cli.terminal import one_line
from agents.settings import TerminalSettings


def notify(text: str, seconds: float) -> None:
    """Report the end of a task that took `seconds`, as the setting `VEL_NOTICE` says.

    Control characters in `text` become visible, so that a title cannot end the sequence.
    """
    settings = TerminalSettings.now()
    if settings.NOTICE == "off" or seconds < settings.NOTICE_SECONDS or not sys.stderr.isatty():
        return
    line = one_line(text, 200).replace(";", ",")  # a semicolon ends a field of these sequences
    sequences = {"osc9": f"\x1b]9;{line}\x07", "osc777": f"\x1b]777;notify;Vel;{line}\x07"}
    sys.stderr.write(sequences.get(settings.NOTICE, "\x07"))
    sys.stderr.flush()
