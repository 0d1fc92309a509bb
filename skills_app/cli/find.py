"""Find a skill by name, among those that the person may read."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db.models import QuerySet

from agents.doors.cli.boot import owns_database_file
from agents.doors.cli.errors import CliError
from agents.doors.cli.find import agent_named
from agents.doors.cli.local_user import local_user
from agents.doors.cli.terminal import one_line
from agents.models import Agent
from skills_app.actions.library import sync_shared_skills
from skills_app.library.normalise import normalise_name
from skills_app.library.scopes import BUILT_IN, LIBRARY, directory_of
from skills_app.models import Skill, SkillVersion
from skills_app.queries.available import scopes_of
from skills_app.queries.packages import skills_for, version_of


def library_user() -> User:
    """Return the caller's user. The owner of a --persist file has all permissions in it."""
    user = local_user()
    if owns_database_file():
        user.is_superuser = True  # for this command: the row stays as it is
    return user


def skill_named(named: str, agent: str | None) -> Skill:
    """Return the skill `named`, a name or `PLACE:NAME`.

    With `agent`, only the skills that this agent could have are searched. Raises `CliError` if no
    skill matches or several do, with a list of them.
    """
    place, _, name = named.rpartition(":")
    name = normalise_name(name) or name
    user = library_user()
    sync_shared_skills()
    skills = skills_of(user, agent_named(user, agent) if agent else None)
    found = list(skills.filter(name=name).select_related("current", "agent"))
    if place:
        found = [skill for skill in found if place_of(skill) == place]
    if not found:
        raise CliError(
            f"There is no skill {one_line(named)!r} that you may read: `vel skills list` lists "
            "them."
        )
    if len(found) > 1:
        several = ", ".join(sorted(one_line(f"{place_of(skill)}:{name}") for skill in found))
        raise CliError(f"There are several skills {one_line(name)}. Name one of {several}.")
    return found[0]


def skills_of(user: User, agent: Agent | None) -> QuerySet[Skill]:
    """Return the skills that `user` may read; with `agent`, those that this agent could have."""
    skills = skills_for(user)
    if agent is None:
        return skills
    built_in = agent.builtin_skills
    return skills.filter(scope__in=scopes_of(agent.pk, built_in=built_in, directories=()))


def place_of(skill: Skill) -> str:
    """Return the PLACE of a skill: `library`, `built-in`, an agent's slug, or a directory."""
    if skill.agent is not None:
        return skill.agent.slug
    if skill.scope in (LIBRARY, BUILT_IN):
        return {LIBRARY: "library", BUILT_IN: "built-in"}[skill.scope]
    return directory_of(skill.scope) or skill.scope


def version_named(skill: Skill, number: int | None) -> SkillVersion:
    """Return the version `number`, by default the current one, or else the latest.

    Raises `CliError`.
    """
    version = version_of(skill, number)
    if version is None:
        raise CliError(f"{one_line(skill.name)} has no version {number}.")
    version.skill = skill
    return version
