"""Slash commands of an interactive session, in a real terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.velproject.command import Terminal, Vel, say


def prompted(vel: Vel, *flags: str, term: str = "dumb") -> Terminal:
    terminal = Terminal(vel, *(flags or vel.script(say("Done."))), TERM=term)
    terminal.expect("> ")
    return terminal


@pytest.mark.slow_cases
@pytest.mark.parametrize("line", ["/help", "/hlep", "/etc/passwd is a file", "/"])
def test_a_line_with_a_slash_is_never_a_message_for_the_model(vel: Vel, line: str) -> None:
    terminal = prompted(vel)
    terminal.type(f"{line}\n")
    terminal.expect("/approvals" if line == "/help" else "/help lists the commands")
    terminal.expect("> ")
    terminal.type("exit\n")
    assert terminal.finish() == 0
    assert vel.runs() == []


def test_two_slashes_send_a_task_that_begins_with_one(vel: Vel) -> None:
    terminal = prompted(vel)
    terminal.type("//help me\n")
    terminal.expect("Done.")
    terminal.expect("> ")
    terminal.type("exit\n")
    terminal.finish()
    assert vel.value("SELECT content FROM agents_message WHERE role = 'user'") == (
        '[{"type":"text","text":"/help me"}]'
    )


def test_lines_from_a_pipe_that_begin_with_a_slash_are_tasks(vel: Vel) -> None:
    done = vel(*vel.script(say("Done.")), stdin="/help\n")
    assert done.returncode == 0, done.stderr
    assert len(vel.runs()) == 1


def test_an_unknown_command_shows_no_escape_sequence_of_its_name(vel: Vel) -> None:
    terminal = prompted(vel)
    terminal.type("/\u202eabc\n")
    shown = terminal.expect("/help lists the commands")
    assert "There is no command /\\u202eabc" in shown
    terminal.type("exit\n")
    terminal.finish()


def test_the_commands_show_the_session_and_change_the_next_task(vel: Vel, tmp_path: Path) -> None:
    terminal = prompted(vel, "--provider", "scripted", "--model", "echo")
    for typed, expected in (
        ("/undo", "has no task yet"),
        ("first", "tokens in"),
        ("/cost", "This session:"),
        (f"/export {tmp_path}/a.md", "Wrote "),
        (f"/export {tmp_path}/a.md", "exists"),
        ("/tools", "write_file"),
        ("/skills", "\n> "),
        ("/memory", "\n> "),
        ("/approvals", "No pending requests."),
        ("/model", "scripted: echo"),
        ("/model scripted:file:/nowhere.json", "The next task uses"),
        ("/model", "scripted: file:/nowhere.json"),
        ("/undo", "changed no files"),
        ("/agent nobody", "nobody"),
        ("/fork", "in a copy of the session"),
        ("/resume 9", "Expected a number from 1 to 2"),
        ("/resume", "/resume NUMBER continues"),
        ("/resume 2", "Continued: "),
        ("/clear", "Started a new session"),
        ("/exit", ""),
    ):
        terminal.type(f"{typed}\n")
        terminal.expect(expected)
    assert terminal.finish() == 0
    assert len(vel.runs()) >= 1
    assert vel.count("agents_thread") == 2
    assert "\n> first\n" in (tmp_path / "a.md").read_text()


def test_undo_restores_the_files_from_before_the_last_task_after_a_question(vel: Vel) -> None:
    given = {"path": "note.txt", "content": "one\n"}
    terminal = prompted(vel, *vel.script(say("", ("write_file", given)), say("Done.")))
    terminal.type("write\n")
    terminal.expect("Done.")
    terminal.expect("> ")
    (note,) = (vel.data / "workspaces").glob("*/workspace/note.txt")
    terminal.type("/undo\n")
    terminal.expect("[y/n]")
    terminal.type("n\n")
    terminal.expect("Nothing changed.")
    assert note.exists()
    terminal.type("/undo\n")
    terminal.expect("[y/n]")
    terminal.type("y\n")
    terminal.expect("Restored the files")
    assert not note.exists()
    terminal.type("exit\n")
    terminal.finish()


@pytest.mark.slow
def test_a_session_with_an_agent_cannot_resume_one_of_the_command_line(vel: Vel) -> None:
    """Its agent is what the flags say: without them, it could have fewer approvals."""
    assert vel("--provider", "scripted", "--model", "echo", "first").returncode == 0
    vel.execute("UPDATE auth_user SET is_superuser = 1")
    made = vel("agents", "new", "report-writer")
    assert made.returncode == 0, made.stderr
    terminal = prompted(vel, "--agent", "report-writer")
    terminal.type("/resume 1\n")
    terminal.expect("Start `vel` without --agent")
    terminal.type("exit\n")
    terminal.finish()


def test_compact_shortens_the_session_once_before_the_next_task(vel: Vel) -> None:
    terminal = prompted(vel, "--provider", "scripted", "--model", "echo")
    terminal.type("/compact\n")
    terminal.expect("has no task yet")
    terminal.type("the first task\n")
    terminal.expect("tokens in")
    terminal.expect("> ")
    terminal.type("/compact\n")
    terminal.expect("starts with a summary")
    for task in ("the second task", "the third task"):
        terminal.type(f"{task}\n")
        terminal.expect("tokens in")
        terminal.expect("> ")
    terminal.type("exit\n")
    assert terminal.finish() == 0
    assert terminal.shown.count("earlier turns were summarized") == 1
    (row,) = vel.stored("SELECT opening, until_run FROM agents_compaction")
    assert "the first task" in str(row["opening"])
    assert row["until_run"] == 2
    assert "the second task" not in str(row["opening"])
