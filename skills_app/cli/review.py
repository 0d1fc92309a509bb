"""The commands of `vel skills` that change agents' skills: review, quarantine, on, off, delete."""

from __future__ import annotations

import sys

import click

from agents.doors.cli.boot import again, with_database
from agents.doors.cli.errors import OK, USAGE, CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.terminal import one_line
from skills_app.cli.listing import (
    agent_option,
    name_argument,
    skills,
    version_option,
)

with late_imports:
    from rich.text import Text

    from agents.doors.cli.console import new_console, show_review
    from agents.doors.cli.find import agent_named
    from agents.doors.cli.questions import confirm
    from skills_app.actions.library import (
        delete_skill_of_library,
        quarantine_version,
        review_version,
        set_enabled,
    )
    from skills_app.actions.own_skills import remove_skill
    from skills_app.actions.rights import check_may_review
    from skills_app.cli.find import library_user, skill_named, version_named
    from skills_app.cli.listing import print_findings
    from skills_app.models import Skill, SkillVersion, Trust
    from skills_app.queries.comparison import Comparison, compare
    from skills_app.queries.skills import agent_skills

DOOR = "cli"


needed_agent = click.option("--agent", metavar="AGENT", required=True, help="For this agent.")


@skills.command("review")
@name_argument
@click.option(
    "--version", "number", type=click.IntRange(min=1), help="The version; default: the latest."
)
@click.option(
    "--hash", "content_hash", metavar="HASH", help="Accept exactly these bytes without a question."
)
@agent_option
@with_database
def review(name: str, number: int | None, content_hash: str | None, agent: str | None) -> int:
    """Show a version's changes and the scan's findings, and ask for a decision."""
    # At a terminal, show the version and ask. `content_hash` confirms an earlier review, and
    # refuses other bytes. Otherwise, print the command that confirms exactly this version.
    user = library_user()
    check_may_review(user)
    skill = skill_named(name, agent)
    version = version_named(skill, number or latest(skill))
    if content_hash is not None:
        _accept(version, content_hash)
        return OK
    _show(skill, version)
    if not sys.stdin.isatty():
        print(
            f"Nothing is accepted yet: {again(f'skills review {name}')} "
            f"--version {version.number} --hash {version.content_hash}",
            file=sys.stderr,
        )
        return USAGE
    if not confirm("Accept all of this as reviewed?", new_console(stderr=True)):
        print("Nothing is accepted.", file=sys.stderr)
        return USAGE
    _accept(version, version.content_hash)
    return OK


def latest(skill: Skill) -> int:
    found = skill.versions.exclude(content=None).order_by("-number").first()
    return found.number if found else skill.version


def _accept(version: SkillVersion, content_hash: str) -> None:
    if len(content_hash) < 64:
        raise CliError("Give the complete hash of 64 characters: `vel skills show` prints it.")
    accepted = review_version(version.pk, by=library_user(), content_hash=content_hash)
    print(f"{one_line(version.skill.name)} v{accepted.number} is reviewed.")


def _show(skill: Skill, version: SkillVersion) -> None:
    """Print the changes to the current version. Print all if that version was not reviewed."""
    current = skill.current
    base = current if current is not None and current.pk != version.pk else None
    print(f"{one_line(skill.name)} v{version.number} ({version.trust}), {version.content_hash}")
    print_findings(version.findings)
    if base is not None:
        print(f"\nChanges since version {base.number} ({base.trust}):")
        _show_comparison(compare(base, version))
    if base is None or base.trust not in (Trust.REVIEWED, Trust.BUILT_IN):
        print("\nAll of it:")
        _show_comparison(compare(None, version))


def _show_comparison(comparison: Comparison) -> None:
    console = new_console()
    for file in comparison.files:
        if file.review is not None:
            show_review(file.review, console)
        else:
            print(f"\n{one_line(file.name, 250)} ({file.status})")
        if file.mode:
            console.print(Text(file.mode, style="bold"))
        if file.why:
            print(f"Not shown: {file.why}. `vel skills show … --file` prints it.")
    if comparison.asks_more:
        names = ", ".join(comparison.asks_more)
        print(f"Changes of its use or its requirements: {names}.")
    if comparison.findings or comparison.gone:
        print(f"Findings of the scan: {len(comparison.findings)} new, {comparison.gone} gone.")
    counts = ", ".join(f"{count} {what}" for what, count in comparison.counts.items())
    print(
        f"Files: {counts}." + (f" NOT SHOWN: {comparison.unshown}." if comparison.unshown else "")
    )


@skills.command("quarantine")
@name_argument
@click.option("--reason", required=True, help="Why; the next reviewer reads it.")
@version_option
@agent_option
@with_database
def quarantine(name: str, reason: str, number: int | None, agent: str | None) -> None:
    """Deny this version to all agents. The previous version comes back, if there is one."""
    skill = skill_named(name, agent)
    version = quarantine_version(version_named(skill, number).pk, by=library_user(), reason=reason)
    skill.refresh_from_db()
    current = skill.current if skill.current_id != version.pk else None
    gets = f"Agents get version {current.number}." if current else "No agent has it."
    print(f"{one_line(skill.name)} v{version.number} is in quarantine. {gets}")


@skills.command("delete")
@name_argument
@click.option(
    "--agent",
    metavar="AGENT",
    help="Delete a skill that belongs to this agent (a slug, or the start of an ID).",
)
@with_database
def delete(name: str, agent: str | None) -> None:
    """Delete a skill of the library, or with --agent one of that agent's own."""
    skill = skill_named(name, agent)
    user = library_user()
    if agent is not None and skill.agent is None:
        raise CliError(
            f"{one_line(skill.name)} is not this agent's own: `vel skills disable` takes it from "
            "the agent; without --agent, this command deletes it for all."
        )
    if skill.agent is not None:
        remove_skill(skill.agent, skill.pk, by=user, source=DOOR)
    else:
        delete_skill_of_library(skill.pk, by=user, base_version=skill.version, source=DOOR)
    print(f"{one_line(skill.name)} is deleted. Runs that have started keep it.")


@skills.command("enable")
@name_argument
@needed_agent
@with_database
def enable(name: str, agent: str) -> None:
    """Give an agent a skill, from its next run on."""
    _switch(name, agent, True)


@skills.command("disable")
@name_argument
@needed_agent
@with_database
def disable(name: str, agent: str) -> None:
    """Take a skill from an agent, from its next run on."""
    _switch(name, agent, False)


def _switch(name: str, agent: str, enabled: bool) -> None:
    user = library_user()
    found = agent_named(user, agent)
    skill = skill_named(name, agent)
    set_enabled(found, skill.pk, enabled, by=user)
    print(f"{one_line(skill.name)} is {'on' if enabled else 'off'} for {one_line(found.slug)}.")
    if any(row.collides and row.skill.pk == skill.pk for row in agent_skills(found)):
        print(
            "The agent has another skill of this name instead, which comes first.",
            file=sys.stderr,
        )
