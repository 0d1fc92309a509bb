"""The command `/compact` of the terminal."""

from __future__ import annotations

from agents.doors.cli.errors import CliError
from agents.doors.cli.slash_commands import Session, SlashCommand
from agents.features.compaction.options import ContextOptions
from agents.features.compaction.requests import request_compaction
from agents.models import Agent
from agents.selectors.visible import threads_for
from agents.services.agent_definitions.actions import build_spec


def compact(session: Session, rest: str) -> None:
    """Shorten the session before the next task. Raises `CliError` if that is not possible."""
    thread = threads_for(session.owner).filter(pk=session.thread or "").first()
    if thread is None:
        raise CliError("This session has no task yet.")
    spec = build_spec(Agent.objects.get(pk=thread.agent_id))
    if not spec.option(ContextOptions).context_management:
        raise CliError("The option context_management of the agent is off: change the agent.")
    request_compaction(thread.pk)
    session.say("The next task starts with a summary of the session. The transcript stays.")


SLASH_COMMANDS = (
    SlashCommand("/compact", "", "Replace the session by a summary, for the model.", compact),
)
