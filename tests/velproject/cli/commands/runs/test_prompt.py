"""The prompt of an interactive session, in a real terminal that can edit lines."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.velproject.cli.commands.runs.at_prompt import (
    ECHO,
    READY,
    leave,
    messages,
    paste,
    prompted,
    told,
)
from tests.velproject.command import ROOT, Terminal, Vel, say
from velproject.cli.commands.runs.session.pasted import picture_at


def test_a_backslash_alt_enter_and_a_paste_make_a_message_of_several_lines(vel: Vel) -> None:
    terminal = prompted(vel)
    terminal.type("one\\\rtwo\x1b\rthree\x1b[200~\nfour\x1b[201~\r")
    terminal.expect("tokens in")
    terminal.expect(READY)
    leave(terminal)
    assert messages(vel) == [told("one\\ntwo\\nthree\\nfour")]


def test_ctrl_j_and_shift_enter_start_a_new_line(vel: Vel) -> None:
    """Terminals that know Shift+Enter send the sequence of kitty or that of xterm."""
    terminal = prompted(vel)
    terminal.type("one\ntwo\x1b[13;2uthree\x1b[27;2;13~four\r")
    terminal.expect("tokens in")
    terminal.expect(READY)
    leave(terminal)
    assert messages(vel) == [told("one\\ntwo\\nthree\\nfour")]


def test_the_history_is_kept_for_its_owner_only_and_can_be_searched(vel: Vel) -> None:
    terminal = prompted(vel)
    terminal.type("/model\r")
    terminal.expect("scripted: echo")
    terminal.expect(READY)
    terminal.type("/cost\r")
    terminal.expect("This session")
    terminal.expect(READY)
    leave(terminal)
    (history,) = vel.data.glob("terminal-history-*")
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    history.chmod(0o644)
    again = prompted(vel)
    again.type("\x12mod\r")
    again.type("\r")
    again.expect("/model")
    again.expect("scripted: echo")
    again.expect(READY)
    leave(again)
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


def test_a_link_in_the_place_of_the_history_is_not_followed(vel: Vel) -> None:
    target = vel.data / "target"
    target.write_text("kept")
    (vel.data / f"terminal-history-{os.geteuid()}").symlink_to(target)
    terminal = Terminal(vel, *ECHO)
    terminal.expect("The history of this session is not stored")
    terminal.expect(READY)
    terminal.type("/cost\r")
    terminal.expect("This session")
    terminal.expect(READY)
    leave(terminal)
    assert target.read_text() == "kept"


def test_tab_completes_commands_and_names_of_files(vel: Vel) -> None:
    (vel.data / "deep" / "er").mkdir(parents=True)
    (vel.data / "deep" / "er" / "weather-of-seattle.txt").touch()
    terminal = prompted(vel)
    terminal.type("/cos\t")
    terminal.expect("/cos")
    terminal.expect("t")
    terminal.type("\r")
    terminal.expect("This session")
    terminal.expect(READY)
    terminal.type("read @wthrsea\t")
    terminal.expect("deep/er/weather-of-seattle.txt")
    terminal.type("\r")
    terminal.expect("tokens in")
    terminal.expect(READY)
    leave(terminal)
    assert messages(vel) == [told("read @deep/er/weather-of-seattle.txt")]


def test_ctrl_c_clears_the_line_and_leaves_if_it_comes_twice(vel: Vel) -> None:
    terminal = prompted(vel)
    terminal.type("a task that is never sent\x03")
    terminal.type("\x03")
    terminal.expect("Press Ctrl-C again")
    terminal.type("\x03")
    assert terminal.finish() == 0
    assert vel.runs() == []


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_the_prompt_and_restores_the_terminal(
    vel: Vel, number: signal.Signals, code: int
) -> None:
    terminal = prompted(vel)
    terminal.signal(number)
    assert terminal.finish() == code
    assert terminal.shown.rindex("\x1b[?2004l") > terminal.shown.rindex("\x1b[?2004h")


def test_the_status_line_shows_no_escape_sequence_of_a_models_name(vel: Vel) -> None:
    terminal = prompted(vel, "--provider", "scripted", "--model", "\x1b]0;title\x07[bold]")
    terminal.expect("scripted: \\x1b]0;title\\x07[bold]")
    leave(terminal)
    assert "\x1b]0;title" not in terminal.shown


def test_a_simple_terminal_gets_a_plain_prompt(vel: Vel) -> None:
    for environment in ({"TERM": "dumb"}, {"NO_COLOR": "1"}):
        terminal = Terminal(vel, *vel.script(say("Done.")), **environment)  # type: ignore[arg-type]
        terminal.expect("\n> ")
        assert "\x1b[?2004h" not in terminal.shown
        terminal.type("\x04")
        assert terminal.finish() == 0


def test_a_long_paste_and_the_path_of_a_picture_become_files_of_the_task(vel: Vel) -> None:
    picture = vel.data / "a picture.png"
    shutil.copy(ROOT / "docs" / "pictures" / "run.png", picture)
    lines = "\n".join(f"line {number} \x1b]0;title\x07" for number in range(50))
    terminal = prompted(vel)
    terminal.type(f"read {paste(lines)} and {paste(repr(str(picture)))}\r")
    terminal.expect("tokens in")
    terminal.expect(READY)
    leave(terminal)
    (message,) = messages(vel)
    assert re.search(
        r"read \[pasted-\w{4}-1\.txt, 50 lines\] and \[picture 2: a picture\.png\]", str(message)
    )
    assert vel.count("agents_upload") == 2
    (text,) = vel.data.rglob("pasted-*.txt")
    assert text.read_text() == lines.replace("\x1b", "\\x1b").replace("\x07", "\\x07")
    assert "\x1b]0;title" not in terminal.shown


def test_a_paste_is_not_sent_once_its_mark_is_removed(vel: Vel) -> None:
    terminal = prompted(vel)
    terminal.type(paste("x" * 3000) + "\x15" + "short\r")
    terminal.expect("tokens in")
    terminal.expect(READY)
    leave(terminal)
    assert messages(vel) == [told("short")]
    assert vel.count("agents_upload") == 0


def test_only_the_whole_path_of_an_existing_picture_is_one(tmp_path: Path) -> None:
    picture = tmp_path / "a b.PNG"
    picture.touch()
    (tmp_path / "key.pem").touch()
    quoted = str(picture).replace(" ", "\\ ")
    for text in (str(picture), f"'{picture}'", quoted, f"file://{quote(str(picture))}\n"):
        assert picture_at(text) == picture
    for text in (
        "a.png",
        f"see '{picture}'",
        f"{tmp_path}/no.png",
        f"{tmp_path}/key.pem",
        "/\0.png",
    ):
        assert picture_at(text) is None
    assert picture_at("/" + "x" * 4000 + ".png") is None


def test_a_long_history_loses_its_oldest_lines(vel: Vel) -> None:
    history = vel.data / f"terminal-history-{os.geteuid()}"
    history.write_text("".join(f"\n# 2026-01-01\n+line {number}\n" for number in range(50_000)))
    terminal = prompted(vel)
    terminal.type("/cost\r")
    terminal.expect("This session")
    terminal.expect(READY)
    leave(terminal)
    kept = history.read_text()
    assert 400_000 < len(kept) < 510_000
    assert kept.startswith("\n# 2026-01-01\n+line ")
    assert "+line 49999\n" in kept
    assert kept.endswith("+/cost\n")
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert len([*vel.data.glob("terminal-history-*")]) == 1


def test_the_status_line_shows_the_used_part_of_the_context(vel: Vel) -> None:
    terminal = prompted(vel)
    terminal.type("go\r")
    terminal.expect("tokens in")
    terminal.expect("context 1% of 200,000")
    leave(terminal)


def editor(vel: Vel, script: str) -> str:
    """Return the path of an editor that runs a shell script. `$1` is the file."""
    path = vel.data / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return str(path)


def test_ctrl_x_ctrl_e_edits_the_line_in_the_editor_and_does_not_send_it(vel: Vel) -> None:
    script = 'stat -c "mode %a" "$1"; printf "two\\nthree\\n" >> "$1"'
    terminal = Terminal(vel, *ECHO, VISUAL=editor(vel, script))
    terminal.expect(READY)
    terminal.type("one\x18\x05")
    terminal.expect("mode 600")
    terminal.expect(READY)
    terminal.expect("three")
    assert messages(vel) == []
    terminal.type(" four\r")
    terminal.expect("tokens in")
    terminal.expect(READY)
    leave(terminal)
    assert messages(vel) == [told("one\\ntwo\\nthree four")]


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo closed", "closed"),
        ("exit 1", "Editing failed"),
        ("printf '\\377' > \"$1\"", "The editor failed: 'utf-8' codec"),
    ],
)
def test_the_line_stays_if_the_editor_saves_nothing_or_fails(
    vel: Vel, script: str, problem: str
) -> None:
    terminal = Terminal(vel, *ECHO, VISUAL=editor(vel, script))
    terminal.expect(READY)
    terminal.type("kept\x18\x05")
    terminal.expect(problem)
    terminal.expect(READY)
    terminal.expect("kept")
    terminal.type("\r")
    terminal.expect("tokens in")
    terminal.expect(READY)
    leave(terminal)
    assert messages(vel) == [told("kept")]


def test_ctrl_c_in_the_editor_leaves_the_session_open(vel: Vel) -> None:
    script = 'trap "echo interrupted" INT; echo opened; until read x; do :; done; echo "$x" > "$1"'
    terminal = Terminal(vel, *ECHO, VISUAL=editor(vel, script))
    terminal.expect(READY)
    terminal.type("\x18\x05")
    terminal.expect("opened")
    terminal.type("\x03")
    terminal.expect("interrupted")
    terminal.type("written\n")
    terminal.expect(READY)
    terminal.expect("written")
    terminal.type("\r")
    terminal.expect("tokens in")
    terminal.expect(READY)
    leave(terminal)
    assert messages(vel) == [told("written")]
