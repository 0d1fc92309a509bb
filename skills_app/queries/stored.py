"""Rank stored versions for a query. Each process analyses a version once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from skills_app.library.package import Head
from skills_app.library.pinned import PinnedSkill
from skills_app.library.read import body_of
from skills_app.library.search.analysis import ANALYSIS
from skills_app.library.search.document import (
    Analysed,
    SkillDocument,
    analyse,
    cache,
    document_of,
    loaded,
)
from skills_app.library.search.ranking import FEW, scores
from skills_app.models import SkillFile, SkillIndexEntry, SkillVersion


@dataclass(frozen=True, slots=True)
class RankedVersion:
    """A version and its score, as in `skills_app.library.search.ranking.Match`."""

    version_id: int
    skill_id: int
    name: str
    score: float


def rank_versions(query: str, version_ids: Collection[int]) -> list[RankedVersion]:
    """Rank these versions by their score for `query`, best first. Deletions are left out.

    Versions with the same score are sorted by priority, highest first, then by name.
    """
    rows = SkillVersion.objects.filter(pk__in=version_ids).values_list(
        "pk", "skill_id", "skill__name", "content_hash", "head__priority"
    )
    known = _analysed({pk: _key(name, digest) for pk, _, name, digest, _ in rows})
    found = dict(zip(known, scores(query, [*known.values()]), strict=True))
    ranked = [
        (-(priority or 0), RankedVersion(pk, skill_id, name, found[pk]))
        for pk, skill_id, name, _, priority in rows
        if pk in found
    ]
    ranked.sort(key=lambda row: (-row[1].score, row[0], row[1].name, row[1].version_id))
    return [version for _, version in ranked]


def rank_pinned(query: str, skills: Collection[PinnedSkill]) -> list[tuple[PinnedSkill, float]]:
    """Rank the skills of a run like `rank_versions`.

    Needs no database query for skills that this process has analysed already.
    """
    known = _analysed({skill.version_id: _key(skill.name, skill.content_hash) for skill in skills})
    found = dict(zip(known, scores(query, [*known.values()]), strict=True))
    ranked = [(skill, found[skill.version_id]) for skill in skills if skill.version_id in found]
    ranked.sort(key=lambda row: (-row[1], -row[0].head.priority, row[0].name, row[0].version_id))
    return ranked


def stored_document(version: SkillVersion) -> SkillDocument:
    """Return the parts of a version that the search reads.

    Raises `ValueError` for a version that records a deletion.
    """
    if version.content is None:
        raise ValueError(f"{version} has no content.")
    paths = version.files.values_list("path", flat=True)
    # Sort as in a package: databases may sort differently.
    return document_of(Head.from_json(version.head), body_of(version.content), sorted(paths))


def _key(name: str, digest: str) -> str:
    """Return the cache key of an analysis, which depends on a package's bytes and its name."""
    return f"package {digest} {name}"


def _analysed(keys: dict[int, str]) -> dict[int, Analysed]:
    """Return the analyses by version, from the cache, the index or the bodies."""
    known = {pk: found for pk, key in keys.items() if (found := cache.get(key)) is not None}
    wanted = keys.keys() - known.keys()
    if len(keys) > FEW:
        # The index may have got vectors since this process read it.
        wanted |= {pk for pk, analysed in known.items() if not analysed.vector}
    if not wanted:
        return known
    entries = SkillIndexEntry.objects.filter(version_id__in=wanted, analysis=ANALYSIS)
    for pk, analysed in entries.values_list("version_id", "analysed"):
        known[pk] = loaded(analysed)
        cache.put(keys[pk], known[pk])
    missing = [pk for pk in keys if pk not in known]
    if not missing:
        return known
    paths: dict[int, list[str]] = {}
    files = SkillFile.objects.filter(version_id__in=missing).order_by("version_id", "path")
    for version_id, path in files.values_list("version_id", "path"):
        paths.setdefault(version_id, []).append(path)
    versions = SkillVersion.objects.filter(pk__in=missing).exclude(content=None)
    for version in versions.only("head", "content").iterator(chunk_size=100):
        head = Head.from_json(version.head)
        document = document_of(head, body_of(version.content or ""), paths.get(version.pk, ()))
        known[version.pk] = analyse(document)
        cache.put(keys[version.pk], known[version.pk])
    return known
