"""Decisions at the terminal, and by a command if no terminal was attached."""

from __future__ import annotations

import json

import pytest

from tests.support.messages_script import ToolUse, Turn
from tests.velproject.command import Terminal, Vel, say
from tests.velproject.held_model import FLAGS, held

WRITE = ("write_file", {"path": "note.txt", "content": "hello"})


def flags(vel: Vel) -> list[str]:
    return [
        *vel.script(
            say("I will write.", WRITE),
            say("", ("read_file", {"path": "note.txt"})),
            say("That was it."),
        ),
        "--approve",
        "write_file",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("fresh", [True, False])
def test_yes_lets_it_run(vel: Vel, fresh: bool) -> None:
    terminal = Terminal(vel, *flags(vel), "write a note", fresh=fresh)
    shown = terminal.expect("Run it?")
    assert "Create note.txt" in shown
    assert "new file, +1" in shown
    assert "hello" in shown
    terminal.type("y\n")
    terminal.expect("That was it.")
    assert terminal.finish() == 0


def test_a_rejection_gives_the_agent_the_reason_and_continues(vel: Vel) -> None:
    terminal = Terminal(vel, *flags(vel), "write a note")
    terminal.expect("Run it?")
    terminal.type("n\n")
    terminal.expect("Why not?")
    terminal.type("not in my house\n")
    terminal.expect("That was it.")
    assert terminal.finish() == 0
    (request,) = vel.requests()
    assert request["decision"] == "reject"


@pytest.mark.slow
def test_an_edit_is_shown_again_and_runs_instead(vel: Vel) -> None:
    terminal = Terminal(vel, *flags(vel), "write a note")
    terminal.expect("Run it?")
    terminal.type("e\n")
    terminal.expect("New input as JSON:")
    terminal.type(json.dumps({"path": "note.txt", "content": "goodbye"}) + "\n")
    assert "goodbye" in terminal.expect("Run this instead?")
    terminal.type("y\n")
    terminal.expect("That was it.")
    assert terminal.finish() == 0
    assert "goodbye" in vel("runs", "show", vel.runs()[0]["id"]).stderr


@pytest.mark.slow
def test_an_editor_edits_the_input(vel: Vel) -> None:
    editor = vel.data / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i s/hello/edited/ "$1"\n')
    editor.chmod(0o755)
    terminal = Terminal(vel, *flags(vel), "write a note", EDITOR=str(editor))
    terminal.expect("Run it?")
    terminal.type("e\n")
    assert "edited" in terminal.expect("Run this instead?")
    terminal.type("y\n")
    terminal.expect("That was it.")
    assert terminal.finish() == 0


@pytest.mark.slow
def test_an_empty_line_approves_nothing(vel: Vel) -> None:
    terminal = Terminal(vel, *flags(vel), "write a note")
    terminal.expect("Run it?")
    terminal.type("\n")
    terminal.expect("Run it?")
    terminal.type("n\n")
    terminal.expect("Why not?")
    terminal.type("\n")
    assert terminal.finish() == 0


@pytest.mark.slow
def test_keys_pressed_before_the_question_answer_nothing(vel: Vel) -> None:
    with held(vel, Turn(tool_uses=[ToolUse(*WRITE)]), Turn("Done.")) as answer:
        terminal = Terminal(vel, *FLAGS, "--approve", "write_file", "write a note")
        terminal.expect("thinking")
        terminal.type("y\ny\n")
        answer(2)
        terminal.expect("Run it?")
        terminal.type("n\n")
        terminal.expect("Why not?")
        terminal.type("\n")
        assert terminal.finish() == 0
    (request,) = vel.requests()
    assert request["decision"] == "reject"


def test_the_end_of_input_leaves_it_waiting(vel: Vel) -> None:
    terminal = Terminal(vel, *flags(vel), "write a note")
    terminal.expect("Run it?")
    terminal.type("\x04")
    assert terminal.finish() == 3
    assert [request["status"] for request in vel.requests()] == ["pending"]


def test_without_a_terminal_it_waits_and_shows_how_to_decide(vel: Vel) -> None:
    done = vel(*flags(vel), "write a note")
    assert done.returncode == 3
    (request,) = vel.requests()
    assert f"vel approvals decide {request['id']} approve" in done.stderr
    assert f"vel runs resume {request['run']}" in done.stderr


@pytest.mark.slow
def test_a_decision_by_command_and_resume_finish_the_run(vel: Vel) -> None:
    assert vel(*flags(vel), "write a note").returncode == 3
    (request,) = vel.rows("approvals", "list")
    decided = vel("approvals", "decide", request["id"], "approve", "--digest", request["digest"])
    assert decided.returncode == 0, decided.stderr
    assert f"vel runs resume {request['run']}" in decided.stdout
    resumed = vel("runs", "resume", request["run"])
    assert resumed.returncode == 0, resumed.stderr
    assert "That was it." in resumed.stdout
    assert "I will write." not in resumed.stdout


@pytest.mark.slow
def test_resume_at_a_terminal_asks_for_pending_decisions(vel: Vel) -> None:
    assert vel(*flags(vel), "write a note").returncode == 3
    terminal = Terminal(vel, "runs", "resume", vel.runs()[0]["id"])
    terminal.expect("Run it?")
    terminal.type("y\n")
    terminal.expect("That was it.")
    assert terminal.finish() == 0


@pytest.mark.slow
def test_a_decision_is_taken_once(vel: Vel) -> None:
    assert vel(*flags(vel), "write a note").returncode == 3
    (request,) = vel.requests()
    wrong = vel("approvals", "decide", request["id"], "approve", "--digest", "0" * 64)
    assert wrong.returncode == 2
    assert "The request has changed" in wrong.stderr
    assert vel("approvals", "decide", request["id"], "reject").returncode == 0
    again = vel("approvals", "decide", request["id"], "approve")
    assert again.returncode == 2
    assert "already" in again.stderr


def test_with_json_output_the_command_never_asks(vel: Vel) -> None:
    terminal = Terminal(vel, *flags(vel), "--json", "write a note")
    terminal.expect('"run.suspended"')
    assert terminal.finish() == 3
