"""The commands of `vel skills` on the library and on agents' own skills."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option, persist_option

name_argument = click.argument("name", metavar="NAME")
agent_option = click.option(
    "--agent", metavar="AGENT", help="Among the skills of this agent (a slug, or part of an id)."
)
needed_agent = click.option("--agent", metavar="AGENT", required=True, help="For this agent.")
version_option = click.option(
    "--version", "number", type=click.IntRange(min=1), help="Another version than agents get."
)


@click.command("list")
@agent_option
@persist_option
@json_option
def list_command(agent: str | None, persist: Path | None, as_json: bool) -> int:
    """Show the skills; with --agent which of them that one has."""
    return perform(
        "commands.skills.listing:list_skills", persist=persist, agent=agent, as_json=as_json
    )


@click.command("show")
@name_argument
@click.option("--file", "path", metavar="PATH", help="Print this file of it, and nothing else.")
@version_option
@agent_option
@persist_option
@json_option
def show_command(
    name: str,
    path: str | None,
    number: int | None,
    agent: str | None,
    persist: Path | None,
    as_json: bool,
) -> int:
    """Show what a skill says of itself, its files, and what the scan found.

    With --file a terminal gets hidden characters as code points, a pipe the very bytes.
    """
    return perform(
        "commands.skills.listing:show",
        persist=persist,
        name=name,
        agent=agent,
        number=number,
        path=path,
        as_json=as_json,
    )


@click.command("import")
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--agent", metavar="AGENT", help="As skills of this agent's own.")
@click.option("--accept", is_flag=True, help="Agents get a later version at once. For reviewers.")
@click.option("--dry-run", is_flag=True, help="Only show problems and findings.")
@click.option("--reason", default="", help="Why; kept with the version.")
@persist_option
def import_command(
    paths: tuple[Path, ...],
    agent: str | None,
    accept: bool,
    dry_run: bool,
    reason: str,
    persist: Path | None,
) -> int:
    """Take skills into the library, or give them to an agent. Executes nothing of them.

    PATH is a skill's directory, a directory of many, a SKILL.md, or a zip or .skill archive. Each
    is stored or refused by itself; the exit code is 1 when any was refused.
    """
    return perform(
        "commands.skills.transfer:import_skills",
        persist=persist,
        paths=paths,
        agent=agent,
        accept=accept,
        dry_run=dry_run,
        reason=reason,
    )


@click.command("export")
@name_argument
@click.argument("target", metavar="[DIR|FILE.zip]", required=False, type=click.Path(path_type=Path))
@version_option
@agent_option
@persist_option
def export_command(
    name: str, target: Path | None, number: int | None, agent: str | None, persist: Path | None
) -> int:
    """Write a skill, to the letter of the specification, into a new file or directory."""
    return perform(
        "commands.skills.transfer:export",
        persist=persist,
        name=name,
        agent=agent,
        number=number,
        target=target,
    )


@click.command("enable")
@name_argument
@needed_agent
@persist_option
def enable_command(name: str, agent: str, persist: Path | None) -> int:
    """Give an agent a skill, from its next run on."""
    return perform(
        "commands.skills.review:switch", persist=persist, name=name, agent=agent, enabled=True
    )


@click.command("disable")
@name_argument
@needed_agent
@persist_option
def disable_command(name: str, agent: str, persist: Path | None) -> int:
    """Take a skill from an agent, from its next run on."""
    return perform(
        "commands.skills.review:switch", persist=persist, name=name, agent=agent, enabled=False
    )


@click.command("review")
@name_argument
@click.option(
    "--version", "number", type=click.IntRange(min=1), help="Another version than the latest."
)
@click.option("--hash", "content_hash", metavar="HASH", help="Accept just these bytes, unasked.")
@agent_option
@persist_option
def review_command(
    name: str,
    number: int | None,
    content_hash: str | None,
    agent: str | None,
    persist: Path | None,
) -> int:
    """Show what a version changes and what the scan found, and ask whether you vouch for it."""
    return perform(
        "commands.skills.review:review",
        persist=persist,
        name=name,
        agent=agent,
        number=number,
        content_hash=content_hash,
    )


@click.command("quarantine")
@name_argument
@click.option("--reason", required=True, help="Why; the next reviewer reads it.")
@version_option
@agent_option
@persist_option
def quarantine_command(
    name: str, reason: str, number: int | None, agent: str | None, persist: Path | None
) -> int:
    """Let no agent have these bytes again. The version before comes back, where there is one."""
    return perform(
        "commands.skills.review:quarantine",
        persist=persist,
        name=name,
        agent=agent,
        number=number,
        reason=reason,
    )


@click.command("delete")
@name_argument
@agent_option
@persist_option
def delete_command(name: str, agent: str | None, persist: Path | None) -> int:
    """Delete a skill of the library, or with --agent one of that agent's own."""
    return perform("commands.skills.review:delete", persist=persist, name=name, agent=agent)


@click.command("usage")
@name_argument
@agent_option
@persist_option
@json_option
def usage_command(name: str, agent: str | None, persist: Path | None, as_json: bool) -> int:
    """Show what runs did with each version, and how they ended."""
    return perform(
        "commands.skills.listing:usage", persist=persist, name=name, agent=agent, as_json=as_json
    )


COMMANDS = (
    list_command,
    show_command,
    import_command,
    export_command,
    enable_command,
    disable_command,
    review_command,
    quarantine_command,
    delete_command,
    usage_command,
)
