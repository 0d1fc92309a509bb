"""`vel agents`: list, create, export, import, archive and erase agents."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, BinaryIO

import click

from agents.doors.cli.boot import database, with_database, with_settings
from agents.doors.cli.errors import FAILED, OK, CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option, persist_option
from agents.doors.cli.terminal import one_line, visible

with late_imports:
    from django.contrib.auth.models import User
    from rich.text import Text

    from agents.agent_files.shape import agent_schema
    from agents.agent_templates.catalogue import agent_templates
    from agents.doors.cli.console import print_table
    from agents.doors.cli.find import agent_named, by_id
    from agents.doors.cli.findings import show_findings
    from agents.doors.cli.local_user import local_user
    from agents.middleware.registry import known_tool_names
    from agents.models import Agent
    from agents.selectors.visible import agents_for
    from agents.services.agent_definitions.actions import set_active
    from agents.services.agent_definitions.files import (
        ImportPlan,
        InvalidAgentFile,
        carry_out_import,
        export_agent,
        plan_import,
    )
    from agents.services.agent_definitions.prompt_import import (
        check_may_change_prompt,
        plan_prompt,
        prompt_of,
        read_agents_files,
        store_prompt,
    )
    from agents.services.agent_definitions.templates import create_from_template
    from agents.services.erasure.agents import erase_agent, use_of_agent
    from agents.services.errors import NotAllowed, ServiceError

MAX_FILE = 1_000_000
"""In bytes; a longer file is refused after it is read."""


@click.group(short_help="Create, list, export, import, archive and erase agents.")
def agents() -> None:
    """Manage agents. AGENT is a slug or the start of an ID."""


@agents.command("list")
@with_database
@json_option
def list_agents(as_json: bool) -> None:
    """List the agents that you can use. `vel --agent SLUG TASK` gives one a task."""
    rows = agents_for(local_user()).select_related("owner").order_by("slug")
    if as_json:
        for agent in rows:
            print(json.dumps(_as_data(agent)))
        return
    if not rows:
        print("No agents yet. Create one: vel agents new TEMPLATE", file=sys.stderr)
        return
    print_table(
        ("AGENT", "NAME", "VERSION", "PROFILE", "OWNER", "DESCRIPTION"),
        (
            (
                Text(one_line(agent.slug, 40)),
                Text(one_line(agent.name, 40)),
                str(agent.version),
                agent.profile,
                Text(one_line(agent.owner.get_username(), 30) if agent.owner else ""),
                Text(one_line(agent.description, 80)),
            )
            for agent in rows
        ),
    )


def _as_data(agent: Agent) -> dict[str, Any]:
    return {
        "id": agent.pk,
        "slug": agent.slug,
        "name": agent.name,
        "description": agent.description,
        "version": agent.version,
        "profile": agent.profile,
        "provider": agent.provider,
        "model": agent.model,
        "owner": agent.owner.get_username() if agent.owner else None,
        "everyone": agent.everyone,
    }


@agents.command("import-prompt")
@click.argument("agent", metavar="AGENT")
@click.argument("place", metavar="DIR|FILE", type=click.Path(path_type=Path))
@with_database
@click.option("--name", default="AGENTS.md", show_default=True, help="Name of the files.")
@click.option("--accept-findings", is_flag=True, help="Accept text that the scanner reports.")
@click.option("--apply", is_flag=True, help="Store it. Without this, only show it.")
def import_prompt(agent: str, place: Path, name: str, accept_findings: bool, apply: bool) -> None:
    """Use the AGENTS.md files of a project as the prompt of AGENT, in a new version.

    The prompt contains the files from the top of the repository down to DIR, or only FILE, each
    with a heading that names it. Without --apply, the command only lists the files and shows the
    scanner's findings.
    """
    user = local_user()
    found = agent_named(user, agent)
    check_may_change_prompt(found, user)
    files = read_agents_files(place, name)
    if not files:
        raise CliError(f"There is no {one_line(name)} in {place} or above it in its repository.")
    plan = plan_prompt(found, prompt_of(files))
    for file in files:
        print(f"{one_line(file.path)}  {len(file.content.encode()):,} bytes")
    if plan.after == plan.before:
        print(f"{one_line(found.name)} already has this prompt.")
        return
    show_findings(plan.findings)
    if not apply:
        print("Nothing was changed. Add --apply to store the prompt.")
        return
    stored = store_prompt(found.pk, plan, by=user, accept_findings=accept_findings)
    print(f"The prompt of {one_line(stored.name)} is stored as version {stored.version}.")


@agents.command("export")
@click.argument("agent", metavar="AGENT")
@with_database
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="File to write. Default: print it."
)
def export(agent: str, output: Path | None) -> None:
    """Write the definition of AGENT as YAML, without secrets. The output is reproducible."""
    found = _any_agent(agent)
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
    print(f"Wrote {one_line(found.slug)} to {output}.", file=sys.stderr)


@agents.command("import")
@click.argument("file", metavar="FILE|-", type=click.File("rb"))
@persist_option
@click.option("--dry-run", is_flag=True, help="Only show the changes.")
@click.option("--yes", is_flag=True, help="Import without asking.")
def import_agent(file: BinaryIO, persist: Path | None, dry_run: bool, yes: bool) -> int:
    """Create or update an agent from the YAML in FILE. An update creates one new version.

    Shows the changes and asks first. You need the same permissions as in the admin.
    """
    data = file.read(MAX_FILE + 1)
    with database(persist):
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
            if not yes and not click.confirm("Import these changes?", err=True):
                return FAILED
            stored, _ = carry_out_import(text, by=user, known_tools=tools, base=plan.base)
        except InvalidAgentFile as error:
            for problem in error.problems:
                print(visible(str(problem)), file=sys.stderr)
            raise CliError("Nothing was imported.") from None
        except NotAllowed as error:
            raise CliError(how_to(user, error)) from None
        print(f"{one_line(stored.slug)} is stored as version {stored.version}.")
        return OK


@agents.command("schema")
@with_settings
def schema() -> None:
    """Print the JSON schema of agent files."""
    print(json.dumps(agent_schema(), indent=2))


@agents.command("templates")
@with_settings
def templates() -> None:
    """List the templates for new agents."""
    for template in agent_templates().values():
        needs = f" Needs: {template.needs}" if template.needs else ""
        print(f"{template.slug}: {template.description}{needs}")


@agents.command("new")
@click.argument("template", metavar="TEMPLATE")
@with_database
@click.option("--name", default="", help="Name of the agent. Default: the template's name.")
def new(template: str, name: str) -> None:
    """Create an agent from TEMPLATE (see `vel agents templates`)."""
    user = local_user()
    try:
        agent = create_from_template(template, name=name, by=user, known_tools=known_tool_names())
    except NotAllowed as error:
        raise CliError(how_to(user, error)) from None
    except ServiceError as error:
        raise CliError(error.message) from None
    print(f"Created {one_line(agent.name)}. Use it: vel --agent {agent.slug} TASK")


@agents.command("archive")
@click.argument("agent", metavar="AGENT")
@with_database
@click.option("--undo", is_flag=True, help="Make it active again.")
def archive(agent: str, undo: bool) -> None:
    """Prevent new runs of AGENT. Vel keeps its runs, memory and versions."""
    found, user = _any_agent(agent), local_user()
    try:
        changed = set_active(found.pk, undo, by=user)
    except NotAllowed as error:
        raise CliError(how_to(user, error)) from None
    state = "active" if undo else "archived"
    print(f"{one_line(found.slug)} is {'' if changed else 'already '}{state}.")


@agents.command("erase")
@click.argument("agent", metavar="AGENT")
@with_database
@click.option("--apply", is_flag=True, help="Erase it. Without this, only show it.")
def erase(agent: str, apply: bool) -> int:
    """Show or erase an archived AGENT with its conversations, memory, skills and versions.

    Vel keeps the totals of tokens and cost, and the audit log. Without --apply, the command only
    shows what it would erase.
    """
    found, user = _any_agent(agent), local_user()
    use = use_of_agent(found)
    print(
        f"{one_line(found.slug)} has {len(use.threads):,} conversations, {use.runs:,} runs "
        f"({use.open_runs:,} active)."
    )
    if not apply:
        if found.is_active:
            print(f"It is active. Archive it first: vel agents archive {found.slug}")
        print("Nothing was removed. Add --apply to erase it.")
        return OK
    try:
        gone = erase_agent(found, by=user)
    except NotAllowed as error:
        raise CliError(how_to(user, error)) from None
    except ServiceError as error:
        raise CliError(error.message) from None
    if not gone:
        print(
            "The conversations are erased, but some of their files are not removed yet, here or on "
            "another host. Run the command again in a few minutes.",
            file=sys.stderr,
        )
        return FAILED
    print(f"{one_line(found.slug)} is erased.")
    return OK


def _any_agent(named: str) -> Agent:
    """Return an agent, also an archived one, by its slug or the start of its id."""
    return Agent.objects.filter(slug=named).first() or by_id(Agent.objects.all(), named, "agent")


def _show(plan: ImportPlan) -> None:
    if not plan.changes_something:
        print(f"{one_line(plan.slug)} already matches this file.")
    for line in plan.diff:
        print(visible(line))


def how_to(user: User, error: NotAllowed) -> str:
    return (
        f"{error.message} On this machine, you act as the user {one_line(user.username)!r}: give "
        "it the permission in the admin, or make it an administrator."
    )


COMMANDS = (agents,)
