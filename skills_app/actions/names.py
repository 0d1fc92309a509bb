"""Checks of skill names: not taken, and not easily confused with another name."""

from __future__ import annotations

from collections.abc import Sequence

from agents.services.errors import Conflict
from skills_app.actions.sync import SourceRead, read_sources
from skills_app.library.scopes import (
    BUILT_IN,
    LIBRARY,
    agent_scope,
    describe_scope,
    directory_scope,
)
from skills_app.library.skeleton import skeleton
from skills_app.models import Skill
from skills_app.settings import SkillSettings


def shared_sources() -> list[SourceRead]:
    """Return the current skills of Vel and of the settings' directories.

    The next run stores their rows, but they own their names already. Do not call it in a
    transaction.
    """
    return read_sources(SkillSettings.now().DIRECTORIES, built_in=True)


def check_name(
    name: str, sources: Sequence[SourceRead], *, agent_id: str | None = None, new: bool = True
) -> None:
    """Raise `Conflict` if a skill of the library, or of an agent, may not have this `name`.

    Codes: `name_taken` by a built-in; `duplicate`: the agent has a skill of this name, or could
    have it, or (with `new`) owns one; `lookalike`: readers could confuse it with another name.
    """
    taken = _names(sources, agent_id)
    holders = taken.get(name, [])
    if BUILT_IN in holders:
        raise Conflict(
            f"A skill that comes with Vel is called {name}: choose another name.",
            code="name_taken",
        )
    updated = not new and agent_id is not None and agent_scope(agent_id) in holders
    if agent_id is not None and holders and not updated:
        raise Conflict(
            f"There is a skill {name} already ({describe_scope(holders[0])}): choose another name.",
            code="duplicate",
        )
    seen = skeleton(name)
    for other, scopes in taken.items():
        if other != name and skeleton(other) == seen:
            raise Conflict(
                f"{name} looks like {other} ({describe_scope(scopes[0])}), but is written with "
                "other characters: choose a name that nobody confuses with it.",
                code="lookalike",
            )


def _names(sources: Sequence[SourceRead], agent_id: str | None) -> dict[str, list[str]]:
    """Return names with their scopes: those of shared skills, and of the agent's own ones."""
    scopes = [
        BUILT_IN,
        LIBRARY,
        *(directory_scope(path) for path in SkillSettings.now().DIRECTORIES),
        *([agent_scope(agent_id)] if agent_id is not None else []),
    ]
    rows = Skill.objects.filter(scope__in=scopes, is_deleted=False)
    found = set(rows.values_list("name", "scope"))
    found |= {(package.head.name, read.scope) for read in sources for package in read.packages}
    names: dict[str, list[str]] = {}
    for name, scope in sorted(found, key=lambda held: (held[0], scopes.index(held[1]))):
        names.setdefault(name, []).append(scope)
    return names
