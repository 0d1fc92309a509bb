"""The output of an interactive session, in a real terminal with colors."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
from contextlib import closing

import pytest
from rich.console import Console

from tests.support.messages_script import ToolUse, Turn
from tests.velproject.command import Terminal, Vel, say
from tests.velproject.held_model import at_work
from velproject.cli.commands.runs.session.markdown import block_lines, finished_blocks

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


def plain(text: str) -> str:
    """Return what a text shows in a terminal of 100 columns, without colors."""
    lines = block_lines(text, Console(width=100))
    return "\n".join("".join(part.text for part in line) for line in lines)


def ask(vel: Vel, *turns: dict[str, object], **environment: str) -> Terminal:
    """Return the terminal after the first task."""
    terminal = Terminal(vel, *vel.script(*turns), **environment)
    terminal.expect(READY)
    terminal.type("go\r")
    terminal.expect("tokens in")
    terminal.expect(READY)
    return terminal


def leave(terminal: Terminal) -> str:
    terminal.type("\x04")
    assert terminal.finish() == 0
    return terminal.shown


def test_an_answer_is_shown_as_markdown_with_highlighted_code(vel: Vel) -> None:
    text = "# Title\n\nSome **bold** words.\n\n```python\nreturn 1\n```\n"
    shown = leave(ask(vel, say(text)))
    assert "\x1b[1;4mTitle\x1b[0m" in shown
    assert "Some \x1b[1mbold\x1b[0m words." in shown
    assert re.search(r"\x1b\[\d+mreturn\x1b\[0m", shown)
    assert "```" not in re.split(r"\x1b\[J", shown)[-1]


def test_a_pipe_and_a_plain_terminal_get_the_source_of_an_answer(vel: Vel) -> None:
    text = "# Title\n\n**bold**"
    done = vel(*vel.script(say(text)), "go")
    assert done.stdout == f"{text}\n"
    for environment in ({"TERM": "dumb"}, {"NO_COLOR": "1"}):
        terminal = Terminal(vel, *vel.script(say(text)), **environment)  # type: ignore[arg-type]
        terminal.expect("> ")
        terminal.type("go\n")
        terminal.expect("# Title\r\n\r\n**bold**\r\n")
        terminal.expect("> ")
        terminal.type("exit\n")
        assert terminal.finish() == 0


def test_an_answer_shows_no_escape_sequence_no_markup_and_no_link(vel: Vel) -> None:
    text = "\x1b]0;title\x07[bold red]x[/] [click](http://evil) &#x202e; \x1b[2J"
    shown = leave(ask(vel, say(text)))
    assert "\\x1b]0;title\\x07[bold red]x[/] [click](http://evil) &#x202e; \\x1b[2J" in shown
    for attack in ("\x1b]0;", "\x1b]8;", "\x1b[2J\n", "\u202e"):
        assert attack not in shown


@pytest.mark.parametrize(
    "text",
    [
        "<!-- hidden -->",
        "<b>hidden</b>",
        "[x]: hidden",
        "![](hidden)",
        "[click](hidden)",
        "> " * 40 + "hidden",
        "- " * 40 + "hidden",
        "```hidden words\ncode\n```",
        "|a|\n|-|\n|b|hidden|",
        "|a|b|\n|-|-|\n|" + "hidden" * 40 + "|b|",
        "```\n" + "x" * 300 + "hidden\n```",
    ],
)
def test_markdown_hides_no_words(text: str) -> None:
    assert "hidden" in "".join(plain(text).split())


def test_markdown_keeps_entities_as_their_source() -> None:
    assert plain("**a** &#x202e; &#27; &amp; b") == "a &#x202e; &#27; &amp; b\n"


def test_blocks_end_at_blank_lines_outside_code_and_lists() -> None:
    code = "```\na\n\nb\n```\n"
    assert finished_blocks(f"one\n\n{code}") == ("one\n\n", code)
    assert finished_blocks(f"{code}\nafter") == (f"{code}\n", "after")
    assert finished_blocks("- one\n\n  more\n") == ("", "- one\n\n  more\n")
    assert finished_blocks("````\n```\n\nx\n") == ("", "````\n```\n\nx\n")


def test_a_long_output_opens_with_a_command_and_a_key(vel: Vel) -> None:
    lines = [f"line {number}" for number in range(20)] + ["\x1b]0;title\x07[bold]x[/]"]
    content = "\n".join(lines)
    given = {"path": "note.txt", "content": content}
    terminal = ask(
        vel, say("", ("write_file", given)), say("", ("read_file", {"path": "note.txt"})), say("Ok")
    )
    assert "/output 1 or Ctrl-O shows all of it" in terminal.shown
    assert "\\x1b]0;title\\x07[bold]x[/]" not in terminal.shown.partition("read_file")[2]
    terminal.type("/output 1\r")
    terminal.expect("Output 1: read_file")
    terminal.expect("\\x1b]0;title\\x07[bold]x[/]")
    terminal.expect(READY)
    terminal.type("\x0f")
    terminal.expect("Output 1: read_file")
    terminal.expect("line 19")
    terminal.expect(READY)
    terminal.type("/output 2\r")
    terminal.expect("There is no such output here")
    terminal.expect(READY)
    assert "\x1b]0;title" not in leave(terminal)


@pytest.mark.parametrize("key", ["\x1b", "\x03"], ids=["Esc", "Ctrl-C"])
def test_a_key_cancels_the_turn_and_the_session_continues(vel: Vel, key: str) -> None:
    terminal = Terminal(vel, *vel.script(say("Late", delay=600)))
    terminal.expect(READY)
    terminal.type("go\r")
    terminal.expect("thinking")
    terminal.type(key)
    terminal.expect("Cancelled")
    terminal.expect(READY)
    terminal.type("\x04")
    assert terminal.finish() == 130
    assert [row["status"] for row in vel.runs()] == ["cancelled"]


def test_a_second_ctrl_c_gives_the_terminal_its_mode_back(vel: Vel) -> None:
    terminal = Terminal(vel, *vel.script(say("Late", delay=600)))
    terminal.expect(READY)
    terminal.type("go\r")
    terminal.expect("thinking")
    with closing(sqlite3.connect(vel.data / "vel.sqlite3")) as database:
        database.execute("BEGIN IMMEDIATE")  # so the first Ctrl-C cannot cancel the run
        assert not terminal.shows_what_is_typed()
        terminal.type_until_the_end("\x03")
    assert terminal.shows_what_is_typed()
    assert terminal.finish() == 130
    assert terminal.shown.rpartition("\x1b[?2004")[2].startswith("l")


def test_other_keys_during_a_turn_wait_for_the_prompt_and_cancel_nothing(vel: Vel) -> None:
    with at_work(vel, Turn("Done.")) as (terminal, answer):
        terminal.type("\x1b[C/cost")
        answer()
        terminal.expect("tokens in")
        terminal.expect("/cost")
        terminal.type("\r")
        terminal.expect("This session:")
        terminal.expect(READY)
        leave(terminal)
    assert [row["status"] for row in vel.runs()] == ["completed"]


def test_keys_between_a_task_and_the_prompt_are_not_shown_and_enter_is_no_new_line(
    vel: Vel,
) -> None:
    terminal = Terminal(vel, *vel.script(say("Done.")))
    terminal.expect(READY)
    terminal.type("go\r")
    terminal.expect("tokens in")
    assert not terminal.shows_what_is_typed_before(READY)
    terminal.type("!")
    terminal.expect("!")
    os.mkfifo(vel.data / "fifo")
    terminal.type(f"echo st''arted; cat {vel.data}/fifo\r")
    terminal.expect("started")
    assert terminal.shows_what_is_typed()
    (vel.data / "fifo").write_text("ended")
    terminal.expect("ended")
    terminal.expect(READY)
    leave(terminal)
    assert len(vel.runs()) == 1


def test_the_mode_of_the_terminal_is_restored_for_an_approval(vel: Vel) -> None:
    """Keys of a turn, such as a `y`, answer no question that comes later."""
    call = ToolUse("write_file", {"path": "note.txt", "content": "new\n"})
    with at_work(vel, Turn(tool_uses=[call]), Turn("Done."), flags=("--approve", "write_file")) as (
        terminal,
        answer,
    ):
        terminal.type("y\r")
        answer(2)
        terminal.expect("Run it?")
        assert [row["status"] for row in vel.requests()] == ["pending"]
        terminal.type("n\n")
        terminal.expect("Why not?")
        terminal.type("\n")
        terminal.expect("tokens in")
        terminal.expect(READY)
        leave(terminal)
    assert len(vel.runs()) == 1
    assert not [*vel.data.glob("workspaces/*/workspace/note.txt")]


def test_an_edit_shows_its_colored_difference_before_the_approval(vel: Vel) -> None:
    text = "\x1b]0;title\x07[bold red]one[/]"
    written = {"path": "note.txt", "content": f"{text}\nkept\n"}
    edited = {"path": "note.txt", "old_text": text, "new_text": "two"}
    script = vel.script(say("", ("write_file", written)), say("", ("edit_file", edited)), say("Ok"))
    terminal = Terminal(vel, *script, "--approve", "edit_file")
    terminal.expect(READY)
    terminal.type("go\r")
    terminal.expect("edit_file waits for your approval")
    shown = terminal.expect("Run it?")
    assert "\x1b[31m[bold red]one[/]\x1b[0m" in shown
    assert re.search(r"\x1b\[32m[^\n]*two", shown)
    terminal.type("y\n")
    terminal.expect("tokens in")
    terminal.expect(READY)
    assert "\x1b]0;title" not in leave(terminal)


def test_a_closed_terminal_during_a_turn_cancels_it(vel: Vel) -> None:
    terminal = Terminal(vel, *vel.script(say("Late", delay=600)))
    terminal.expect(READY)
    terminal.type("go\r")
    terminal.expect("thinking")
    terminal.hang_up()
    assert terminal.finish() == 129
    assert [row["status"] for row in vel.runs()] == ["cancelled"]


def test_sigterm_during_a_turn_cancels_it_and_ends_the_session(vel: Vel) -> None:
    terminal = Terminal(vel, *vel.script(say("Late", delay=600)))
    terminal.expect(READY)
    terminal.type("go\r")
    terminal.expect("thinking")
    terminal.signal(signal.SIGTERM)
    assert terminal.finish() == 143
    assert [row["status"] for row in vel.runs()] == ["cancelled"]
