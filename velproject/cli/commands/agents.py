"""`vel agents`: agents as files, and import of their prompts."""

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


@click.group(
    short_help="List, export, import, archive and erase agents, import AGENTS.md as a prompt."
)
def agents() -> None:
    """Manage agents. AGENT is a slug, or the beginning of an id."""


@agents.command("list")
@with_database
@json_option
def list_agents(as_json: bool) -> None:
    """Show the agents that you can use. `vel --agent SLUG TASK` gives one a task."""
    rows = agents_for(local_user()).select_related("owner").order_by("slug")
    if as_json:
        for agent in rows:
            print(json.dumps(_as_data(agent)))
        return
    if not rows:
        print("No agents yet: vel agents new TEMPLATE makes one.", file=sys.stderr)
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
@click.option("--name", default="AGENTS.md", show_default=True, help="What the files are called.")
@click.option("--accept-findings", is_flag=True, help="Keep text that the scanner suspects.")
@click.option("--apply", is_flag=True, help="Do it. Without this nothing is changed.")
def import_prompt(agent: str, place: Path, name: str, accept_findings: bool, apply: bool) -> None:
    """Make the AGENTS.md files of a project the prompt of AGENT, as a new version of it.

    The prompt contains the files from the top of the repository down to DIR, each with a heading
    that names it. Without --apply, the command only shows the new prompt and the scanner's
    findings.
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
        print(f"{one_line(found.name)} has this prompt already.")
        return
    show_findings(plan.findings)
    if not apply:
        print("Nothing is changed yet: --apply stores it.")
        return
    stored = store_prompt(found.pk, plan, by=user, accept_findings=accept_findings)
    print(f"The prompt of {one_line(stored.name)} is stored as version {stored.version}.")


@agents.command("export")
@click.argument("agent", metavar="AGENT")
@with_database
@click.option("--output", "-o", type=click.Path(path_type=Path), help="A file. Default: print it.")
def export(agent: str, output: Path | None) -> None:
    """Write AGENT as YAML: all of its definition, no secrets, the same bytes each time."""
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
    print(f"{one_line(found.slug)} is in {output}.", file=sys.stderr)


@agents.command("import")
@click.argument("file", metavar="FILE|-", type=click.File("rb"))
@persist_option
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def import_agent(file: BinaryIO, persist: Path | None, dry_run: bool, yes: bool) -> int:
    """Create or update an agent from the YAML in FILE; an update makes one new version.

    Shows the changes and asks first. It needs the same permissions as the change in the admin.
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
            if not yes and not click.confirm("Import it?", err=True):
                return FAILED
            stored, _ = carry_out_import(text, by=user, known_tools=tools, base=plan.base)
        except InvalidAgentFile as error:
            for problem in error.problems:
                print(visible(str(problem)), file=sys.stderr)
            raise CliError("Nothing is imported.") from None
        except NotAllowed as error:
            raise CliError(how_to(user, error)) from None
        print(f"{one_line(stored.slug)} is stored as version {stored.version}.")
        return OK


@agents.command("schema")
@with_settings
def schema() -> None:
    """Print the JSON schema of an agent's file."""
    print(json.dumps(agent_schema(), indent=2))


@agents.command("templates")
@with_settings
def templates() -> None:
    """Show the templates for new agents."""
    for template in agent_templates().values():
        needs = f" Needs: {template.needs}" if template.needs else ""
        print(f"{template.slug}: {template.description}{needs}")


@agents.command("new")
@click.argument("template", metavar="TEMPLATE")
@with_database
@click.option("--name", default="", help="Default: the template's own.")
def new(template: str, name: str) -> None:
    """Create an agent from TEMPLATE (see `vel agents templates`)."""
    user = local_user()
    try:
        agent = create_from_template(template, name=name, by=user, known_tools=known_tool_names())
    except NotAllowed as error:
        raise CliError(how_to(user, error)) from None
    except ServiceError as error:
        raise CliError(error.message) from None
    print(f"{one_line(agent.name)} is there: vel --agent {agent.slug} TASK")


@agents.command("archive")
@click.argument("agent", metavar="AGENT")
@with_database
@click.option("--undo", is_flag=True, help="Make it active again.")
def archive(agent: str, undo: bool) -> None:
    """Stop new runs of AGENT. Its runs, memory and versions stay."""
    found, user = _any_agent(agent), local_user()
    try:
        changed = set_active(found.pk, undo, by=user)
    except NotAllowed as error:
        raise CliError(how_to(user, error)) from None
    state = "active" if undo else "archived"
    print(f"{one_line(found.slug)} is {state}{'' if changed else ' already'}.")


@agents.command("erase")
@click.argument("agent", metavar="AGENT")
@with_database
@click.option("--apply", is_flag=True, help="Do it. Without this nothing is removed.")
def erase(agent: str, apply: bool) -> int:
    """Remove an archived AGENT for good, with its conversations, memory, skills and versions.

    Totals of tokens and cost stay, and so does the audit log.
    """
    found, user = _any_agent(agent), local_user()
    use = use_of_agent(found)
    print(
        f"{one_line(found.slug)} has {len(use.threads):,} conversations, {use.runs:,} runs "
        f"({use.open_runs:,} have not ended)."
    )
    if not apply:
        if found.is_active:
            print(f"It is active: vel agents archive {found.slug}")
        print("Nothing is removed yet: --apply erases it.")
        return OK
    try:
        gone = erase_agent(found, by=user)
    except NotAllowed as error:
        raise CliError(how_to(user, error)) from None
    except ServiceError as error:
        raise CliError(error.message) from None
    if not gone:
        print(
            "Its conversations are erased. Files of them are still to be removed, here or on "
            "another host: run the command again in some minutes.",
            file=sys.stderr,
        )
        return FAILED
    print(f"{one_line(found.slug)} is erased.")
    return OK


def _any_agent(named: str) -> Agent:
    """Return an agent by its slug or the beginning of its id, archived or not."""
    return Agent.objects.filter(slug=named).first() or by_id(Agent.objects.all(), named, "agent")


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


COMMANDS = (agents,)
