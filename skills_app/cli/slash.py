"""The command `/skills` of the terminal."""

from __future__ import annotations

from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.slash_commands import Session, SlashCommand
from agents.doors.cli.terminal import one_line

with late_imports:
    from agents.selectors.visible import agents_for
    from skills_app.queries.skills import agent_skills


def show_skills(session: Session, rest: str) -> None:
    """List the skills that the agent gets, without those of a directory."""
    agent = agents_for(session.owner).filter(slug=session.agent).first()
    rows = agent_skills(agent) if agent is not None else []
    names = [row.skill.name for row in rows if row.enabled and not row.collides and row.version]
    for name in names:
        session.say(one_line(name))
    if not names:
        session.say("No skills. For the agent of the command line, start a task first.")


SLASH_COMMANDS = (SlashCommand("/skills", "", "List the skills of the agent.", show_skills),)
