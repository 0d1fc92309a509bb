"""The flags of `vel TASK`, applied to a run: its agent, databases and files.

The agent is a row of the local user, which the flags define again at each start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, TypedDict

from django.contrib.auth.models import User
from django.core.files import File
from django.db import transaction
from django.views.decorators.debug import sensitive_variables

from agents.doors.cli.errors import CliError
from agents.doors.cli.terminal import one_line
from agents.kernel.options import is_option
from agents.kernel.relations import AgentRelation, relation_named, relations
from agents.models import Agent, Run
from agents.services.agent_definitions.actions import save_agent
from agents.services.errors import InvalidRequest
from agents.services.files.uploads import create_run_with
from agents.services.runs.start import RunRequest
from velproject.cli.commands.runs.instructions import prompt_with


class AgentOptions(TypedDict):
    """Values of the flags; None and False mean that the flag was not given."""

    provider: str | None
    model: str | None
    fallback: tuple[tuple[str, str], ...]
    """Pairs of provider and model."""
    profile: str | None
    no_sandbox: bool
    toolbox: str | None
    approve: tuple[str, ...]
    max_turns: int | None
    max_cost: Decimal | None
    timeout: int | None
    databases: tuple[tuple[str, Any], ...]
    """Pairs of name and encrypted URL."""
    instructions: str
    """The text of the directory's AGENTS.md files, for the prompt."""


def start_run(
    request: RunRequest,
    options: AgentOptions | None,
    owner: User,
    files: Sequence[File[Any]] = (),
) -> Run:
    """Create the run, with the files that belong to its message.

    With `options`, the run's agent is the owner's own, saved with exactly these options. All of
    this is one transaction, so that each of two simultaneous starts uses a version with its own
    flags.
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
        raise CliError(f"The agent {slug!r} belongs to another user. Rename it in the admin.")
    defaults = Agent()
    agent.system_prompt = prompt_with(agent.system_prompt, options["instructions"], agent.name)
    agent.provider = options["provider"] or ""
    agent.model = options["model"] or ""
    fallbacks = [{"provider": provider, "model": model} for provider, model in options["fallback"]]
    _set(agent, "fallbacks", fallbacks, "--fallback")
    agent.profile = options["profile"] or defaults.profile
    agent.sandbox = not options["no_sandbox"]
    agent.toolbox = options["toolbox"] or ""
    agent.interrupt_on = dict.fromkeys(options["approve"], True)
    agent.max_turns = options["max_turns"] or defaults.max_turns
    _set(agent, "max_cost", options["max_cost"], "--max-cost")
    agent.max_seconds = options["timeout"]
    agent.everyone = False
    agent.is_active = True
    related: dict[str, list[Any]] = {relation.name: [] for relation in relations()}
    if options["databases"]:
        if agent._state.adding:
            agent.save()  # the databases refer to it; its first version is saved below
        relation = _databases()
        related[relation.name] = [
            relation.own_row(agent, name, url) for name, url in options["databases"]
        ]
    return save_agent(agent, by_id=owner.pk, related=related)


def _set(agent: Agent, option: str, value: Any, flag: str) -> None:
    """Set an option of a feature. Raises `CliError` if the feature is not installed."""
    if is_option(option):
        setattr(agent, option, value)
    elif value:
        raise CliError(f"{flag}: the feature with this option is not installed.")


def _databases() -> AgentRelation:
    """Return the relation of databases. Raises `CliError` if its feature is not installed."""
    relation = relation_named("databases")
    if relation is None:
        raise CliError("--database: the feature `databases` is not installed.")
    return relation


@sensitive_variables()
def sealed_databases(given: Sequence[tuple[str, str]]) -> tuple[tuple[str, Any], ...]:
    """Return names and encrypted URLs. Raises `CliError` with the name of an invalid URL."""
    sealed = []
    for name, url in given:
        try:
            sealed.append((name, _databases().seal(name, url)))
        except InvalidRequest as error:
            reason = error.message.removeprefix("url: ")
            raise CliError(f"--database {one_line(name)}: {reason}") from None
    return tuple(sealed)


@contextmanager
def opened_uploads(paths: Sequence[Path]) -> Iterator[list[File[Any]]]:
    """Open the files, and yield them under their own names. A context manager."""
    with ExitStack() as stack:
        files = []
        for path in paths:
            try:
                stream = stack.enter_context(path.open("rb"))
            except OSError as error:
                place = one_line(str(path))
                raise CliError(f"--upload {place} cannot be read: {error.strerror}.") from error
            files.append(File(stream, name=path.name))
        yield files
