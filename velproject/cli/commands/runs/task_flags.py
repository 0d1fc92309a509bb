"""The agent behind `vel TASK`: a row of the local user's that the flags of each start define."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, TypedDict

from django.contrib.auth.models import User
from django.core.files import File
from django.db import transaction

from agents.models import Agent, Run
from agents.secret_text import SecretText
from agents.services.agents import save_agent
from agents.services.databases import save_own_connection
from agents.services.runs import RunRequest
from agents.services.uploads import create_run_with
from velproject.cli.errors import CliError


class AgentOptions(TypedDict):
    """What the flags say; None and False mean that the flag was not given."""

    provider: str | None
    model: str | None
    fallback: tuple[tuple[str, str], ...]
    """Providers and models."""
    no_sandbox: bool
    toolbox: str | None
    approve: tuple[str, ...]
    max_turns: int | None
    max_cost: Decimal | None
    timeout: int | None
    databases: tuple[tuple[str, SecretText], ...]
    """Names and encrypted URLs."""


def start_run(
    request: RunRequest,
    options: AgentOptions | None,
    owner: User,
    files: Sequence[File[Any]] = (),
) -> Run:
    """Create the run, with the files that go with its message.

    With `options` its agent is the owner's own, saved with just these options. One transaction,
    so that of two starts at once each pins the version with its own flags.
    """
    with transaction.atomic():
        if options is not None:
            save_command_line_agent(options, owner)
        return create_run_with(request, files, owner=owner).run


def agent_slug(owner: User) -> str:
    return f"cli-{owner.pk}"


def save_command_line_agent(options: AgentOptions, owner: User) -> Agent:
    slug = agent_slug(owner)
    agent = Agent.objects.select_for_update().filter(slug=slug).first()
    if agent is None:
        agent = Agent(slug=slug, name=f"Command line of {owner.username}"[:100], owner=owner)
    if agent.owner_id != owner.pk:
        raise CliError(f"The agent {slug!r} belongs to somebody else: rename it in the admin.")
    defaults = Agent()
    agent.provider = options["provider"] or ""
    agent.model = options["model"] or ""
    agent.fallbacks = [
        {"provider": provider, "model": model} for provider, model in options["fallback"]
    ]
    agent.sandbox = not options["no_sandbox"]
    agent.toolbox = options["toolbox"] or ""
    agent.interrupt_on = dict.fromkeys(options["approve"], True)
    agent.max_turns = options["max_turns"] or defaults.max_turns
    agent.max_cost = options["max_cost"]
    agent.max_seconds = options["timeout"]
    agent.everyone = False
    agent.is_active = True
    if not options["databases"]:
        return save_agent(agent, by_id=owner.pk, databases=())
    if agent._state.adding:
        agent.save()  # they refer to it; its first version comes with them, right below
    databases = [save_own_connection(agent, name, url) for name, url in options["databases"]]
    return save_agent(agent, by_id=owner.pk, databases=databases)
