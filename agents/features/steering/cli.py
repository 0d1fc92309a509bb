"""The command `/now` of the terminal."""

from __future__ import annotations

from agents.doors.cli.errors import CliError
from agents.doors.cli.slash_commands import Session, SlashCommand
from agents.doors.cli.terminal import one_line
from agents.features.steering.actions import next_to_send, send_now


def now(session: Session) -> str:
    """Send the next task that waits to the agent at work. Return what happens next.

    Raises `CliError` if no task waits, and the exceptions of `send_now`.
    """
    thread = session.thread
    waiting = next_to_send(thread) if thread is not None else None
    if waiting is None:
        raise CliError("No task waits. Type one while the agent works, then /now.")
    text = one_line(waiting.messages.get(turn=0, position=0).text)
    if send_now(waiting, by=session.owner) is None:
        return f"The work stops for: {text}"
    return f"Sent: {text} (the agent reads it after its current step)"


def at_prompt(session: Session, rest: str) -> None:
    """Refuse the command: no task is at work."""
    raise CliError(
        "No task is at work. While one is, type the next task and press Enter, then /now."
    )


SLASH_COMMANDS = (
    SlashCommand(
        "/now",
        "",
        "Send the next waiting task to the agent at work.",
        at_prompt,
        during_task=now,
        hint="sends the first waiting task now",
    ),
)
