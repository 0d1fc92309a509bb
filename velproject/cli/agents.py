"""`vel agents`: what agents are told about themselves."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import persist_option


@click.group(short_help="Take a project's AGENTS.md as an agent's prompt.")
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
        "prompt:import_prompt",
        persist=persist,
        agent=agent,
        place=place,
        name=name,
        accept_findings=accept_findings,
        apply=apply,
    )
