"""Import, delete, enable and disable skills for people.

The pages, the admin, the REST API and the CLI use these functions. They run no code of a package.
The findings of its scan are stored in its version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction

from agents.models import Agent
from agents.services.audit import record
from agents.services.errors import Conflict, InvalidRequest, NotFound, ServiceError
from skills_app.actions.reviews import quarantine_version, review_version
from skills_app.actions.rights import (
    check_may_change,
    check_may_manage,
    may_change_skills,
    may_review,
)
from skills_app.actions.sync import SourceRead, read_sources, sync_source
from skills_app.actions.versions import (
    VersionDetails,
    accept_version,
    delete_skill,
    is_quarantined,
    store_package,
)
from skills_app.library.package import Package
from skills_app.library.problems import InvalidSkill, SkillChanged, SkillRefused
from skills_app.library.scan import findings_json, has_danger, scan_package
from skills_app.library.scopes import (
    BUILT_IN,
    LIBRARY,
    agent_scope,
    describe_scope,
    directory_of,
    directory_scope,
)
from skills_app.library.skeleton import skeleton
from skills_app.models import AgentSkill, Skill, SkillVersion, Trust
from skills_app.queries.available import scopes_of
from skills_app.settings import SkillSettings

__all__ = [
    "Imported",
    "as_service_error",
    "delete_skill_of_library",
    "import_skill",
    "may_change_skills",
    "quarantine_version",
    "review_version",
    "set_enabled",
    "sync_shared_skills",
]

_TRIES = 3


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import.

    `created` is false if the current or the latest version of the skill has exactly these bytes.
    With `waits`, agents do not get `version` until somebody accepts it.
    """

    version: SkillVersion
    created: bool
    waits: bool


def import_skill(
    package: Package,
    *,
    by: AbstractBaseUser,
    source: str,
    origin: str = "",
    agent: Agent | None = None,
    accept: bool = False,
    reason: str = "",
) -> Imported:
    """Import `package` into the library, or as `agent`'s own skill, and return the result.

    The first version of a skill is accepted. A later version in the library waits for acceptance,
    unless `accept` is set and `by` may review. A package with dangerous findings is quarantined and
    waits.

    `source` names the origin of the request as in `VersionDetails`, and `origin` the file or
    address. Raises `NotAllowed` and `Conflict` (codes `name_taken`, `duplicate`, `lookalike`,
    `stale`).
    """
    if agent is None:
        check_may_manage(by)
    else:
        check_may_change(agent, by)
    findings = scan_package(package)
    trust = Trust.QUARANTINED if has_danger(findings) else Trust.IMPORTED
    details = VersionDetails(source, by.pk, reason, origin, findings_json(findings))
    at_once = agent is not None or (accept and may_review(by))
    sources = shared_sources()
    for left in reversed(range(_TRIES)):
        try:
            with transaction.atomic():
                check_name(
                    package.head.name, sources, agent_id=agent.pk if agent else None, new=False
                )
                return _store(package, details, trust, agent, at_once=at_once)
        except SkillChanged as problem:
            if not left:
                raise as_service_error(problem) from None
    raise AssertionError("not reached")


def _store(
    package: Package, details: VersionDetails, trust: Trust, agent: Agent | None, *, at_once: bool
) -> Imported:
    scope = agent_scope(agent.pk) if agent else LIBRARY
    skill = Skill.objects.select_for_update().filter(scope=scope, name=package.head.name).first()
    if is_quarantined(package):
        trust = Trust.QUARANTINED
    new = skill is None or skill.is_deleted
    accept = trust != Trust.QUARANTINED and (new or at_once)
    if skill is not None and not new:
        same = _same_bytes(skill, package.content_hash)
        if same is not None:
            usable = same.trust != Trust.QUARANTINED
            if usable and at_once and skill.current_id != same.pk:
                accept_version(skill, same)
                _record_import(same, details, agent, accepted=True)
            return Imported(same, False, skill.current_id != same.pk or not usable)
    version = store_package(
        scope,
        package,
        details,
        trust=trust,
        agent_id=agent.pk if agent else None,
        accept=accept,
    )
    _record_import(version, details, agent, accepted=accept)
    return Imported(version, True, not accept)


def _record_import(
    version: SkillVersion, details: VersionDetails, agent: Agent | None, *, accepted: bool
) -> None:
    record(
        "skill.imported",
        version.skill,
        name=f"{version.skill.name} {version.number}",
        by=details.by_id,
        changes={
            "agent": (None, agent.slug if agent else None),
            "origin": (None, details.origin or None),
            "trust": (None, version.trust),
            "content": (None, version.content_hash),
            "accepted": (None, accepted),
        },
        note=details.reason,
    )


def _same_bytes(skill: Skill, content_hash: str) -> SkillVersion | None:
    """Return the current or else the latest version if it has this hash, None if neither has it."""
    current = skill.current
    if current is not None and current.content_hash == content_hash:
        return current
    latest = skill.versions.get(number=skill.version)
    return latest if latest.content_hash == content_hash else None


