"""`vel agents templates` and `vel agents new`."""

from __future__ import annotations

from agents.agent_templates.catalogue import agent_templates
from agents.middleware.registry import known_tool_names
from agents.services.agent_templates import create_from_template
from agents.services.errors import NotAllowed, ServiceError
from velproject.cli.commands.agents import how_to
from velproject.cli.errors import CliError
from velproject.cli.local_user import local_user
from velproject.cli.terminal import one_line


def show() -> int:
    """A template a line."""
    for template in agent_templates().values():
        needs = f" Needs: {template.needs}" if template.needs else ""
        print(f"{template.slug}: {template.description}{needs}")
    return 0


def new(template: str, name: str) -> int:
    """Make an agent of the local account."""
    user = local_user()
    try:
        agent = create_from_template(template, name=name, by=user, known_tools=known_tool_names())
    except NotAllowed as error:
        raise CliError(how_to(user, error)) from None
    except ServiceError as error:
        raise CliError(error.message) from None
    print(f"{one_line(agent.name)} is there: vel --agent {agent.slug} TASK")
    return 0
