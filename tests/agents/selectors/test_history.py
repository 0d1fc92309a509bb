"""The pages of a user's history: for any search, each page reads a limited number of runs."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from agents.models import Run
from agents.selectors import history
from agents.selectors.history import HistoryFilter, HistoryPage, agents_of_threads, history_page
from agents.states import RunStatus
from tests.agents.api.rows import make_agent, make_run, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    make_agent(sandbox=False)
    return make_user("ann")


def turned(person: User, wanted: HistoryFilter) -> list[HistoryPage]:
    pages = [history_page(person, wanted)]
    while pages[-1].next_after:
        pages.append(history_page(person, wanted, pages[-1].next_after))
        assert len(pages) < 50
    return pages


def ids(pages: list[HistoryPage]) -> list[str]:
    return [run.pk for page in pages for run in page.runs]


@pytest.mark.parametrize("number", [0, 1, 3, 4, 6, 7])
def test_each_run_is_on_one_page_the_newest_first(
    ann: User, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "RUNS_A_PAGE", 3)
    monkeypatch.setattr(history, "LOOKED_THROUGH", 3)
    made = [make_run(ann).pk for _ in range(number)]
    make_run(make_user("bob"))
    pages = turned(ann, HistoryFilter())
    assert ids(pages) == made[::-1]
    assert len(pages) == max(1, -(-number // 3))
    assert not any(page.looked_back_to for page in pages)


def test_a_page_examines_a_limited_number_and_reports_its_end(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "LOOKED_THROUGH", 4)
    monkeypatch.setattr(history, "SEARCHED_THROUGH", 2)
    made = [make_run(ann, message=f"say {number}") for number in range(10)]
    failed = made[1]
    Run.objects.filter(pk=failed.pk).update(status=RunStatus.FAILED)
    wanted = HistoryFilter(status=RunStatus.FAILED)
    first, second, third = turned(ann, wanted)
    assert (first.runs, second.runs, third.runs) == ([], [], [failed])
    assert first.looked_back_to == made[6].created_at
    assert second.looked_back_to == made[2].created_at
    assert third.looked_back_to is None
    words = turned(ann, HistoryFilter(words="say 1"))
    assert (len(words), ids(words)) == (5, [failed.pk])


def test_the_agents_are_those_that_one_has_talked_with(ann: User) -> None:
    make_agent("other", sandbox=False)
    assert agents_of_threads(ann) == []
    make_run(ann)
    assert [slug for slug, _ in agents_of_threads(ann)] == ["writer"]
    assert agents_of_threads(make_user("bob")) == []
