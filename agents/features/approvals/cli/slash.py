"""The command `/approvals` of the terminal."""

from __future__ import annotations

from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.slash_commands import Session, SlashCommand
from agents.doors.cli.terminal import one_line

with late_imports:
    from agents.doors.cli.boot import again
    from agents.selectors.queue import pending_for

MOST = 50


def show_pending(session: Session, rest: str) -> None:
    """List the pending requests that the person can see."""
    rows = list(pending_for(session.owner).order_by("id")[:MOST])
    for row in rows:
        session.say(f"{row.pk}  {one_line(row.tool, 60)}")
    if rows:
        session.say(f"Show one: {again('approvals show REQUEST')}", "dim")
    else:
        session.say("No pending requests.")


SLASH_COMMANDS = (SlashCommand("/approvals", "", "List the pending requests.", show_pending),)
