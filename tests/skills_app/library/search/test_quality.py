"""The share of requests, in users' words, for which the right skill comes first.

`evaluate.py` measures the same with public packages, which are not in the repository.
"""

from __future__ import annotations

import json
from pathlib import Path

from skills_app.library.registry import Skill, SkillRegistry
from skills_app.library.search.document import SkillDocument
from skills_app.library.search.ranking import rank
from tests.skills_app.library.search.evaluate import Question, Result, measure, read_questions

HERE = Path(__file__).parent


def library() -> list[SkillDocument]:
    """Return 21 skills: the built-in ones and those of the file."""
    registry = SkillRegistry()
    for line in (HERE / "library.jsonl").read_text().splitlines():
        said = json.loads(line)
        skill = Skill(said["name"], said["description"], said["body"], tags=tuple(said["tags"]))
        registry.register(skill)
    return [skill.document for skill in registry.list()]


def questions() -> list[Question]:
    return read_questions(HERE / "queries.txt")


def test_the_right_skill_comes_first() -> None:
    documents = library()
    assert len(documents) == 21
    result: Result = measure(questions(), lambda query: rank(query, documents))
    assert result.first >= 0.92, result.misses
    assert result.first_three >= 0.97, result.misses
    assert result.low == 1.0, result.misses


def test_phrases_and_names_find_the_built_in_skills() -> None:
    documents = [skill.document for skill in SkillRegistry().list()]
    result = measure(read_questions(HERE / "phrases.txt"), lambda query: rank(query, documents))
    assert result.asked == 34
    assert result.found > 0.9, result.misses
    assert result.first_three > 0.97, result.misses


def test_other_users_words_are_needed() -> None:
    """Without families and learned words the result is far worse, so the set is not too easy."""
    documents = library()
    right = 0
    asked = [question for question in questions() if question.right]
    for question in asked:
        words = set(question.query.lower().split())
        best = max(documents, key=lambda d: len(words & set(d.description.lower().split())))
        right += best.name in question.right
    assert right / len(asked) < 0.6
