"""Store the sets of skill versions that runs have pinned."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence

from agents.models import Run
from agents.states import ENDED_RUNS
from skills_app.library.package import Head
from skills_app.library.pinned import PinnedSkill
from skills_app.library.store.prune import prune_store
from skills_app.library.store.store import set_key
from skills_app.models import RunSkillSet, SkillSet, SkillSetEntry, SkillVersion

MAX_HEADS = 10_000
"""The maximum number of heads that a process caches.

Heads never change, and each run of an agent needs all of its heads.
"""
_Key = tuple[int, str, str]
_heads: dict[_Key, Head] = {}
_lock = threading.Lock()


def store_set(versions: Sequence[SkillVersion]) -> SkillSet:
    """Return the set of exactly these versions. It is created if it does not exist.

    The order of `versions` is that of the catalogue. `version.skill` must be loaded.
    """
    lines = "".join(f"{version.pk} {version.content_hash}\n" for version in versions)
    key = hashlib.sha256(lines.encode()).hexdigest()
    found, created = SkillSet.objects.get_or_create(pk=key)
    if created:
        SkillSetEntry.objects.bulk_create(
            [
                SkillSetEntry(
                    skill_set=found, position=place, name=version.skill.name, version=version
                )
                for place, version in enumerate(versions)
            ]
        )
    return found


def set_of(run: Run) -> str | None:
    """Return the id of the skill set of `run`, None if it has none."""
    found = RunSkillSet.objects.filter(run=run)
    return found.values_list("skill_set_id", flat=True).first()


def skills_in(set_id: str | None) -> tuple[PinnedSkill, ...]:
    """Return the skills of a set in the order of the catalogue, with their current trust.

    For None the result is empty.
    """
    if set_id is None:
        return ()
    entries = SkillSetEntry.objects.filter(skill_set_id=set_id).order_by("position")
    rows = list(
        entries.values_list("version_id", "version__content_hash", "name", "version__trust")
    )
    heads = _heads_of([row[:3] for row in rows])
    return tuple(
        PinnedSkill(version_id, content_hash, trust, heads[version_id, content_hash, name])
        for version_id, content_hash, name, trust in rows
    )


def _heads_of(keys: Sequence[_Key]) -> dict[_Key, Head]:
    """Return the heads of the versions `keys`. One query reads those that are not in the cache."""
    with _lock:
        known = {key: head for key in keys if (head := _heads.get(key)) is not None}
    missing = {key[0]: key for key in keys if key not in known}
    if not missing:
        return known
    rows = SkillVersion.objects.filter(pk__in=missing).order_by().values_list("pk", "head")
    fresh = {missing[pk]: Head.from_json(head) for pk, head in rows}
    with _lock:
        _heads.update(fresh)
        for old in list(_heads)[: max(0, len(_heads) - MAX_HEADS)]:
            del _heads[old]
    return known | fresh


DAY = 86_400.0
MIN_DAYS = 1
"""The minimum age: a run of another database with the same store may have just started."""


def prune_unpacked_skills(days: int, *, apply: bool) -> list[str]:
    """Remove unpacked sets that no run has requested in `days` days, and return their paths.

    `days` counts as at least `MIN_DAYS`. Sets of unfinished runs stay, because a worker may have
    mounted them. Without `apply`, nothing is removed. Raises OSError.
    """
    active = RunSkillSet.objects.exclude(run__status__in=ENDED_RUNS).order_by()
    sets = active.values_list("skill_set_id", flat=True).distinct()
    keep = {set_key(skills_in(set_id)) for set_id in sets}
    return prune_store(keep, older_than=max(days, MIN_DAYS) * DAY, apply=apply)
