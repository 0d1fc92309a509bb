"""Measures the quality of the ranking.

Run `python -m tests.skills_app.library.search.evaluate --skills DIR SETS QUESTIONS`.

SETS has lines `set: name name …`, QUESTIONS lines `set|query|right names, - for none`; DIR holds
packages by their names. It prints shares for each set and, with --misses, the wrong answers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skills_app.library.search.document import SkillDocument
from skills_app.library.search.ranking import Match, rank
from skills_app.library.skill import load_skills

LOW = 0.2


@dataclass(frozen=True, slots=True)
class Question:
    """`right` is empty if no skill answers the question."""

    query: str
    right: tuple[str, ...]
    library: str = ""


@dataclass(slots=True)
class Result:
    """Shares of the results.

    Of the questions with an answer: right first, right in the first three, right first with a score
    of at least LOW. `low`: of the questions without an answer, the share with scores below LOW.
    """

    first: float = 0.0
    first_three: float = 0.0
    found: float = 0.0
    low: float = 0.0
    milliseconds: float = 0.0
    asked: int = 0
    unanswerable: int = 0
    misses: list[str] = field(default_factory=list)


def read_questions(path: Path) -> list[Question]:
    questions = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            *library, query, right = line.split("|")
            names = () if right == "-" else tuple(right.split())
            questions.append(Question(query, names, library[0] if library else ""))
    return questions


def measure(questions: Sequence[Question], ranked: Callable[[str], list[Match]]) -> Result:
    result = Result()
    first = three = found = low = 0
    start = time.perf_counter()
    for question in questions:
        matches = ranked(question.query)
        best = matches[0]
        if not question.right:
            result.unanswerable += 1
            low += best.score < LOW
            if best.score >= LOW:
                result.misses.append(f"{question.query} -> {best.name} {best.score}")
            continue
        result.asked += 1
        names = [match.name for match in matches]
        place = min(names.index(name) for name in question.right)
        first += place == 0
        three += place < 3
        found += place == 0 and best.score >= LOW
        if place:
            wanted = matches[place]
            result.misses.append(
                f"{question.query} -> {best.name} {best.score}, "
                f"{place + 1}. {wanted.name} {wanted.score}"
            )
    result.milliseconds = 1000 * (time.perf_counter() - start) / max(1, len(questions))
    result.first, result.first_three, result.found = (
        count / max(1, result.asked) for count in (first, three, found)
    )
    result.low = low / result.unanswerable if result.unanswerable else 1.0
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skills", type=Path, action="append", required=True)
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("sets", type=Path)
    parser.add_argument("questions", type=Path)
    given = parser.parse_args()
    known: dict[str, SkillDocument] = {}
    for directory in given.skills:
        for skill in load_skills(directory)[0]:
            known.setdefault(skill.name, skill.document)
    libraries = {}
    for line in given.sets.read_text().splitlines():
        name, _, members = line.partition(":")
        libraries[name] = [known[member] for member in members.split()]
    questions = read_questions(given.questions)
    for name, documents in libraries.items():
        here = [question for question in questions if question.library == name]
        rank("warm up", documents)
        result = measure(here, lambda query, documents=documents: rank(query, documents))  # type: ignore[misc]
        print(
            f"{name}: {result.asked} first {result.first:.1%}, first three "
            f"{result.first_three:.1%}, found {result.found:.1%}; {result.unanswerable} without "
            f"an answer, low {result.low:.1%}; {result.milliseconds:.2f} ms a query"
        )
        for miss in result.misses if given.misses else ():
            print(f"  {miss}")


if __name__ == "__main__":
    main()
