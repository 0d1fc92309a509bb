"""The command `/fork` of the terminal."""

from __future__ import annotations

from agents.doors.cli.errors import CliError
from agents.doors.cli.slash_commands import Session, SlashCommand
from agents.doors.cli.terminal import one_line
from agents.features.forks.actions import ForkRequest, complete_fork, prepared_fork
from agents.features.forks.files import NOW
from agents.models import NEVER_STARTED
from agents.selectors.visible import runs_for


def fork(session: Session, rest: str) -> None:
    """Continue in a copy of the session, with its files. Raises `CliError` before its first run."""
    runs = runs_for(session.owner).filter(owner=session.owner, parent=None, thread=session.thread)
    runs = runs.exclude(NEVER_STARTED).select_related("thread", "agent_version")
    run = runs.order_by("-number").first()
    if run is None:
        raise CliError("This session has no task yet.")
    with prepared_fork(run, ForkRequest(files=NOW), by=session.owner) as prepared:
        made = complete_fork(prepared)
    session.use_thread(made.thread.pk)
    session.say("Continued in a copy of the session. /resume shows the other one.")
    for path, reason in made.files.left_out[:5]:
        session.say(f"not copied: {one_line(path)} ({one_line(reason)})", "yellow")


SLASH_COMMANDS = (SlashCommand("/fork", "", "Continue in a copy of the session.", fork),)
