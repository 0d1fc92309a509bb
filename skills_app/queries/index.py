"""Search the full-text index of skills for candidates, which `ranking` puts in order.

SQLite and PostgreSQL store the same tokens and are only asked which rows have one of some tokens,
so the candidates and their order are the same. Skills that are not indexed yet are always
candidates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from django.db import connection
from django.db.models import QuerySet

from agents.kernel.lazy_modules import lazy_modules
from skills_app.library.pinned import PinnedSkill
from skills_app.library.search.analysis import ANALYSIS
from skills_app.library.search.document import (
    NO_VECTOR,
    SkillDocument,
    analyse,
    dumped,
    loaded,
)
from skills_app.library.search.query import Query, read_query
from skills_app.library.search.ranking import FEW
from skills_app.library.search.tokens import fold
from skills_app.library.search.triggers import Message, matching
from skills_app.models import Skill, SkillIndexEntry, SkillVersion
from skills_app.queries.stored import (
    RankedVersion,
    rank_pinned,
    rank_versions,
    stored_document,
)
from skills_app.settings import SkillSettings

with lazy_modules:
    # numpy and the weights take 0.2 s.
    from skills_app.library.search import meaning

SHORTLIST = 200
MAX_SUBSTRING = 200
"""The maximum length in characters of a query that is also searched as an exact text."""
_SQLITE = "SELECT rowid FROM skills_app_skillindex_fts WHERE skills_app_skillindex_fts MATCH %s"
_POSTGRESQL = "SELECT skill_id FROM skills_app_skillindexentry WHERE lexemes @@ CAST(%s AS tsquery)"


def index_version(version: SkillVersion) -> None:
    """Index `version`, the current one of its skill, in the caller's transaction.

    In an index of more than `FEW` skills, the language model also reads those that it has not read
    yet.
    """
    document = stored_document(version)
    analysed = analyse(document)
    SkillIndexEntry.objects.update_or_create(
        skill_id=version.skill_id,
        defaults={
            "version_id": version.pk,
            "analysis": ANALYSIS,
            "tokens": " ".join(sorted(map(_encoded, analysed.evidence))),
            "names": _names(document),
            "analysed": dumped(analysed),
        },
    )
    if SkillIndexEntry.objects.count() > FEW:
        _add_vectors()


def _add_vectors() -> None:
    """Let the language model read the skills that it has not read yet."""
    unread = list(
        SkillIndexEntry.objects.filter(analysis=ANALYSIS, analysed__contains=NO_VECTOR)
        .order_by("pk")
        .only("analysed")
    )
    skills = [loaded(entry.analysed) for entry in unread]
    vectors = meaning.vectors_of([skill.said for skill in skills])
    for entry, skill, vector in zip(unread, skills, vectors, strict=True):
        entry.analysed = dumped(replace(skill, vector=vector))
    SkillIndexEntry.objects.bulk_update(unread, ["analysed"])


def remove_from_index(skill_id: int) -> None:
    """Remove the skill from the index, if it is indexed."""
    SkillIndexEntry.objects.filter(skill_id=skill_id).delete()


def search_skills(query: str, skills: QuerySet[Skill]) -> list[RankedVersion]:
    """Return the current versions of `skills` that match `query`, best first.

    Skills with the exact query in their name, description or tags are always included. Any text is
    a query; no part of it is treated as syntax. An empty query matches all.
    """
    current = dict(skills.exclude(current=None).values_list("pk", "current_id"))
    if not query.strip():
        return rank_versions(query, list(current.values()))
    indexed = dict(
        SkillIndexEntry.objects.filter(analysis=ANALYSIS).values_list("skill_id", "version_id")
    )
    asked = read_query(query)
    as_it_is = set(_with_substring(query)) & current.keys()
    unknown = {pk for pk, version_id in current.items() if indexed.get(pk) != version_id}
    shortlist = {*_shortlist(asked, current), *as_it_is, *unknown}
    if len(shortlist) < SHORTLIST:
        # Fill the rest with other skills, which may match without any word of the query.
        shortlist.update(sorted(current.keys() - shortlist)[: SHORTLIST - len(shortlist)])
    ranked = rank_versions(query, [current[pk] for pk in shortlist])
    text = _plain(query)
    late = as_it_is | {
        version.skill_id for version in ranked if text and text in _plain(version.name)
    }
    return [version for version in ranked if version.score > 0 or version.skill_id in late]


def _shortlist(query: Query, among: dict[int, int]) -> list[int]:
    """Return the ids of the skills in `among` that answer most of the query, then by id."""
    weights: dict[int, float] = {}
    for want in query.wants:
        for skill_id in _having(token for token, _ in want.answers):
            weights[skill_id] = weights.get(skill_id, 0.0) + want.weight
    found = [(-weight, skill_id) for skill_id, weight in weights.items() if skill_id in among]
    return [skill_id for _, skill_id in sorted(found)[:SHORTLIST]]


def _having(tokens: Iterable[str]) -> list[int]:
    """Return the ids of the skills that have one of `tokens`. Encoded tokens contain no syntax."""
    encoded = sorted({_encoded(token) for token in tokens})
    if connection.vendor == "sqlite":
        sql, match = _SQLITE, " OR ".join(f'"{token}"' for token in encoded)
    elif connection.vendor == "postgresql":
        sql, match = _POSTGRESQL, " | ".join(f"'{token}'" for token in encoded)
    else:
        raise RuntimeError(
            f"Vel cannot search in a {connection.vendor} database: use SQLite or PostgreSQL."
        )
    with connection.cursor() as cursor:
        cursor.execute(sql, [match])
        return [skill_id for (skill_id,) in cursor.fetchall()]


def _with_substring(query: str) -> list[int]:
    text = _plain(query)
    if not text or len(text) > MAX_SUBSTRING:
        return []
    found = SkillIndexEntry.objects.filter(names__contains=text)
    return list(found.values_list("skill_id", flat=True))


def _names(document: SkillDocument) -> str:
    return _plain("\n".join((document.name, document.description, *document.tags)))


def _plain(text: str) -> str:
    """Return `text` folded and without characters that a database refuses."""
    return fold(text).replace("\0", "").encode("utf-8", "ignore").decode().strip()


def _encoded(token: str) -> str:
    """Return `token` written in a-z, 0-9 and _, which no tokenizer of a database changes."""
    plain = token.isascii() and token.replace("_", "").isalnum()
    return token if plain else f"u_{token.encode('utf-8', 'ignore').hex()}"


FITS = 0.3
"""The score from which a skill is suggested to the model."""
_LOOKED_AT = 4_000
"""The number of characters of a message that are read: its subject is usually at its start."""


def find_pinned(query: str, skills: Collection[PinnedSkill]) -> list[tuple[PinnedSkill, float]]:
    """Return pairs (skill, score from 0 to 1), best first.

    Of more than SHORTLIST skills, only the matches of `search_skills` are returned.
    """
    if len(skills) <= SHORTLIST:
        return rank_pinned(query, skills)
    by_version = {skill.version_id: skill for skill in skills}
    ranked = search_skills(query, Skill.objects.filter(current_id__in=list(by_version)))
    return [
        (by_version[found.version_id], found.score)
        for found in ranked
        if found.version_id in by_version
    ]


def suggested(message: str, skills: Collection[PinnedSkill]) -> list[str]:
    """Return the names of the few skills that fit a message.

    Skills with a trigger in the message come first, by priority, then those with the best scores.
    """
    text = message[:_LOOKED_AT]
    read = Message.of(text)
    triggered = [skill for skill in skills if matching(skill.head.triggers, read) is not None]
    triggered.sort(key=lambda skill: (-skill.head.priority, skill.name))
    names = [skill.name for skill in triggered]
    names += [skill.name for skill, score in find_pinned(text, skills) if score >= FITS]
    return list(dict.fromkeys(names))[: SkillSettings.now().SUGGESTIONS]
