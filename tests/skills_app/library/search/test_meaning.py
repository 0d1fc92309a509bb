"""The language model: it is loaded for many skills only, and reads each skill once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from skills_app.library.search import meaning
from skills_app.library.search.document import SkillDocument, analyse
from skills_app.library.search.ranking import CANDIDATES, FEW, rank, scores

REQUEST = "my feet hurt when I jog"
CABLES = SkillDocument("cables", "Measures cables by their feet, and their jog.")
SHOES = SkillDocument("footwear", "Recommends running shoes for sore feet.")


def library(size: int) -> list[SkillDocument]:
    return [SkillDocument(f"garden-{n}", f"Plans garden number {n}.") for n in range(size)]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the texts that the model reads during the test."""
    texts: list[str] = []
    original = meaning._read

    def noted(given: Sequence[str], most: int) -> Any:
        texts.extend(given)
        return original(given, most)

    meaning._request.cache_clear()
    monkeypatch.setattr(meaning, "_known", {})
    monkeypatch.setattr(meaning, "_read", noted)
    return texts


def test_it_knows_other_words_for_the_same() -> None:
    texts = ["shoes for sore feet", "taxes of a company", "painting of walls"]
    near, *far = meaning.nearness(REQUEST, meaning.vectors_of(texts))
    assert near > 0.3 > max(far)


def test_texts_that_are_read_together_do_not_change_each_other() -> None:
    texts = [f"{'a long skill about ' * n}boats" for n in range(5)]
    together = [meaning.nearness("sailing", [one])[0] for one in meaning.vectors_of(texts)]
    meaning._known.clear()
    alone = [meaning.nearness("sailing", meaning.vectors_of([text]))[0] for text in texts]
    assert together == pytest.approx(alone, abs=0.02)


def test_few_skills_are_ranked_by_words_alone(read: list[str]) -> None:
    assert rank(REQUEST, [*library(FEW - 2), CABLES, SHOES])[0].name == "cables"
    assert read == []


def test_numpy_is_not_imported_for_few_skills() -> None:
    program = (
        "from skills_app.library.registry import SkillRegistry;"
        "assert SkillRegistry().find_skill('fill in this form').name == 'pdf-processing';"
        "import sys; assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], timeout=600, check=True)


def test_of_many_skills_the_best_by_words_are_read_once(read: list[str]) -> None:
    documents = [*library(FEW), CABLES, SHOES]
    assert rank(REQUEST, documents)[0].name == "footwear"
    assert read.count(REQUEST) == 1
    assert len(read) == 1 + CANDIDATES
    rank(REQUEST, documents)
    rank(REQUEST, documents[::-1])
    assert len(read) == len(set(read))


def test_a_skill_with_a_stored_vector_is_not_read(read: list[str]) -> None:
    skills = [replace(analyse(document), vector=b"\1" * 384) for document in library(FEW + 1)]
    assert scores(REQUEST, skills)
    assert read == [REQUEST]


def test_a_request_without_informative_words_is_not_read(read: list[str]) -> None:
    assert scores("please help me", [*map(analyse, library(FEW + 1))]) == [0.0] * (FEW + 1)
    assert read == []


def test_a_score_is_the_same_in_any_company_of_many() -> None:
    said = [analyse(document) for document in (*library(FEW + 20), SHOES)]
    vectors = meaning.vectors_of([skill.said for skill in said])
    skills = [replace(skill, vector=v) for skill, v in zip(said, vectors, strict=True)]
    assert scores(REQUEST, skills)[-1] == scores(REQUEST, skills[20:])[-1]


def test_a_skill_that_is_named_comes_first_among_many() -> None:
    documents = [*library(FEW), SHOES, SkillDocument("night-owl", "Sings.")]
    first = rank(f"use night-owl, {REQUEST}", documents)[0]
    assert first.name == "night-owl"
    assert first.score > 0.5
