"""Lines that a person types during a task."""

from __future__ import annotations

from tests.support.messages_script import ToolUse, Turn
from tests.velproject.cli.commands.runs.at_prompt import (
    READY,
    leave,
    messages,
    paste,
    told,
)
from tests.velproject.command import Vel
from tests.velproject.held_model import at_work


def test_lines_during_a_task_are_the_next_tasks_of_the_session(vel: Vel) -> None:
    with at_work(vel, Turn("Done.")) as (terminal, answer):
        terminal.type("second" + paste("!line\n/cost\n") + "\r")
        terminal.expect("Next task: second")
        assert vel.runs()[0]["status"] == "pending"
        terminal.type("third\r")
        terminal.expect("Next task: third")
        answer(3)
        terminal.expect("tokens in")
        terminal.expect("> second")
        terminal.expect("tokens in")
        terminal.expect("> third")
        terminal.expect("tokens in")
        terminal.expect(READY)
        leave(terminal)
    assert messages(vel) == [told("first"), told("second!line\\n/cost"), told("third")]
    assert {row["status"] for row in vel.runs()} == {"completed"}
    assert vel.count("agents_thread") == 1


def test_up_takes_the_last_line_back_and_a_command_waits_for_the_prompt(vel: Vel) -> None:
    with at_work(vel, Turn("Done.")) as (terminal, answer):
        terminal.type("sceond\r")
        terminal.expect("Next task: sceond")
        terminal.type("\x1b[A")
        terminal.expect("Taken back: sceond")
        terminal.type("\x15/cost\r")
        terminal.expect("After this task: /cost")
        terminal.type("rest")
        answer()
        terminal.expect("This session:")
        terminal.expect(READY)
        terminal.expect("rest")
        terminal.type("\x15")
        leave(terminal)
    assert [row["status"] for row in vel.runs()] == ["cancelled", "completed"]


def test_esc_cancels_only_the_task_at_work(vel: Vel) -> None:
    with at_work(vel, Turn("Done.")) as (terminal, answer):
        terminal.type("second\r")
        terminal.expect("Next task: second")
        terminal.type("\x1b")
        terminal.expect("Cancelled")
        answer(2)  # one goes to the cancelled task
        terminal.expect("> second")
        terminal.expect("tokens in")
        terminal.expect(READY)
        leave(terminal)
    assert [row["status"] for row in vel.runs()] == ["completed", "cancelled"]


def test_the_end_of_the_session_cancels_the_queued_tasks(vel: Vel) -> None:
    """A run that waits for another person keeps them in the queue."""
    call = ToolUse("write_file", {"path": "a.txt", "content": "a"})
    with at_work(vel, Turn(tool_uses=[call]), flags=("--approve", "write_file")) as (
        terminal,
        answer,
    ):
        terminal.type("second\r")
        terminal.expect("Next task: second")
        answer()
        terminal.expect("Run it?")
        terminal.type("\x04")
        terminal.expect("Type `resume` to decide")
        terminal.expect(READY)
        terminal.type("\x04")
        terminal.expect("Not started: second")
        terminal.finish()
    assert [row["status"] for row in vel.runs()] == ["cancelled", "waiting"]


def test_now_gives_the_next_task_to_the_agent_at_work(vel: Vel) -> None:
    look = Turn(tool_uses=[ToolUse("ls", {"path": "."})])
    with at_work(vel, look, Turn("Done.")) as (terminal, answer):
        terminal.type("/now\r")
        terminal.expect("No task waits")
        terminal.type("second\r")
        terminal.expect("Next task: second (Up takes it back, ")
        terminal.expect("/now sends the first waiting task now)")
        terminal.type("/now\r")
        terminal.expect("Sent: second (the agent reads it after its current step)")
        answer()
        terminal.expect(": second")  # the line of the event
        terminal.type("\x1b[A")  # it can no longer be taken back
        terminal.type("/cost\r")
        terminal.expect("After this task: /cost")
        answer()
        terminal.expect("This session:")
        terminal.expect(READY)
        terminal.type("/now\r")
        terminal.expect("No task is at work")
        terminal.expect(READY)
        leave(terminal)
        assert "Taken back" not in terminal.shown
        assert "> second" not in terminal.shown
    assert messages(vel) == [told("first"), told("second"), told("second")]
    assert [row["status"] for row in vel.runs()] == ["cancelled", "completed"]


def test_a_task_that_cannot_join_ends_the_one_at_work(vel: Vel) -> None:
    with at_work(vel, Turn("Done.")) as (terminal, answer):
        terminal.type("second\r")
        terminal.expect("Next task: second")
        vel.execute("UPDATE agents_run SET source = 'slack' WHERE status = 'pending'")
        terminal.type("/now\r")
        terminal.expect("The work stops for: second")
        terminal.expect("> second")
        answer(2)  # one goes to the stopped task
        terminal.expect("tokens in")
        terminal.expect(READY)
        leave(terminal)
    assert [row["status"] for row in vel.runs()] == ["completed", "cancelled"]
