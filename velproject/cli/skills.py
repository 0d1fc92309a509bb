"""`vel skills`: packages of instructions that teach agents."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option, persist_option
from velproject.cli.skills_library import COMMANDS, agent_option


@click.group(short_help="Find, import, review and give out skills.")
def skills() -> None:
    """Skills: a SKILL.md with instructions, and the files that belong to it.

    NAME may be PLACE:NAME where several have the name: library:NAME, built-in:NAME, or the slug of
    the agent that owns it.
    """


for command in COMMANDS:
    skills.add_command(command)


@skills.command("validate")
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Fail for warnings too.")
@json_option
def validate(path: Path, strict: bool, as_json: bool) -> int:
    """Say all that is wrong with a skill, and what to change. Executes nothing of it.

    PATH is a skill's directory, a directory of many, a SKILL.md, or a zip or .skill archive. An
    error means that Vel refuses the skill; a warning that Vel takes it, but other programs that
    keep to the specification do not.
    """
    return perform(
        "commands.skills.validate:validate_path",
        prepare=False,
        path=path.absolute(),
        strict=strict,
        as_json=as_json,
    )


@skills.command("search")
@click.argument("query", metavar="QUERY")
@agent_option
@click.option(
    "--skills",
    "directories",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Look into this directory of skills too; may be given several times.",
)
@persist_option
@json_option
def search(
    query: str,
    agent: str | None,
    directories: tuple[Path, ...],
    persist: Path | None,
    as_json: bool,
) -> int:
    """Show the skills that answer QUERY, in your own words, best first.

    A score near 1 says that all you asked for is what the skill is for; below 0.2 it is most
    likely chance. With --json there is one JSON object a line.
    """
    return perform(
        "commands.skills.search:search",
        persist=persist,
        query=query,
        agent=agent,
        directories=[directory.absolute() for directory in directories],
        as_json=as_json,
    )
