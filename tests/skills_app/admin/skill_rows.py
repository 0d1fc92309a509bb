"""Skills as people import them: plain functions for set-up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.contrib.auth.models import Permission, User
from django.urls import reverse

from agents.models import Agent
from skills_app.actions.library import Imported, import_skill
from skills_app.models import Skill, SkillVersion
from tests.agents.admin import rows
from tests.support.skills import package

HOSTILE = "<script>alert(1)</script>\u202e\u200b"


def librarian(name: str = "lib", *more: str) -> User:
    """Staff with only the permissions to manage and review the library."""
    return staff_with(name, "manage_library", "review_skill", "view_skill", *more)


def staff_with(name: str, *codenames: str) -> User:
    member = rows.staff(name)
    found = Permission.objects.filter(codename__in=codenames)
    assert found.count() == len(codenames), codenames
    member.user_permissions.set(found)
    return member


def imported(
    directory: Path,
    by: User,
    name: str = "beans",
    *,
    agent: Agent | None = None,
    accept: bool = False,
    **options: Any,
) -> Imported:
    return import_skill(
        package(directory, name, **options),
        by=by,
        source="admin",
        origin="beans.zip",
        agent=agent,
        accept=accept,
    )


def page(skill: Skill) -> str:
    return reverse("admin:skills_app_skill_change", args=[skill.pk])


def url(what: str, version: SkillVersion, **query: str) -> str:
    """Return the URL of a page of one version."""
    return reverse(
        f"admin:skills_app_skill_{what}", args=[version.skill_id, version.number], query=query
    )


def review(version: SkillVersion, answer: str = "accept", **more: str) -> dict[str, str]:
    """Return the form data of a version's review page."""
    current = version.skill.current
    base = current.content_hash if current and current.pk != version.pk else ""
    return {"answer": answer, "content_hash": version.content_hash, "base": base, **more}
