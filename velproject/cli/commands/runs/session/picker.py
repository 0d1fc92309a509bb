"""A list at the terminal, from which a person chooses with the arrow keys."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence

from prompt_toolkit import Application
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.output import create_output
from prompt_toolkit.output.vt100 import Vt100_Output

from agents.doors.cli.errors import Signalled
from agents.doors.cli.terminal import visible

SHOWN = 10


class _Picker:
    def __init__(self, question: str, lines: Sequence[str]) -> None:
        self._question = question
        self._lines = [visible(line) for line in lines]
        self._search = ""
        self._at = 0

    def found(self) -> list[int]:
        """Return the indexes of the lines that contain the typed text."""
        wanted = self._search.lower()
        return [at for at, line in enumerate(self._lines) if wanted in line.lower()]

    def text(self) -> StyleAndTextTuples:
        found = self.found()
        first = max(0, min(self._at - SHOWN // 2, len(found) - SHOWN))
        rows: StyleAndTextTuples = [("bold", f"{self._question} {visible(self._search)}\n")]
        for place in range(first, min(first + SHOWN, len(found))):
            mark = "> " if place == self._at else "  "
            style = "reverse" if place == self._at else ""
            rows.append((style, f"{mark}{self._lines[found[place]]}\n"))
        rows.append(("fg:ansibrightblack", self._hint(len(found))))
        return rows

    def _hint(self, count: int) -> str:
        keys = "Up, Down and Enter choose, letters search, Esc leaves"
        return f"{count} of {len(self._lines)} · {keys}"

    def move(self, step: int) -> None:
        self._at = max(0, min(self._at + step, len(self.found()) - 1))

    def search(self, text: str) -> None:
        self._search, self._at = text, 0

    def keys(self) -> KeyBindings:
        keys = KeyBindings()
        for names, step in (
            (("up", "c-p"), -1), (("down", "c-n"), 1), (("pageup",), -SHOWN), (("pagedown",), SHOWN)
        ):  # fmt: skip
            for name in names:
                keys.add(name)(lambda event, step=step: self.move(step))

        @keys.add("enter")
        def _(event: KeyPressEvent) -> None:
            found = self.found()
            if found:
                event.app.exit(result=found[self._at])

        @keys.add("escape", eager=True)
        @keys.add("c-c")
        @keys.add("c-d")
        def _(event: KeyPressEvent) -> None:
            event.app.exit(result=None)

        @keys.add("backspace")
        def _(event: KeyPressEvent) -> None:
            self.search(self._search[:-1])

        @keys.add(Keys.Any)
        def _(event: KeyPressEvent) -> None:
            if event.data.isprintable():
                self.search((self._search + event.data)[:80])

        return keys


def pick(question: str, lines: Sequence[str]) -> int | None:
    """Return the index of the chosen line, or None if the person leaves.

    The list disappears afterwards. Raises `Signalled`, and `KeyboardInterrupt` for SIGINT.
    """
    picker = _Picker(question, lines)
    output = create_output(stdout=sys.stderr)
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False  # some terminals do not report the position of the cursor
    control = FormattedTextControl(picker.text, focusable=True, show_cursor=False)
    app: Application[int | None] = Application(
        layout=Layout(Window(control, height=SHOWN + 2)),
        key_bindings=picker.keys(),
        output=output,
        erase_when_done=True,
    )
    app.ttimeoutlen = 0.1
    return asyncio.run(_run(app))


async def _run(app: Application[int | None]) -> int | None:
    loop = asyncio.get_running_loop()
    numbers = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) != signal.SIG_IGN
    ]
    for number in numbers:
        loop.add_signal_handler(number, _end, app, number)
    try:
        return await app.run_async(handle_sigint=False)
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _end(app: Application[int | None], number: int) -> None:
    if app.is_running and app.future is not None and not app.future.done():
        app.exit(exception=KeyboardInterrupt() if number == signal.SIGINT else Signalled(number))
