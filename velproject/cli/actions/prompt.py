"""The actions of `vel agents`."""

from __future__ import annotations

from pathlib import Path

from agents.services.prompt_import import (
    check_may_change_prompt,
    plan_prompt,
    prompt_of,
    read_agents_files,
    store_prompt,
)
from memory.limits import size_of
from velproject.cli.errors import CliError
from velproject.cli.find import agent_named
from velproject.cli.local_user import local_user
from velproject.cli.suspicions import show_suspicions
from velproject.cli.terminal import one_line


def import_prompt(
    *, agent: str, place: Path, name: str, accept_findings: bool, apply: bool
) -> None:
    """Say what would be stored; with `apply` store it."""
    user = local_user()
    found = agent_named(user, agent)
    check_may_change_prompt(found, user)
    files = read_agents_files(place, name)
    if not files:
        raise CliError(f"There is no {one_line(name)} in {place} or above it in its repository.")
    plan = plan_prompt(found, prompt_of(files))
    for file in files:
        print(f"{one_line(file.path)}  {size_of(file.content):,} bytes")
    if plan.after == plan.before:
        print(f"{one_line(found.name)} has this prompt already.")
        return
    show_suspicions(plan.suspicions)
    if not apply:
        print("Nothing is changed yet: --apply stores it.")
        return
    stored = store_prompt(found.pk, plan, by=user, accept_findings=accept_findings)
    print(f"The prompt of {one_line(stored.name)} is stored as version {stored.version}.")
