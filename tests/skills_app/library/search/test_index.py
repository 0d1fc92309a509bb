"""The index: found by words, removed with its skill, equal on both databases, without syntax."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from skills_app.actions.versions import VersionDetails, delete_skill
from skills_app.library.pinned import PinnedSkill
from skills_app.library.search import document, meaning, ranking
from skills_app.library.search.document import cache
from skills_app.library.sources.folder import read_folder
from skills_app.models import Skill, SkillIndexEntry
from skills_app.queries import index, stored
from skills_app.queries.index import index_version, remove_from_index, search_skills, suggested
from skills_app.queries.stored import rank_versions
from tests.skills_app.builtin.desk import BUILTIN
from tests.skills_app.library.search.evaluate import read_questions
from tests.support.skills import package, store_skill

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

PHRASES = Path(__file__).with_name("phrases.txt")
SKILLS = {
    "spreadsheets": "Create and edit Excel workbooks with formulas.",
    "posters": "Design posters and flyers for print.",
    "letters": "Write letters to customers and authorities.",
    "umlaute": "Größen und Maße in Übersichten.",
    "baogao": "生成销售报告和图表。",
    "adlam": "\U0001e922\U0001e923\U0001e924",  # letters that FTS5's tables do not have yet
    "otchety": "Готовит отчёты о продажах.",
}


@pytest.fixture
def skills(tmp_path: Path) -> dict[str, int]:
    """Index SKILLS and return their IDs by name."""
    ids = {}
    for name, description in SKILLS.items():
        version = store_skill(package(tmp_path, name, description=description))
        index_version(version)
        ids[name] = version.skill_id
    return ids


def names(query: str) -> list[str]:
    return [found.name for found in search_skills(query, Skill.objects.all())]


def full_text(query: str) -> set[int]:
    """Return the results of the full-text index alone."""
    current = {pk: pk for pk in Skill.objects.values_list("pk", flat=True)}
    return set(index._shortlist(index.read_query(query), current))


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("edit budget.xlsx", "spreadsheets"),
        ("a flyer", "posters"),
        ("write to a customer", "letters"),
        ("GROSSEN ubersichten", "umlaute"),
        ("销售报告", "baogao"),
        ("\U0001e922\U0001e923\U0001e924", "adlam"),
        ("отчет о продаже", "otchety"),
    ],
)
def test_found_by_its_words(skills: dict[str, int], query: str, name: str) -> None:
    assert names(query)[0] == name
    assert skills[name] in full_text(query)


@pytest.mark.slow
def test_a_part_of_a_word_finds_it_too(skills: dict[str, int]) -> None:
    assert names("eadsheet") == ["spreadsheets"]
    assert names("100%") == names("_") == []


@pytest.mark.slow
def test_the_shortlist_gives_the_same_result_as_ranking_all(skills: dict[str, int]) -> None:
    every = list(Skill.objects.values_list("current_id", flat=True))
    for query in ("write an Excel report", "print letters", "报告 flyers", "nothing of it"):
        ranked = [found for found in rank_versions(query, every) if found.score]
        assert search_skills(query, Skill.objects.all()) == ranked


def test_a_process_reads_the_analysis_of_another_one(
    skills: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = search_skills("a flyer", Skill.objects.all())
    cache.clear()
    monkeypatch.setattr(document, "_analyse", None)
    assert search_skills("a flyer", Skill.objects.all()) == first


def test_vectors_are_computed_once_when_skills_become_many(
    skills: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    original = meaning._read

    def noted(texts: Sequence[str], most: int) -> Any:
        read.extend(texts)
        return original(texts, most)

    monkeypatch.setattr(meaning, "_known", {})
    monkeypatch.setattr(meaning, "_read", noted)
    for module in (index, ranking, stored):
        monkeypatch.setattr(module, "FEW", len(SKILLS))
    names("a big advertisement")
    assert read == []
    index_version(store_skill(package(tmp_path, "boats", description="Sails boats.")))
    assert len(read) == len(set(read)) == len(SKILLS) + 1
    meaning._known.clear()  # as in another process, which has the skills without vectors, too
    assert names("a big advertisement")[0] == "posters"
    assert len(read) == len(SKILLS) + 2
    index_version(store_skill(package(tmp_path, "kites", description="Flies kites.")))
    assert read[-1].startswith("kites")
    assert len(read) == len(SKILLS) + 3


def test_suggestions_by_triggers_come_first_and_by_priority(tmp_path: Path) -> None:
    pinned = []
    for name, priority in (("aaa", 0), ("bbb", 1), ("ccc", 2), ("zzz", 100)):
        head = {"priority": str(priority), "triggers": "[gizmo]"}
        version = store_skill(package(tmp_path, name, description="Flowers.", **head))
        pinned.append(PinnedSkill(version.pk, version.content_hash, "local", version.fields))
    assert suggested("my gizmo is broken", pinned) == ["zzz", "ccc", "bbb"]


def test_phrases_suggest_the_built_in_skills() -> None:
    pinned = []
    for folder in sorted(BUILTIN.iterdir()):
        version = store_skill(read_folder(folder))
        pinned.append(PinnedSkill(version.pk, version.content_hash, "local", version.fields))
    result = [(asked, suggested(asked.query, pinned)) for asked in read_questions(PHRASES)]
    wrong_first = [
        (asked, names) for asked, names in result if {*names[:1]}.isdisjoint(asked.right)
    ]
    missing = [(asked, names) for asked, names in result if {*names}.isdisjoint(asked.right)]
    assert len(wrong_first) < len(result) * 0.1, wrong_first
    assert len(missing) < len(result) * 0.03, missing


ODD = [
    "",
    "   ",
    "posters NEAR letters",
    'posters" OR "1"="1',
    "posters*",
    "tokens:posters",
    "{posters letters}: x",
    "-posters",
    "posters AND NOT (",
    "((((((",
    "'); DROP TABLE skills_app_skill; --",
    "posters | letters & !x <-> y",
    "posters\0letters",
    "\0",
    "\ud800 posters",
    "🙂🙂",
    "%_\\",
    "売上 ",
    "x" * 100_000,
    "posters " * 12_000,
    "'\"\\$1 %s {0}",
]


@pytest.mark.slow_cases
@pytest.mark.parametrize("query", ODD, ids=range(len(ODD)))
def test_a_query_is_data(skills: dict[str, int], query: str) -> None:
    found = names(query)
    assert set(found) <= set(SKILLS)
    if "posters" in query and "tokens:" not in query:
        assert found[0] == "posters" or found[0] == "letters"
    assert Skill.objects.count() == len(SKILLS)


@pytest.mark.slow
def test_a_new_version_replaces_the_words(skills: dict[str, int], tmp_path: Path) -> None:
    changed = store_skill(package(tmp_path, "posters", description="Waters plants."))
    assert "posters" in names("water a plant")  # not in the index yet, but still found
    index_version(changed)
    assert skills["posters"] in full_text("plants")
    assert index._having(["flyer"]) == []


@pytest.mark.slow
def test_removed_skills_are_not_in_the_index(skills: dict[str, int]) -> None:
    remove_from_index(skills["posters"])
    remove_from_index(skills["posters"])
    assert full_text("posters flyers") == set()
    skill = Skill.objects.get(pk=skills["letters"])
    delete_skill(skill, VersionDetails("cli"))
    assert "letters" not in names("letters")
    skill.delete()
    assert full_text("letters customers") == set()


def test_words_of_another_analysis_are_not_trusted(skills: dict[str, int]) -> None:
    SkillIndexEntry.objects.filter(skill_id=skills["posters"]).update(analysis="old", tokens="x")
    assert names("flyers") == ["posters"]


@pytest.mark.slow
def test_a_search_returns_only_the_allowed_skills(skills: dict[str, int]) -> None:
    allowed = Skill.objects.filter(name="letters")
    assert [found.name for found in search_skills("posters flyers letters", allowed)] == ["letters"]
    assert search_skills("posters", Skill.objects.none()) == []


@pytest.mark.slow
def test_the_best_are_shortlisted(skills: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "SHORTLIST", 1)
    assert full_text("posters and flyers for a letter") == {skills["posters"]}


@pytest.mark.slow
def test_the_database_searches_the_full_text_index(skills: dict[str, int]) -> None:
    """FTS5 and a tsvector return the same rows, by exact tokens."""
    table = {
        "sqlite": "SELECT count(*) FROM skills_app_skillindex_fts",
        "postgresql": "SELECT count(*) FROM pg_indexes WHERE indexname = "
        "'skills_app_skillindex_lexemes'",
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(table)
        (count,) = cursor.fetchone()
    assert count == (len(SKILLS) if connection.vendor == "sqlite" else 1)
    assert index._having(["poster"]) == [skills["posters"]]
    assert index._having(["post"]) == []
