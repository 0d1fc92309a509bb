"""Requests of one author over 34 skills: the built-in ones and those of `blind/library.jsonl`.

The first line of each file says what its author knew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from skills_app.library.registry import Skill, SkillRegistry
from skills_app.library.search import meaning
from skills_app.library.search.document import SkillDocument, analyse
from skills_app.library.search.ranking import Match, rank, scores
from tests.skills_app.library.search.evaluate import Question, Result, measure, read_questions

HERE = Path(__file__).with_name("blind")


@pytest.fixture(scope="module")
def documents() -> list[SkillDocument]:
    registry = SkillRegistry()
    for line in (HERE / "library.jsonl").read_text().splitlines():
        said = json.loads(line)
        registry.register(Skill(said["name"], said["description"], said["body"]))
    return [skill.document for skill in registry.list()]


def questions(*names: str) -> list[Question]:
    return [question for name in names for question in read_questions(HERE / f"{name}.txt")]


def measured(asked: list[Question], documents: list[SkillDocument]) -> Result:
    return measure(asked, lambda query: rank(query, documents))


def test_the_right_skill_comes_first(documents: list[SkillDocument]) -> None:
    asked = questions("blind")
    assert (len(documents), len(asked)) == (34, 40)
    result = measured(asked, documents)
    assert result.first > 0.9, result.misses
    assert result.first_three > 0.97, result.misses


def test_requests_with_few_words_of_the_skill(documents: list[SkillDocument]) -> None:
    asked = questions("hard", "hard_unseen")
    assert len(asked) == 80
    result = measured(asked, documents)
    assert result.first >= 0.57, result.misses
    assert result.first_three >= 0.75, result.misses


@pytest.mark.slow
def test_everyday_requests_over_a_large_library_of_descriptions() -> None:
    lines = (HERE / "large_library.txt").read_text().splitlines()
    library = [SkillDocument(*line.split("|", 1)) for line in lines if not line.startswith("#")]
    asked = questions("large_requests")
    assert (len(library), len(asked)) == (170, 64)
    result = measured(asked, library)
    assert result.first >= 0.75, result.misses
    assert result.first_three >= 0.87, result.misses
    skills = [analyse(document) for document in library]
    vectors = meaning.vectors_of([skill.said for skill in skills])
    skills = [replace(skill, vector=v) for skill, v in zip(skills, vectors, strict=True)]

    def with_vectors(query: str) -> list[Match]:
        found = zip(library, scores(query, skills), strict=True)
        return sorted((Match(d.name, s) for d, s in found), key=lambda m: (-m.score, m.name))

    result = measure(asked, with_vectors)
    assert result.first >= 0.76, result.misses
    assert result.first_three >= 0.89, result.misses


def test_a_request_that_no_skill_answers_has_low_scores(documents: list[SkillDocument]) -> None:
    result = measured(questions("nothing"), documents)
    assert (result.unanswerable, result.low) == (20, 1.0), result.misses


def without_a_letter(word: str) -> str:
    return word[: len(word) // 2] + word[len(word) // 2 + 1 :]


def with_two_exchanged(word: str) -> str:
    at = len(word) // 2
    return word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :]


def with_a_letter_twice(word: str) -> str:
    return word[: len(word) // 2 + 1] + word[len(word) // 2 :]


@pytest.mark.parametrize("error", [without_a_letter, with_two_exchanged, with_a_letter_twice])
def test_a_typing_error_in_the_longest_word_costs_little(
    documents: list[SkillDocument], error: Callable[[str], str]
) -> None:
    asked = []
    for question in questions("blind", "development"):
        words = question.query.split()
        longest = max(range(len(words)), key=lambda place: len(words[place]))
        words[longest] = error(words[longest])
        asked.append(Question(" ".join(words), question.right))
    result = measured(asked, documents)
    assert result.first >= 0.93, result.misses
    assert result.first_three >= 0.97, result.misses
