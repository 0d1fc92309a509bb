"""Create, change and remove an agent's own skills for people.

The person is responsible for the content. The findings of the scan are stored with the version for
later readers, but do not put it into quarantine.
"""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import IntegrityError, transaction

from agents.models import Agent
from agents.services.audit import record
from agents.services.errors import Conflict, InvalidRequest, NotFound
from skills_app.actions.library import as_service_error, check_name, record_enabled, shared_sources
from skills_app.actions.rights import check_may_change
from skills_app.actions.versions import (
    VersionDetails,
    delete_skill,
    require_not_quarantined,
    store_package,
    version_files,
)
from skills_app.library.frontmatter import compose_skill, recompose_skill
from skills_app.library.normalise import normalise_name
from skills_app.library.package import SKILL_FILE, Package, PackageFile
from skills_app.library.problems import SkillRefused
from skills_app.library.read import read_package, require_package
from skills_app.library.scan import findings_json, scan_package
from skills_app.library.scopes import agent_scope
from skills_app.models import AgentSkill, Skill, Trust
from skills_app.queries.available import scopes_of


def create_own_skill(
    agent: Agent,
    *,
    name: str,
    description: str,
    instructions: str,
    by: AbstractBaseUser,
    source: str = "api",
) -> Skill:
    """Create a skill that only `agent` has, and return it.

    The name is normalised: "PDF Processing" becomes `pdf-processing`. Raises `NotAllowed`,
    `InvalidRequest`, and `Conflict` (codes `name_taken`, `duplicate`, `lookalike`, `stale`).
    """
    check_may_change(agent, by)
    called = _checked_name(name)
    text = compose_skill({"name": called, "description": description.strip()}, instructions)
    package = _package(text, [])
    findings = findings_json(scan_package(package))
    sources = shared_sources()
    with transaction.atomic():
        check_name(called, sources, agent_id=agent.pk)
        # Expect the version just read: of two simultaneous calls, the second fails.
        deleted = Skill.objects.filter(scope=agent_scope(agent.pk), name=called).first()
        base = deleted.version if deleted else 0
        return _store(agent, package, VersionDetails(source, by.pk, findings=findings), base)


def update_own_skill(
    agent: Agent,
    skill_id: int,
    *,
    by: AbstractBaseUser,
    name: str | None = None,
    description: str | None = None,
    instructions: str | None = None,
    base_version: int | None = None,
    source: str = "api",
) -> Skill:
    """Store a new version of an agent's own skill with the given values, and return the skill.

    Other fields of SKILL.md and other files stay. Without a change there is no new version.
    `base_version` is the version that `by` has seen. Raises the errors of `create_own_skill`,
    `NotFound` unless the agent owns the skill, and `Conflict` with the code `stale` if the current
    version is another one, or `quarantined` for a skill in quarantine.
    """
    check_may_change(agent, by)
    called = None if name is None else _checked_name(name)
    sources = shared_sources()
    with transaction.atomic():
        skill = _own_skill(agent, skill_id)
        if base_version is not None and skill.version != base_version:
            raise Conflict(
                f"The skill {skill.name} has changed. Reload it and try again.", code="stale"
            )
        current = skill.current
        if current is None or current.trust == Trust.QUARANTINED:
            # Refuse, because a small change would release the other files from quarantine.
            raise Conflict(
                f"The skill {skill.name} is in quarantine: it has to be reviewed first.",
                code="quarantined",
            )
        try:
            text = recompose_skill(
                current.content or "",
                # A title with the same normalised name does not change the name.
                name=None if called == skill.name else called,
                description=None if description is None else description.strip(),
                instructions=instructions,
            )
        except SkillRefused as problem:
            raise as_service_error(problem) from None
        if text == current.content:
            return skill
        files = [file for file in version_files(current.pk) if file.path != SKILL_FILE]
        package = _package(text, files)
        findings = findings_json(scan_package(package))
        if called is not None and called != skill.name:
            check_name(called, sources, agent_id=agent.pk)
            _rename(skill, called)
        details = VersionDetails(source, by.pk, findings=findings)
        return _store(agent, package, details, skill.version)


@transaction.atomic
def remove_skill(agent: Agent, skill_id: int, *, by: AbstractBaseUser, source: str = "api") -> None:
    """Delete a skill that `agent` owns, or disable a shared one for the agent.

    Raises `NotAllowed`, and `NotFound` for a skill that the agent does not and cannot have.
    """
    check_may_change(agent, by)
    scopes = scopes_of(agent.pk, built_in=agent.builtin_skills, directories=())
    skill = (
        Skill.objects.select_for_update()
        .filter(pk=skill_id, scope__in=scopes, is_deleted=False)
        .first()
    )
    if skill is None:
        raise NotFound("This agent has no such skill.")
    if skill.scope == agent_scope(agent.pk):
        delete_skill(skill, VersionDetails(source, by.pk))
        AgentSkill.objects.filter(skill=skill).delete()
        record("skill.deleted", skill, name=f"{skill.name} of {agent.slug}", by=by)
    else:
        AgentSkill.objects.update_or_create(agent=agent, skill=skill, defaults={"enabled": False})
        record_enabled(agent, skill, False, by)


def _checked_name(raw: str) -> str:
    name = normalise_name(raw)
    if not name:
        raise InvalidRequest("Give the skill a name with letters or digits.")
    return name


def _own_skill(agent: Agent, skill_id: int) -> Skill:
    """Return the agent's own skill with a row lock. Raises `NotFound`."""
    skill = (
        Skill.objects.select_for_update()
        .filter(pk=skill_id, scope=agent_scope(agent.pk), is_deleted=False)
        .first()
    )
    if skill is None:
        raise NotFound("This agent owns no such skill.")
    return skill


def _rename(skill: Skill, name: str) -> None:
    skill.name = name
    try:
        with transaction.atomic():
            skill.save(update_fields=["name", "updated_at"])
    except IntegrityError:
        raise Conflict(
            f"A skill of this agent was called {name} before it was deleted: create it again under "
            "that name, or choose another.",
            code="duplicate",
        ) from None


def _package(text: str, files: list[PackageFile]) -> Package:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest("The skill contains half a character: remove it.") from None
    try:
        found = read_package([PackageFile(SKILL_FILE, encoded), *files])
        return require_package(*found, strict=True)
    except SkillRefused as problem:
        raise as_service_error(problem) from None


def _store(agent: Agent, package: Package, details: VersionDetails, base: int) -> Skill:
    try:
        require_not_quarantined(package)
        version = store_package(
            agent_scope(agent.pk),
            package,
            details,
            trust=Trust.IMPORTED,
            base_version=base,
            agent_id=agent.pk,
        )
    except SkillRefused as problem:
        raise as_service_error(problem) from None
    skill = Skill.objects.select_related("current").get(pk=version.skill_id)
    record(
        "skill.stored",
        skill,
        name=f"{skill.name} of {agent.slug}",
        by=details.by_id,
        changes={"version": (base, version.number), "content": (None, version.content_hash)},
    )
    return skill
