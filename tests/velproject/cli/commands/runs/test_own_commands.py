"""`!COMMAND` in a session: a command of the person, outside the sandbox."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.messages_script import Turn
from tests.velproject.cli.commands.runs.at_prompt import (
    ECHO,
    READY,
    leave,
    messages,
    paste,
    prompted,
    told,
)
from tests.velproject.command import Terminal, Vel
from tests.velproject.held_model import at_work


def run_own(terminal: Terminal, command: str) -> None:
    """Type a command. The `!` arrives alone, as from a person."""
    terminal.type("!")
    terminal.expect("!")
    terminal.type(f"{command}\r")


def send(terminal: Terminal, text: str) -> None:
    terminal.type(text)
    terminal.expect("tokens in")
    terminal.expect(READY)


def test_a_command_runs_in_the_workspace_and_only_attach_gives_its_output_to_the_agent(
    vel: Vel,
) -> None:
    place = vel.data / "place"
    place.mkdir()
    if os.geteuid() == 0:
        os.chown(place, 65534, 65534)
    terminal = prompted(vel, *ECHO, "--workspace", "place")
    run_own(terminal, "pwd; echo made > made; printf '\\033]0;title\\007\\n'; (exit 7)")
    terminal.expect(f"In {place}, outside the sandbox")
    terminal.expect(f"\n{place}")
    terminal.expect("\\x1b]0;title\\x07\r\n")
    terminal.expect("Exit code 7")
    terminal.expect(READY)
    assert (place / "made").read_text() == "made\n"
    send(terminal, "without\r")
    terminal.type("/attach\r")
    terminal.expect("(exit code 7)")
    send(terminal, "with\r")
    leave(terminal)
    without, attached = messages(vel)
    assert without == told("without")
    assert str(place) in str(attached)
    assert "(exit code 7)\\nwith" in str(attached)
    assert "\x1b]0;title" not in terminal.shown


def test_text_that_was_not_typed_is_a_task_and_runs_nothing(vel: Vel) -> None:
    """Pasted with and without bracketed paste, whole or in lines."""
    terminal = prompted(vel)
    send(terminal, paste("!touch bad1") + "\r")
    send(terminal, paste("!touch bad2\n!touch bad3") + "\r")
    send(terminal, paste("\n!touch bad4\n") + "\r")
    send(terminal, "!touch bad5\r")
    leave(terminal)
    assert [*vel.data.glob("bad*")] == []
    assert [str(row).count("!touch") for row in messages(vel)] == [1, 2, 1, 1]


def test_a_command_of_several_lines_is_refused(vel: Vel) -> None:
    terminal = prompted(vel)
    run_own(terminal, paste("touch bad1\ntouch bad2"))
    terminal.expect("Expected one line after the `!`")
    terminal.expect(READY)
    leave(terminal)
    assert [*vel.data.glob("bad*")] == []
    assert vel.runs() == []


def test_a_line_during_a_task_runs_nothing(vel: Vel) -> None:
    with at_work(vel, Turn("Done.")) as (terminal, answer):
        terminal.type("!touch bad1\r")
        terminal.expect("! works only at the prompt")
        terminal.type("!touch bad2")
        answer(2)
        terminal.expect("tokens in")
        terminal.expect(READY)
        terminal.expect(" !touch bad2")
        send(terminal, "\r")
        leave(terminal)
    assert [*vel.data.glob("bad*")] == []


def test_without_a_prompt_a_line_with_an_exclamation_mark_runs_nothing(vel: Vel) -> None:
    done = vel(*ECHO, stdin="!touch bad1\n")
    assert done.returncode == 0, done.stderr
    assert messages(vel) == [told("!touch bad1")]
    terminal = Terminal(vel, *ECHO, TERM="dumb")
    terminal.expect("\n> ")
    terminal.type("!touch bad2\n")
    terminal.expect("need a terminal that can edit lines")
    terminal.expect("\n> ")
    terminal.type("\x04")
    assert terminal.finish() == 0
    assert [*vel.data.glob("bad*")] == []


def test_ctrl_c_ends_the_command_and_not_the_session(vel: Vel) -> None:
    terminal = prompted(vel)
    run_own(terminal, "echo started; exec sleep 600")
    terminal.expect("\nstarted")
    terminal.type("\x03")
    terminal.expect("Exit code -2")
    terminal.expect(READY)
    run_own(terminal, "trap 'echo no' INT; echo stubborn; while :; do sleep 0.05; done")
    terminal.expect("\nstubborn")
    terminal.type("\x03")
    terminal.expect("no\r\n")
    terminal.type("\x03")
    terminal.expect("Exit code -9")
    terminal.expect(READY)
    leave(terminal)


def test_a_process_in_the_background_does_not_hold_the_prompt(vel: Vel) -> None:
    terminal = prompted(vel)
    run_own(terminal, "sleep 600 & echo $! > pid; echo end")
    terminal.expect("\nend")
    terminal.expect(READY)
    leave(terminal)
    os.kill(int((vel.data / "pid").read_text()), 9)


def test_the_command_has_the_environment_of_the_person(vel: Vel) -> None:
    terminal = prompted(vel)
    run_own(terminal, 'echo "[$DJANGO_SETTINGS_MODULE]"')
    terminal.expect("\n[]")
    terminal.expect(READY)
    leave(terminal)


@pytest.mark.parametrize("program", ["yes | head -c 300000", "head -c 300000 /dev/zero"])
def test_a_long_output_is_attached_as_a_file_with_its_end(vel: Vel, program: str) -> None:
    terminal = prompted(vel)
    run_own(terminal, f"({program}) 2>&1; echo THE_END")
    terminal.expect("\nTHE_END" if "yes" in program else "\\x00THE_END")
    terminal.expect(READY)
    terminal.type("/attach\r")
    terminal.expect("[pasted-")
    send(terminal, "\r")
    leave(terminal)
    (text,) = vel.data.rglob("pasted-*.txt")
    assert Path(text).stat().st_size < 101_000
    assert text.read_text().startswith(f"$ ({program}")
    assert text.read_text().rstrip().endswith("THE_END")
