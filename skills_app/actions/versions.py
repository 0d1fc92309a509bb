"""Change skills by adding versions. No other code changes them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from agents.services.errors import Conflict
from skills_app.library.export import export_files, write_archive
from skills_app.library.package import SKILL_FILE, Package, PackageFile
from skills_app.library.problems import InvalidSkill, SkillChanged
from skills_app.library.read import read_package, read_text
from skills_app.library.scan import findings_json, scan_package
from skills_app.library.scopes import agent_scope
from skills_app.models import Skill, SkillBlob, SkillFile, SkillVersion, Trust
from skills_app.queries.index import index_version, remove_from_index


@dataclass(frozen=True, slots=True)
class VersionDetails:
    """Who made a version, and why.

    `source` is the origin of the request: `approval`, `api`, `web`, `admin`, `cli`, `import`,
    `directory` or `release`. `findings` are those of the scan, as JSON.
    """

    source: str
    by_id: int | None = None
    reason: str = ""
    origin: str = ""
    findings: list[dict[str, Any]] = field(default_factory=list)


def skill_state(agent_id: str, name: str) -> tuple[str | None, int]:
    """Return (content, number) of the latest version of an agent's own skill.

    The content is None if the skill does not exist, was deleted, or is in quarantine: the agent
    reads the content. The number is 0 if the agent never had such a skill.
    """
    latest = (
        SkillVersion.objects.filter(skill__scope=agent_scope(agent_id), skill__name=name)
        .order_by("-number")
        .values_list("content", "number", "trust")
        .first()
    )
    if latest is None:
        return None, 0
    content, number, trust = latest
    return (None if trust == Trust.QUARANTINED else content), number


def check_skill(name: str, content: str) -> str:
    """Return the description in the SKILL.md `content` of the skill `name`.

    Raises `InvalidSkill` if the SKILL.md is invalid or has another name.
    """
    package = read_text(content)
    if package.head.name != name:
        raise InvalidSkill(f"The head must have `name: {name}`, like its file.")
    return package.head.description


@transaction.atomic
def store_package(
    scope: str,
    package: Package,
    details: VersionDetails,
    *,
    trust: Trust,
    base_version: int | None = None,
    agent_id: str | None = None,
    accept: bool = True,
) -> SkillVersion:
    """Store `package` as the next version of its skill, and return the version.

    With `accept`, agents get the version from their next run on. Otherwise it waits, and the
    current one stays. If the latest version has the same bytes and the same trust, that version is
    returned.

    `base_version` is the version that the change builds on (0: there is no such skill); None
    accepts any. `agent_id` is for an agent's own skill. Quarantined bytes stay in quarantine and
    wait, regardless of the arguments. Raises `SkillChanged`.
    """
    skill = Skill.objects.select_for_update().filter(scope=scope, name=package.head.name).first()
    if is_quarantined(package):
        trust, accept = Trust.QUARANTINED, False
    number = skill.version if skill else 0
    if base_version is not None and base_version != number:
        raise SkillChanged(f"The skill {package.head.name} has changed. Reload it and try again.")
    if skill is not None and not skill.is_deleted:
        latest = skill.versions.get(number=number)
        if latest.content_hash == package.content_hash and latest.trust == trust:
            if accept and skill.current_id != latest.pk:
                _make_current(skill, latest)
            return latest
    try:
        with transaction.atomic():
            if skill is None:
                skill = Skill(scope=scope, agent_id=agent_id, name=package.head.name, version=0)
            skill.version, skill.is_deleted = number + 1, False
            if accept or skill.current_id is None:
                skill.description = package.head.description
            skill.save()
            version = _create_version(skill, package, details, trust)
            if accept:
                _make_current(skill, version)
            return version
    except IntegrityError:
        raise SkillChanged(f"The skill {package.head.name} has just changed: try again.") from None


@transaction.atomic
def delete_skill(
    skill: Skill, details: VersionDetails, *, base_version: int | None = None
) -> SkillVersion:
    """Delete the skill, and return the version that records this. Runs keep the earlier versions.

    Raises `SkillChanged` if the skill is not at `base_version`, and `InvalidSkill` if it was
    already deleted.
    """
    skill.refresh_from_db(from_queryset=Skill.objects.select_for_update())
    if base_version is not None and skill.version != base_version:
        raise SkillChanged(f"The skill {skill.name} has changed. Reload it and try again.")
    if skill.is_deleted:
        raise InvalidSkill(f"There is no skill {skill.name} to delete.")
    try:
        with transaction.atomic():
            version = SkillVersion.objects.create(
                skill=skill,
                number=skill.version + 1,
                content=None,
                trust=Trust.IMPORTED,
                source=details.source,
                reason=details.reason,
                created_by_id=details.by_id,
            )
            skill.version, skill.is_deleted, skill.current = version.number, True, None
            skill.save()
            remove_from_index(skill.pk)
            return version
    except IntegrityError:
        raise SkillChanged(f"The skill {skill.name} has just changed.") from None


@transaction.atomic
def store_version(
    agent_id: str,
    name: str,
    content: str | None,
    *,
    base_version: int,
    trust: Trust,
    source: str,
    by_id: int | None = None,
    reason: str = "",
) -> int:
    """Store `content` as the SKILL.md of an agent's own skill, and return the version's number.

    None deletes the skill. Its other files do not change. Raises `InvalidSkill`, and `SkillChanged`
    if the skill is not at `base_version`.
    """
    scope = agent_scope(agent_id)
    details = VersionDetails(source, by_id, reason)
    skill = Skill.objects.select_for_update().filter(scope=scope, name=name).first()
    number = skill.version if skill else 0
    if number != base_version:
        raise SkillChanged(f"The skill {name} has changed. Reload it and try again.")
    if content is None:
        if skill is None:
            raise InvalidSkill(f"There is no skill {name} to delete.")
        return delete_skill(skill, details, base_version=base_version).number
    check_skill(name, content)
    current = skill.current if skill else None
    if current is not None and current.trust == Trust.QUARANTINED:
        # Refuse, because a small change would release the other files from quarantine.
        raise InvalidSkill(f"The skill {name} is in quarantine: have it reviewed, or delete it.")
    others = version_files(skill.current_id) if skill and skill.current_id else []
    files = [file for file in others if file.path != SKILL_FILE]
    package, problems = read_package([PackageFile(SKILL_FILE, content.encode()), *files])
    if package is None:
        raise InvalidSkill(" ".join(str(problem) for problem in problems), problems)
    require_not_quarantined(package)
    details = replace(details, findings=findings_json(scan_package(package)))
    version = store_package(
        scope, package, details, trust=trust, base_version=base_version, agent_id=agent_id
    )
    return version.number


def lock_bytes(skill_file: PackageFile) -> None:
    """Lock all packages with this SKILL.md against a concurrent quarantine or storage.

    Call it after all locks on skills. New bytes have no rows to lock, and no quarantine.
    """
    list(SkillBlob.objects.select_for_update().filter(pk=skill_file.sha256).values_list("pk"))


def is_quarantined(package: Package) -> bool:
    """Return whether these bytes are in quarantine in some skill and reviewed in none.

    The result is valid until the transaction ends.
    """
    for file in package.files:
        if file.path == SKILL_FILE:
            lock_bytes(file)
    alike = SkillVersion.objects.filter(content_hash=package.content_hash)
    trusts = set(alike.values_list("trust", flat=True))
    return Trust.QUARANTINED in trusts and Trust.REVIEWED not in trusts


def require_not_quarantined(package: Package) -> None:
    """Raise `InvalidSkill` if the bytes of `package` are in quarantine."""
    if is_quarantined(package):
        raise InvalidSkill(
            f"The skill {package.head.name} is, byte for byte, one that is in quarantine: have "
            "that one reviewed, or change this."
        )


def version_files(version_id: int) -> list[PackageFile]:
    """Return the files of a stored version with their content, sorted by path."""
    return [
        PackageFile(file.path, bytes(file.blob.data), file.executable)
        for file in SkillFile.objects.filter(version_id=version_id)
        .select_related("blob")
        .order_by("path")
    ]


def accept_version(skill: Skill, version: SkillVersion) -> None:
    """Make `version` the one that agents get from their next run on.

    The caller must have checked the permission and must hold the lock on `skill`.
    """
    if version.skill_id != skill.pk or version.content is None:
        raise InvalidSkill(f"{version} is not a usable version of {skill.name}.")
    _make_current(skill, version)


def _make_current(skill: Skill, version: SkillVersion) -> None:
    if version.accepted_at is None:
        version.accepted_at = timezone.now()
        version.save(update_fields=["accepted_at"])
    skill.current = version
    skill.description = version.fields.description
    skill.is_deleted = False
    skill.save()
    index_version(version)


def _create_version(
    skill: Skill, package: Package, details: VersionDetails, trust: Trust
) -> SkillVersion:
    version = SkillVersion.objects.create(
        skill=skill,
        number=skill.version,
        content=package.text,
        content_hash=package.content_hash,
        head=package.head.as_json(),
        file_count=len(package.files),
        size_bytes=package.size,
        findings=details.findings,
        trust=trust,
        source=details.source,
        origin=details.origin[:500],
        reason=details.reason,
        created_by_id=details.by_id,
    )
    SkillBlob.objects.bulk_create(
        [
            SkillBlob(sha256=digest, data=data, size_bytes=len(data))
            for digest, data in {file.sha256: file.data for file in package.files}.items()
        ],
        ignore_conflicts=True,
    )
    SkillFile.objects.bulk_create(
        [
            SkillFile(
                version=version, path=file.path, blob_id=file.sha256, executable=file.executable
            )
            for file in package.files
        ]
    )
    return version


@dataclass(frozen=True, slots=True)
class ExportedSkill:
    """A zip archive and its file name."""

    name: str
    data: bytes


def export_version(version: SkillVersion) -> ExportedSkill:
    """Return `version` as a zip archive in the strict form of the specification.

    Raises `Conflict` for a version in quarantine, and for a head that is too long.
    """
    head = version.fields
    if version.trust == Trust.QUARANTINED:
        raise Conflict(
            f"Version {version.number} of {head.name} is in quarantine: read its files one by one.",
            code="quarantined",
        )
    try:
        files = export_files(version_files(version.pk), head)
        return ExportedSkill(f"{head.name}.zip", write_archive(head.name, files))
    except InvalidSkill as problem:
        raise Conflict(f"{head.name} cannot be exported. {problem}", code="no_export") from None
