"""`vel agents`: agents as files, and what they are told about themselves."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import click

from velproject.cli.boot import perform
from velproject.cli.options import persist_option

MAX_FILE = 1_000_000
"""Bytes; what is longer is refused once it is read."""


@click.group(short_help="Export and import agents, take an AGENTS.md as a prompt.")
def agents() -> None:
    """Agents. AGENT is a slug, or the beginning of an id."""


@agents.command("import-prompt")
@click.argument("agent", metavar="AGENT")
@click.argument("place", metavar="DIR|FILE", type=click.Path(path_type=Path))
@persist_option
@click.option("--name", default="AGENTS.md", show_default=True, help="What the files are called.")
@click.option("--accept-findings", is_flag=True, help="Keep text that the scanner suspects.")
@click.option("--apply", is_flag=True, help="Do it. Without this nothing is changed.")
def import_prompt(
    agent: str, place: Path, persist: Path | None, name: str, accept_findings: bool, apply: bool
) -> int:
    """Make the AGENTS.md files of a project the prompt of AGENT, as a new version of it.

    From the top of the repository down to DIR, each below a heading that names it. Without --apply
    it only says what it would store and what the scanner suspects.
    """
    return perform(
        "actions.prompt:import_prompt",
        persist=persist,
        agent=agent,
        place=place,
        name=name,
        accept_findings=accept_findings,
        apply=apply,
    )


@agents.command("export")
@click.argument("agent", metavar="AGENT")
@persist_option
@click.option("--output", "-o", type=click.Path(path_type=Path), help="A file. Default: print it.")
def export(agent: str, persist: Path | None, output: Path | None) -> int:
    """Write AGENT as YAML: all of its definition, no secrets, the same bytes each time."""
    return perform("commands.agents:export", persist=persist, agent=agent, output=output)


@agents.command("import")
@click.argument("file", metavar="FILE|-", type=click.File("rb"))
@persist_option
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def import_agent(file: BinaryIO, persist: Path | None, dry_run: bool, yes: bool) -> int:
    """Make the YAML in FILE the agent that it names, new or as one new version.

    Shows what changes and asks first. It takes the permissions that the change takes in the admin.
    """
    data = file.read(MAX_FILE + 1)
    return perform(
        "commands.agents:import_file", persist=persist, data=data, dry_run=dry_run, yes=yes
    )


@agents.command("schema")
def schema() -> int:
    """Print the JSON schema of an agent's file."""
    return perform("commands.agents:schema", prepare=False)


@agents.command("templates")
def templates() -> int:
    """Show what an agent can begin with."""
    return perform("actions.agent_templates:show", prepare=False)


@agents.command("new")
@click.argument("template", metavar="TEMPLATE")
@persist_option
@click.option("--name", default="", help="Default: the template's own.")
def new(template: str, persist: Path | None, name: str) -> int:
    """Make an agent from TEMPLATE (see `vel agents templates`)."""
    return perform("actions.agent_templates:new", persist=persist, template=template, name=name)
