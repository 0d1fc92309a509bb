"""Review versions of skills, and put versions into quarantine."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.utils import timezone

from agents.services.audit import record
from agents.services.errors import Conflict, InvalidRequest, NotFound
from skills_app.actions.rights import check_may_review
from skills_app.actions.versions import accept_version, lock_bytes
from skills_app.library.package import SKILL_FILE, PackageFile
from skills_app.library.scopes import BUILT_IN, directory_of
from skills_app.models import Skill, SkillVersion, Trust
from skills_app.queries.index import remove_from_index

_TRIES = 3


@transaction.atomic
def review_version(
    version_id: int, *, by: AbstractBaseUser, content_hash: str, seen_trust: str | None = None
) -> SkillVersion:
    """Record that `by` has reviewed a version, and return it. Agents get it as trusted.

    This also ends a quarantine of the version. An old version of a skill in a directory is only
    recorded: agents get what the directory contains. `content_hash` and `seen_trust` are the hash
    and the trust that `by` has seen. Raises `NotAllowed`, `NotFound`, and `Conflict` (code `stale`)
    if one of them has changed or the skill was deleted.
    """
    check_may_review(by)
    skill, version = _locked(version_id)
    if skill.is_deleted:
        raise Conflict(f"The skill {skill.name} was deleted: import it again.", code="stale")
    if version.content_hash != content_hash:
        raise Conflict(
            f"These are not the bytes of {skill.name} that you have seen: look again.", code="stale"
        )
    if seen_trust is not None and version.trust != seen_trust:
        raise Conflict(
            f"{skill.name} was {seen_trust} when you looked and is {version.trust}: look again.",
            code="stale",
        )
    changes = {"trust": (version.trust, Trust.REVIEWED), "content": (None, content_hash)}
    record("skill.reviewed", skill, name=f"{skill.name} {version.number}", by=by, changes=changes)
    version.trust, version.reviewed_by_id = Trust.REVIEWED, by.pk
    version.reviewed_at = timezone.now()
    version.save(update_fields=["trust", "reviewed_by", "reviewed_at"])
    # A directory only has its present version, so an earlier version cannot become current.
    if not _is_synced(skill) or version.number == skill.version:
        accept_version(skill, version)
    return version


@transaction.atomic
def quarantine_version(version_id: int, *, by: AbstractBaseUser, reason: str) -> SkillVersion:
    """Put the bytes of a version into quarantine, in every skill that has them.

    Each of these skills returns to its latest earlier version that was accepted and is not
    quarantined. Without one, and if it is in a directory, agents lose the skill. Runs that have
    started keep it.

    Raises:
        NotAllowed: `by` may not review skills.
        NotFound: There is no such version.
        InvalidRequest: There is no reason.
        Conflict: With the code `stale`: other requests keep storing the same bytes.
    """
    check_may_review(by)
    if not reason.strip():
        raise InvalidRequest("Give a reason for the quarantine: the next reviewer reads it.")
    requested = SkillVersion.objects.filter(pk=version_id).exclude(content=None).first()
    if requested is None:
        raise NotFound("There is no such version of a skill.")
    for _ in range(_TRIES):
        try:
            with transaction.atomic():
                return _quarantine(requested, by, reason.strip())
        except _MoreHolders:
            continue
    raise Conflict("Another request stores the same bytes now: try again.", code="stale")


class _MoreHolders(Exception):
    """Another skill received the same bytes before its row could be locked."""


def _quarantine(requested: SkillVersion, by: AbstractBaseUser, reason: str) -> SkillVersion:
    alike = SkillVersion.objects.filter(content_hash=requested.content_hash).exclude(content=None)
    holders = set(alike.values_list("skill_id", flat=True))
    skills = list(Skill.objects.select_for_update().filter(pk__in=holders).order_by("pk"))
    lock_bytes(PackageFile(SKILL_FILE, (requested.content or "").encode()))
    if set(alike.values_list("skill_id", flat=True)) - holders:
        raise _MoreHolders
    now = timezone.now()
    for version in alike.select_related("skill"):
        changes = {
            "trust": (version.trust, Trust.QUARANTINED),
            "content": (None, requested.content_hash),
        }
        name = f"{version.skill.name} {version.number}"
        record("skill.quarantined", version.skill, name=name, by=by, changes=changes, note=reason)
        version.trust, version.reviewed_by_id, version.reviewed_at = Trust.QUARANTINED, by.pk, now
        version.reason = "\n".join(
            part for part in (version.reason, f"Quarantined: {reason}") if part
        )
        version.save(update_fields=["trust", "reviewed_by", "reviewed_at", "reason"])
    for skill in skills:
        _go_back(skill)
    return SkillVersion.objects.get(pk=requested.pk)


def _go_back(skill: Skill) -> None:
    current = skill.current
    if current is None or current.trust != Trust.QUARANTINED:
        return
    before = (
        skill.versions.filter(number__lt=current.number, accepted_at__isnull=False)
        .exclude(content=None)
        .exclude(trust=Trust.QUARANTINED)
    )
    # A deletion also invalidates the versions before it.
    deleted = skill.versions.filter(number__lt=current.number, content=None)
    last_deletion = deleted.order_by("-number").values_list("number", flat=True).first()
    found = before.filter(number__gt=last_deletion or 0).order_by("-number").first()
    # A directory has no earlier state to which it could return.
    if found is not None and not _is_synced(skill):
        accept_version(skill, found)
        return
    skill.current = None
    skill.save(update_fields=["current", "updated_at"])
    remove_from_index(skill.pk)


def _locked(version_id: int) -> tuple[Skill, SkillVersion]:
    """Return the skill of a version with a row lock, and the version, read after the lock.

    Raises `NotFound`.
    """
    skill = Skill.objects.select_for_update(of=("self",)).filter(versions__pk=version_id).first()
    version = SkillVersion.objects.filter(pk=version_id).exclude(content=None).first()
    if skill is None or version is None:
        raise NotFound("There is no such version of a skill.")
    version.skill = skill
    return skill, version


def _is_synced(skill: Skill) -> bool:
    return skill.scope == BUILT_IN or directory_of(skill.scope) is not None
