"""Sets of skill versions, as runs pin them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from skills_app.models import SkillSet, SkillSetEntry, SkillVersion
from skills_app.pinned import PinnedSkill, pinned


def store_set(versions: Sequence[SkillVersion]) -> SkillSet:
    """The set of just these versions, made if it is new. Their order is the catalogue's."""
    lines = "".join(f"{version.pk} {version.content_hash}\n" for version in versions)
    key = hashlib.sha256(lines.encode()).hexdigest()
    found, created = SkillSet.objects.get_or_create(pk=key)
    if created:
        SkillSetEntry.objects.bulk_create(
            [
                SkillSetEntry(
                    skill_set=found,
                    position=place,
                    name=version.fields.name,
                    version=version,
                )
                for place, version in enumerate(versions)
            ]
        )
    return found


def skills_in(set_id: str | None) -> tuple[PinnedSkill, ...]:
    """The skills of a set, in the catalogue's order; none for None."""
    if set_id is None:
        return ()
    entries = (
        SkillSetEntry.objects.filter(skill_set_id=set_id)
        .select_related("version")
        .defer("version__content", "version__findings")
        .order_by("position")
    )
    return tuple(pinned(entry.version) for entry in entries)
