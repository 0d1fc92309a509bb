"""Relative times on pages, with exact times on hover."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.utils.translation import override

from agents.doors.web.ages import in_words
from agents.models import Run
from agents.templatetags.times import ago
from tests.agents.web.conftest import SignIn

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=1), "1 min ago"),
        (timedelta(hours=47, minutes=59), "47 h 59 min ago"),
        (timedelta(days=2), "2 days ago"),
    ],
)
def test_an_age_has_the_words_of_the_script(age: timedelta, words: str) -> None:
    assert in_words(age) == words
    script = (ROOT / "agents/static/agents/web/clock.js").read_text()
    assert "just now" in script
    assert "${Math.floor(seconds / HOURS)} h ${Math.floor((seconds % HOURS) / 60)} min" in script


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(seconds=59), "gerade eben"),
        (timedelta(minutes=1), "vor 1 min"),
        (timedelta(days=2), "vor 2 Tagen"),
    ],
)
def test_an_age_is_german_on_a_german_page(age: timedelta, words: str) -> None:
    with override("de"):
        assert in_words(age) == words


def test_a_missing_time_is_an_empty_text() -> None:
    assert ago(None) == ""


@pytest.mark.django_db
def test_pages_show_the_age_and_the_exact_time_on_hover(run: str, sign_in: SignIn) -> None:
    Run.objects.update(created_at=datetime.now(UTC) - timedelta(hours=3, minutes=1))
    olga = sign_in("olga")
    exact = f"{Run.objects.get().created_at:%Y-%m-%d %H:%M:%S} UTC"
    for path in ("/", f"/runs/{run}/", "/runs/", "/conversations/"):
        html = olga.get(path).content.decode()
        assert re.search(rf'title="{exact}" data-clock="since">3 h 1 min ago</time>', html), path
