"""The actions of `vel agents export`, `import` and `schema`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
from django.contrib.auth.models import User

from agents.agent_files.shape import agent_schema
from agents.middleware.registry import known_tool_names
from agents.models import Agent
from agents.services.agent_files import (
    ImportPlan,
    InvalidAgentFile,
    carry_out_import,
    export_agent,
    plan_import,
)
from agents.services.errors import NotAllowed
from velproject.cli.errors import FAILED, OK, CliError
from velproject.cli.find import by_id
from velproject.cli.local_user import local_user
from velproject.cli.terminal import one_line, visible


def export(*, agent: str, output: Path | None) -> None:
    """Print it or write it. Also of an agent that is not active."""
    found = Agent.objects.filter(slug=agent).first() or by_id(Agent.objects.all(), agent, "agent")
    user = local_user()
    try:
        text = export_agent(found, by=user)
    except NotAllowed as error:
        raise CliError(how_to(user, error)) from None
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise CliError(f"{output} cannot be written: {error.strerror}.") from None
    print(f"{one_line(found.slug)} is in {output}.", file=sys.stderr)


def import_file(*, data: bytes, dry_run: bool, yes: bool) -> int:
    """Show the difference; ask; store it."""
    user, tools = local_user(), known_tool_names()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise CliError("The file is not UTF-8 text.") from None
    try:
        plan = plan_import(text, by=user, known_tools=tools)
        _show(plan)
        if dry_run or not plan.changes_something:
            return OK
        if not yes and not click.confirm("Import it?", err=True):
            return FAILED
        agent, _ = carry_out_import(text, by=user, known_tools=tools, base=plan.base)
    except InvalidAgentFile as error:
        for problem in error.problems:
            print(visible(str(problem)), file=sys.stderr)
        raise CliError("Nothing is imported.") from None
    except NotAllowed as error:
        raise CliError(how_to(user, error)) from None
    print(f"{one_line(agent.slug)} is stored as version {agent.version}.")
    return OK


def schema() -> None:
    print(json.dumps(agent_schema(), indent=2))


def _show(plan: ImportPlan) -> None:
    if not plan.changes_something:
        print(f"{one_line(plan.slug)} is like this already.")
    for line in plan.diff:
        print(visible(line))


def how_to(user: User, error: NotAllowed) -> str:
    return (
        f"{error.message} This machine's account acts as {one_line(user.username)!r}: give that "
        "user the permission in the admin, or make it an administrator."
    )
