"""Attacks with escape sequences in texts of agents, tools and files."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.doors.cli.terminal import one_line, visible
from agents.review import as_text, call_review
from tests.velproject.command import Vel, say

EVIL = [
    "\x1b[2J\x1b[H",  # clears the screen
    "\x1b]0;title\x07",  # sets the title
    "\x1b]52;c;cm0gLXJmIH4=\x07",  # fills the clipboard
    "\x9b31m",  # the same in C1
    "safe\rrm -rf ~",  # overwrites the line
    "ab\x08\x08rm",  # backspaces over it
    "\u202egnp.exe",  # reverses the direction of the text
    "\u2066x\u2069",
    "zero\u200bwidth",
    "\U000e0041\U000e0042",  # tags that only a model reads
    "\ud800",  # half a character
    "\x00\x7f\x85",
]
RAW = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\U000e0000-\U000e0fff]"
)


@pytest.mark.parametrize("text", EVIL)
def test_control_characters_are_shown_as_code_points(text: str) -> None:
    assert not RAW.search(visible(text))
    assert "\\" in visible(text)


@given(st.text(alphabet=st.characters()))
def test_no_text_at_all_gets_through_raw(text: str) -> None:
    shown = visible(text)
    assert not RAW.search(shown)
    shown.encode("utf-8")
    assert visible(shown) == shown
    assert "\n" not in one_line(text)


def test_ordinary_text_stays_as_it_is() -> None:
    text = "Grüße, 世界! 👩‍👧 e\u0301\n\tindented"
    assert visible(text) == text


def test_lines_of_windows_are_lines() -> None:
    assert visible("one\r\ntwo") == "one\ntwo"


def test_an_input_is_shown_whole_however_long() -> None:
    command = "echo harmless" + " " * 5000 + "; rm -rf ~"
    assert "; rm -rf ~" in as_text(call_review("execute", {"command": command}))
    lines = "\n".join(f"line {number}" for number in range(500))
    assert "│ line 499" in as_text(call_review("any_tool", {"content": lines}))


@pytest.mark.slow
def test_no_part_of_an_attack_reaches_the_terminal(vel: Vel) -> None:
    evil = "".join(text for text in EVIL if text != "\ud800")
    flags = vel.script(
        say(f"said {evil}", ("write_file", {"path": "x.txt", "content": evil})),
        say("", ("read_file", {"path": "x.txt"}), ("no_such\x1b[2J", {"a": evil})),
        say("", ("write_todos", {"todos": [{"content": evil, "status": "pending"}]})),
        say("Done."),
    )
    done = vel(*flags, f"do {evil}".replace("\x00", ""))
    assert done.returncode == 0, done.stderr
    assert not RAW.search(done.stdout), done.stdout
    assert not RAW.search(done.stderr), done.stderr
    (run,) = vel.rows("runs", "list")
    for arguments in (("runs", "show", run["id"]), ("runs", "list")):
        shown = vel(*arguments)
        assert not RAW.search(shown.stdout + shown.stderr), arguments
