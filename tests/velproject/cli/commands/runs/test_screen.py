"""Edits in an interactive session, in a real terminal with colors."""

from __future__ import annotations

from tests.velproject.command import Terminal, Vel, say

READY = "\x1b[?2004h"


def test_an_edit_shows_a_colored_difference_and_no_escape_sequence_or_markup(vel: Vel) -> None:
    text = "\x1b]0;title\x07[bold red]one[/]"
    written = {"path": "note.txt", "content": f"{text}\nkept\n"}
    edited = {"path": "note.txt", "old_text": f"{text}\nkept", "new_text": "two\nkept"}
    script = vel.script(
        say("", ("write_file", written)), say("", ("edit_file", edited)), say("Done.")
    )
    terminal = Terminal(vel, *script)
    terminal.expect(READY)
    terminal.type("go\r")
    terminal.expect("\x1b[32m  +\\x1b]0;title\\x07[bold red]one[/]\x1b[0m")
    terminal.expect("\x1b[31m  -\\x1b]0;title\\x07[bold red]one[/]\x1b[0m")
    terminal.expect("\x1b[32m  +two\x1b[0m")
    terminal.expect("Done.")
    terminal.expect(READY)
    terminal.type("\x04")
    assert terminal.finish() == 0
    assert "\x1b]0;title" not in terminal.shown