@transaction.atomic
def delete_skill_of_library(
    skill_id: int, *, by: AbstractBaseUser, base_version: int | None = None, source: str = "api"
) -> SkillVersion:
    """Delete a skill of the library and return the version that records this.

    All agents lose the skill, and do not get it back if a skill with this name is imported again.
    Runs keep the earlier versions. `base_version` is the version that `by` has seen. Raises
    `NotAllowed`, `NotFound` and `Conflict` (code `stale`).
    """
    check_may_manage(by)
    skill = Skill.objects.select_for_update().filter(pk=skill_id, scope=LIBRARY).first()
    if skill is None or skill.is_deleted:
        raise NotFound("There is no such skill in the library.")
    try:
        version = delete_skill(skill, VersionDetails(source, by.pk), base_version=base_version)
    except SkillRefused as problem:
        raise as_service_error(problem) from None
    AgentSkill.objects.filter(skill=skill).delete()
    record("skill.deleted", skill, name=skill.name, by=by)
    return version


@transaction.atomic
def set_enabled(agent: Agent, skill_id: int, enabled: bool, *, by: AbstractBaseUser) -> None:
    """Enable or disable a skill for `agent`, from its next run on.

    Raises `NotAllowed`, `NotFound` for a skill that the agent cannot have, and `Conflict` (codes
    `quarantined`, `waits`) when enabling a skill without a usable version.
    """
    check_may_change(agent, by)
    scopes = scopes_of(agent.pk, built_in=agent.builtin_skills, directories=())
    # With the lock, a quarantine happens before or after this change, not in between.
    skill = (
        Skill.objects.select_for_update()
        .filter(pk=skill_id, scope__in=scopes, is_deleted=False)
        .first()
    )
    if skill is None:
        raise NotFound("There is no such skill for this agent.")
    if enabled:
        _require_usable(skill)
    AgentSkill.objects.update_or_create(agent=agent, skill=skill, defaults={"enabled": enabled})
    record_enabled(agent, skill, enabled, by)


def record_enabled(agent: Agent, skill: Skill, enabled: bool, by: AbstractBaseUser) -> None:
    """Record in the audit log that a skill was enabled or disabled for `agent`."""
    action = "skill.enabled" if enabled else "skill.disabled"
    record(action, skill, name=f"{skill.name} for {agent.slug}", by=by)


def _require_usable(skill: Skill) -> None:
    version = skill.current or skill.versions.get(number=skill.version)
    if version.trust == Trust.QUARANTINED:
        raise Conflict(
            f"The skill {skill.name} is in quarantine: agents cannot have it before it is "
            "reviewed.",
            code="quarantined",
        )
    if skill.current is None:
        raise Conflict(
            f"The skill {skill.name} waits for a review: agents cannot have it yet.",
            code="waits",
        )


def sync_shared_skills() -> dict[str, list[str]]:
    """Update the rows of the skills in directories: the built-in ones and those of the settings.

    Each run does the same, and so do pages that list skills. Returns messages about the omitted
    skills by their path.
    """
    problems: dict[str, list[str]] = {}
    for read in shared_sources():
        location = "built-in" if read.scope == BUILT_IN else directory_of(read.scope) or read.scope
        for path, found in read.problems.items():
            problems[f"{location}/{path}".rstrip("/")] = [problem.message for problem in found]
        try:
            # Use one transaction for each package. A longer one would hold locks that a worker
            # needs.
            sync_source(read)
        except SkillChanged:
            continue  # another process is storing the same directory
    return problems


def as_service_error(problem: SkillRefused) -> ServiceError:
    """Return the `ServiceError` that corresponds to `problem`."""
    if isinstance(problem, SkillChanged):
        return Conflict(str(problem), code="stale")
    assert isinstance(problem, InvalidSkill)
    return InvalidRequest(str(problem))


def shared_sources() -> list[SourceRead]:
    """Read the built-in skills and those of the settings' directories, and return them.

    The next run stores their rows, but their names are already taken. Call this function before a
    transaction where that is possible, because it looks at each file of the directories.
    """
    return read_sources(SkillSettings.now().DIRECTORIES, built_in=True)


def check_name(
    name: str, sources: Sequence[SourceRead], *, agent_id: str | None = None, new: bool = True
) -> None:
    """Check that a skill of the library, or an agent's own skill, may have this `name`.

    Args:
        name: The name.
        sources: The result of `shared_sources`.
        agent_id: The agent; None for the library.
        new: Whether the agent's own skill must be a new one. Otherwise, it may be updated.

    Raises:
        Conflict: With the code `name_taken` for the name of a built-in skill, `duplicate` if the
            agent has or could have another skill with this name, and `lookalike` if people could
            confuse the name with another.
    """
    taken = _names(sources, agent_id)
    holders = taken.get(name, [])
    if BUILT_IN in holders:
        raise Conflict(
            f"A built-in skill is called {name}: choose another name.",
            code="name_taken",
        )
    updated = not new and agent_id is not None and agent_scope(agent_id) in holders
    if agent_id is not None and holders and not updated:
        raise Conflict(
            f"A skill {name} already exists ({describe_scope(holders[0])}): choose another name.",
            code="duplicate",
        )
    seen = skeleton(name)
    for other, scopes in taken.items():
        if other != name and skeleton(other) == seen:
            raise Conflict(
                f"{name} looks like {other} ({describe_scope(scopes[0])}), but is written with "
                "other characters: choose a name that differs more.",
                code="lookalike",
            )


def _names(sources: Sequence[SourceRead], agent_id: str | None) -> dict[str, list[str]]:
    """Return the scopes that have a skill of each name: shared scopes and that of the agent."""
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
