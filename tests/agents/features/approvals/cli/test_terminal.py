"""Decisions at a terminal apply to exactly the content that was shown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.velproject.command import Terminal, Vel, say

MEMORY = "knowledge/notes.md"


def write(number: int) -> tuple[str, dict[str, Any]]:
    return ("write_file", {"path": f"note{number}.txt", "content": f"text {number}"})


def waiting(vel: Vel, *calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the pending requests of a run that had no terminal."""
    flags = vel.script(say("I will.", *calls), say("Done."))
    assert vel(*flags, "--approve", "write_file", "go").returncode == 3
    return vel.requests()


def remember(content: str, **more: Any) -> tuple[str, dict[str, Any]]:
    given = {"path": MEMORY, "content": content, "reason": "I was told so.", **more}
    return ("write_memory", given)


def status(vel: Vel) -> list[str]:
    return [row["decision"] for row in vel.requests()]


@pytest.mark.slow
def test_at_a_terminal_it_is_shown_and_confirmed(vel: Vel) -> None:
    (request,) = waiting(vel, write(1))
    terminal = Terminal(vel, "approvals", "approve", request["id"])
    shown = terminal.expect("Approve this?")
    assert "Create note1.txt" in shown
    assert "text 1" in shown
    terminal.type("\n")
    terminal.expect("nothing decided")
    assert terminal.finish() == 0
    assert status(vel) == [""]

    terminal = Terminal(vel, "approvals", "decide", request["id"], "approve")
    terminal.expect("Approve this?")
    terminal.type("y\n")
    terminal.expect("write_file: approve.")
    assert terminal.finish() == 0
    assert status(vel) == ["approve"]


def test_a_request_that_changes_before_the_answer_is_not_decided(vel: Vel) -> None:
    (request,) = waiting(vel, write(1))
    terminal = Terminal(vel, "approvals", "approve", request["id"])
    terminal.expect("Approve this?")
    vel.execute(f"UPDATE agents_approvalrequest SET digest = '{'f' * 64}'")
    terminal.type("y\n")
    terminal.expect("The request has changed")
    assert terminal.finish() == 2
    assert status(vel) == [""]


def memory_of(vel: Vel) -> object:
    return vel.value("SELECT content FROM memory_memoryfile")


def test_the_editor_shows_a_memory_file_as_text_with_escapes(vel: Vel) -> None:
    (request,) = waiting(vel, remember("old\u200b line"))
    editor = vel.data / "editor.sh"
    editor.write_text('#!/bin/sh\ncp "$1" "$VEL_DATA_DIR/seen"\nsed -i "s/old.*line/new/" "$1"\n')
    editor.chmod(0o755)

    done = vel("approvals", "edit", request["id"], "--editor", EDITOR=str(editor))

    assert done.returncode == 0, done.stderr
    assert (vel.data / "seen").read_text().strip() == "old\\u{200b} line"
    assert str(memory_of(vel)).strip() == "new"


def test_a_refused_answer_is_one_line_and_asked_again(vel: Vel) -> None:
    flags = vel.script(say("", write(1)), say("Done."))
    terminal = Terminal(vel, *flags, "--approve", "write_file", "go")
    terminal.expect("Run it?")
    terminal.type("a\n")
    terminal.expect("Which?")
    terminal.type("c\n")
    terminal.expect("Pattern")
    terminal.type("x\n")
    assert "Traceback" not in terminal.expect("Run it?")
    terminal.type("n\n")
    terminal.expect("Why not?")
    terminal.type("\n")
    assert terminal.finish() == 0


@pytest.mark.slow
def test_the_prompt_offers_only_permitted_decisions(vel: Vel) -> None:
    (request,) = waiting(vel, write(1))
    vel.execute("UPDATE agents_approvalrequest SET self_approval = 0")
    terminal = Terminal(vel, "runs", "resume", request["run"])
    shown = terminal.expect("Run it? [n(o)]")
    assert "does not allow you to approve calls of your own runs" in shown
    terminal.type("y\n")
    terminal.expect("Run it?")
    terminal.type("n\n")
    terminal.expect("Why not?")
    terminal.type("\n")
    terminal.expect("Done.")
    assert terminal.finish() == 0
    assert status(vel) == ["reject"]


@pytest.mark.slow
def test_the_first_of_two_approvals_leaves_it_waiting(vel: Vel) -> None:
    (request,) = waiting(vel, write(1))
    vel.execute("UPDATE agents_approvalrequest SET approvals_needed = 2")
    terminal = Terminal(vel, "runs", "resume", request["run"])
    terminal.expect("Run it?")
    terminal.type("y\n")
    terminal.expect("A second person")
    assert terminal.finish() == 3
    (row,) = vel.rows("approvals", "list")
    assert row["first_approver"] == row["owner"]
    again = vel("approvals", "approve", request["id"])
    assert again.returncode == 2
    assert "A second person must" in again.stderr
