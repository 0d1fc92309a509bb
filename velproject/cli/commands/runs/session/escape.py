"""The Esc key during a turn, at a terminal."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from prompt_toolkit.input.base import Input
from prompt_toolkit.input.typeahead import clear_typeahead, store_typeahead
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress

ESC = b"\x1b"
MOST_BYTES = 100_000
"""Keys that are kept for the prompt; more are dropped."""


class EscapeKey:
    """Calls a function when a person presses Esc. Other keys are kept for the prompt.

    The terminal still creates signals, so that Ctrl-C works as without this class.
    """

    def __init__(self, prompt: Input) -> None:
        self._prompt = prompt

    @contextmanager
    def watched(self, pressed: Callable[[], None]) -> Iterator[None]:
        """Call `pressed` in the running loop for each Esc, until the block ends."""
        terminal = sys.stdin.fileno()
        loop = asyncio.get_running_loop()
        before = termios.tcgetattr(terminal)
        kept = bytearray()

        def read() -> None:
            try:
                keys = os.read(terminal, 4096)
            except OSError:
                keys = b""
            if not keys:
                loop.remove_reader(terminal)  # the terminal is closed: SIGHUP ends the turn
            elif keys == ESC:
                pressed()
            elif len(kept) < MOST_BYTES:
                kept.extend(keys)

        changed = termios.tcgetattr(terminal)
        changed[3] &= ~(termios.ICANON | termios.ECHO)
        changed[6][termios.VMIN], changed[6][termios.VTIME] = 1, 0
        termios.tcsetattr(terminal, termios.TCSADRAIN, changed)
        loop.add_reader(terminal, read)
        try:
            yield
        finally:
            loop.remove_reader(terminal)
            with suppress(termios.error):  # the terminal is closed, and has no mode to restore
                termios.tcsetattr(terminal, termios.TCSADRAIN, before)
            self._keep(bytes(kept))

    def forget(self) -> None:
        """Drop the kept keys. A question comes: they are no answer, and no task either."""
        clear_typeahead(self._prompt)

    def _keep(self, data: bytes) -> None:
        keys: list[KeyPress] = []
        parser = Vt100Parser(keys.append)
        parser.feed(data.decode("utf-8", "replace").replace("\n", "\r"))
        parser.flush()
        store_typeahead(self._prompt, keys)
